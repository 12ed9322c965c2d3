"""Check that a Cypher statement only reads, by its words.

Neo4j enforces read transactions, ArcadeDB does not, so the statement of a user is checked before it is sent
to either server. It must begin with a reading clause, contain no writing clause outside strings, quoted names
and comments, and call only listed procedures. The check errs on the safe side: a variable named ``set`` must
be written in backticks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

OPENING_WORDS = frozenset({"MATCH", "OPTIONAL", "WITH", "UNWIND", "RETURN", "CALL", "SHOW"})
"""First words of reading statements; commands on users and databases begin with others."""
SHOWN = frozenset({"INDEX", "INDEXES", "CONSTRAINT", "CONSTRAINTS"})
"""What SHOW may list: the schema, not the users, settings or transactions of the server."""
PREFIXES = frozenset({"EXPLAIN", "PROFILE"})
WRITING_WORDS = frozenset(
    {
        "CREATE",
        "MERGE",
        "INSERT",
        "SET",
        "DELETE",
        "DETACH",
        "NODETACH",
        "REMOVE",
        "FOREACH",
        "DROP",
        "TERMINATE",
        # It writes nothing, but makes the server open a file or an address.
        "LOAD",
    }
)
PROCEDURES = frozenset(
    {
        "db.info",
        "db.labels",
        "db.ping",
        "db.propertyKeys",
        "db.relationshipTypes",
        "db.schema.nodeTypeProperties",
        "db.schema.relTypeProperties",
        "db.schema.visualization",
        "dbms.components",
    }
)
"""Procedures that may be called: they only read."""

_TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\r\n]*|/\*.*?\*/)
      | (?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      | (?P<quoted>`(?:[^`]|``)*`)
      | (?P<word>[^\W\d]\w*)
      | (?P<number>\d+(?:\.\d+)?)
      | (?P<sign>.)""",
    re.DOTALL | re.VERBOSE,
)
_ESCAPE = re.compile(r"\\u+([0-9a-fA-F]{4})")


def writing_word(statement: str) -> str | None:
    """Return the word that makes a statement a write, or None if the statement only reads.

    Neo4j resolves ``\\uXXXX`` before it parses strings and comments, ArcadeDB inside strings only; both
    interpretations must be harmless.
    """
    resolved = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), statement)
    return _writing_word(statement) or (_writing_word(resolved) if resolved != statement else None)


def _writing_word(statement: str) -> str | None:
    """Return the word that makes a statement without escapes a write, or None."""
    tokens = list(_tokens(statement))
    opening = True
    for index, (kind, text) in enumerate(tokens):
        if text == ";":
            opening = True
            continue
        word = text.upper() if kind == "word" else ""
        if opening and word not in PREFIXES:
            opening = False
            if word not in OPENING_WORDS:
                return word or text
            if word == "SHOW":
                shown = "".join(text.upper() for _, text in tokens[index + 1 : index + 2])
                if shown not in SHOWN:
                    return f"SHOW {shown}".rstrip()
        if word in WRITING_WORDS and not _is_name(tokens, index):
            return word
        if word == "CALL" and not _is_name(tokens, index):
            procedure = _procedure(tokens[index + 1 :])
            if procedure is not None and procedure not in PROCEDURES:
                return f"CALL {procedure}"
    return None


def _tokens(statement: str) -> Iterator[tuple[str, str]]:
    for found in _TOKEN.finditer(statement):
        if found.lastgroup and found.lastgroup != "blank":
            yield found.lastgroup, found.group()


def _is_name(tokens: list[tuple[str, str]], index: int) -> bool:
    """Return True if the word is a property (``n.set``), a label or type (``:Set``) or a parameter."""
    if index == 0:
        return False
    before = tokens[index - 1][1]
    if before == ".":
        return index >= 2 and tokens[index - 2][0] != "number"
    return before in {":", "$"}


def _procedure(tokens: list[tuple[str, str]]) -> str | None:
    """Return the dotted name that follows CALL, or None for a subquery."""
    if tokens and tokens[0][1] in {"{", "("}:
        return None
    name = ""
    for kind, text in tokens:
        if kind == "quoted":
            name += text[1:-1]
        elif kind == "word" or text == ".":
            # Two words in a row: the name has ended; YIELD or the next clause follows.
            if kind == "word" and name and not name.endswith("."):
                break
            name += text
        else:
            break
    return name
