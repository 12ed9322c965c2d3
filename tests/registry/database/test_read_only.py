"""Which statements count as writes; the servers themselves are asked whether the words mislead."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.database.driver import Database
from registry.database.read_only import PROCEDURES, WRITING_WORDS, writing_word
from registry.errors import DatabaseError

READS = [
    *("MATCH (n) RETURN n", "match (n)\nreturn n;", "  // CREATE (n)\n MATCH (n) RETURN n"),
    *("/* MERGE (n) */ MATCH (n) RETURN n /* SET\nDELETE */", "RETURN 'CREATE (n)' AS text"),
    *('RETURN "it\'s SET" AS text', r"RETURN 'a\' DELETE n' AS text", r"RETURN 'a\\' AS text"),
    "MATCH (n:`DELETE me`) RETURN n.`a``b SET` AS `REMOVE`",
    *("MATCH (n) WHERE n.set = 1 AND n . delete = $create RETURN n.merge", "MATCH (n:Set) RETURN n"),
    *("MATCH (n)-[r:CREATE]->(m:Drop) RETURN r", "MATCH (n) WHERE n.created > 1 RETURN n.offset AS settings"),
    *("UNWIND [1, 2] AS i RETURN i", "WITH 1.5 AS x RETURN x", "OPTIONAL MATCH (n) RETURN n"),
    *("EXPLAIN MATCH (n) RETURN n", "PROFILE MATCH (n) RETURN n", "CALL db.labels()"),
    *("CALL db.labels() YIELD label RETURN label", "CALL `db`.`labels`() YIELD label RETURN label"),
    *("call db.labels() yield label return label", "CALL { MATCH (n) RETURN count(n) AS c } RETURN c"),
    "MATCH (n) CALL (n) { RETURN 1 AS one } RETURN one",
    "MATCH (n) RETURN [x IN [1, 2] WHERE x > 1 | x * 2]",
    *("MATCH (n) WHERE EXISTS { MATCH (n)-->(m) } RETURN n", "SHOW INDEXES", "MATCH (größe) RETURN größe"),
    "",
]

WRITES = [
    *(("CREATE (n)", "CREATE"), ("create (n)", "CREATE"), ("MATCH (n) SET n.x = 1", "SET")),
    *(("MATCH (n)SET n.x=1", "SET"), ("MATCH (n) WHERE n.x > 1.SET n.y = 1", "SET")),
    *(("MATCH (n) WHERE n.x > 1SET n.y = 1", "SET"), ("MATCH (n) /* */DELETE n", "DELETE")),
    *(("MATCH (n) //\nDELETE n", "DELETE"), ("MATCH (n) //\rDELETE n", "DELETE")),
    *(("MATCH (n) RETURN n; MATCH (n) DETACH DELETE n", "DETACH"), ("MATCH (n) REMOVE n:Label", "REMOVE")),
    *(("MERGE (n)", "MERGE"), ("INSERT (n)", "INSERT"), ("MATCH (n) INSERT (:X)", "INSERT")),
    ("MATCH (n) FOREACH (x IN [1] | SET n.x = x)", "FOREACH"),
    ("RETURN 'a' AS x UNION CREATE (n) RETURN 1 AS x", "CREATE"),
    *((r"WITH 'a\\' AS a CREATE (n {x: 'b'})", "CREATE"), ("WITH `a``b` AS a CREATE (n)", "CREATE")),
    ("WITH '/*' AS a CREATE (n) WITH '*/' AS b RETURN b", "CREATE"),
    *(("WITH '//' AS a CREATE (n)", "CREATE"), ("CALL { CREATE (n) } RETURN 1", "CREATE")),
    *(("MATCH (n) CALL (n) { SET n.x = 1 } RETURN 1", "SET"), ("EXPLAIN CREATE (n)", "CREATE")),
    ("CALL apoc.cypher.doIt('CREATE (n)', {})", "CALL apoc.cypher.doIt"),
    ("CALL `apoc`.`create`.node([], {})", "CALL apoc.create.node"),
    ("MATCH (n) CALL db . createLabel('X') RETURN 1", "CALL db.createLabel"),
    ("MATCH (n) OPTIONAL CALL db.createLabel('X') RETURN 1", "CALL db.createLabel"),
    *(("CALL DB.LABELS()", "CALL DB.LABELS"), ("CALL db.labels.evil()", "CALL db.labels.evil")),
    ("LOAD CSV FROM 'file:///etc/passwd' AS row RETURN row", "LOAD"),
    ("SHOW TRANSACTIONS YIELD transactionId TERMINATE TRANSACTIONS transactionId", "SHOW TRANSACTIONS"),
    *(("SHOW USERS", "SHOW USERS"), ("show settings YIELD name", "SHOW SETTINGS"), ("SHOW", "SHOW")),
    *(("DROP INDEX x", "DROP"), ("ALTER USER neo4j SET PASSWORD 'x'", "ALTER")),
    *(("STOP DATABASE neo4j", "STOP"), ("MATCH (n) RETURN n; STOP DATABASE neo4j", "STOP")),
    *(("GRANT ROLE reader TO me", "GRANT"), ("USE system SHOW USERS", "USE")),
    # Neo4j resolves these before anything else.
    *((r"\u0043REATE (n)", "\\"), (r"MATCH (n) \u0053ET n.x = 1", "SET")),
    *((r"RETURN '\u0027 CREATE (n) //'", "CREATE"), (r"MATCH (n) // \u000a DELETE n", "DELETE")),
    *(("MATCH (n) RETURN 'open CREATE (n)", "CREATE"), ("MATCH (n) RETURN `open CREATE (n)", "CREATE")),
    ("MATCH (n) /* open CREATE (n)", "CREATE"),
]


@pytest.mark.parametrize("statement", READS)
def test_reading_statements_pass(statement: str) -> None:
    assert writing_word(statement) is None


@pytest.mark.parametrize(("statement", "word"), WRITES)
def test_writing_statements_are_known_by_their_word(statement: str, word: str) -> None:
    assert writing_word(statement) == word


def test_no_writing_word_passes_in_any_letter_case() -> None:
    for word in sorted(WRITING_WORDS):
        for form in (word, word.lower(), word.title(), word.swapcase()):
            assert writing_word(f"MATCH (n) {form} (m) RETURN n") == word


def test_what_passes_is_run_by_the_servers_and_changes_nothing(database: Database) -> None:
    """Neo4j runs the listed procedures in a read transaction, or does not have them."""
    for statement in filter(None, READS):
        try:
            database.query(statement, create=1)
        except DatabaseError:
            assert database.kind == "arcadedb", f"Neo4j takes every one of these: {statement}"
    for procedure in sorted(PROCEDURES):
        assert writing_word(f"CALL {procedure}()") is None
        if database.kind == "neo4j":
            database.query(f"CALL {procedure}()")
    assert database.query("MATCH (n) RETURN count(n)")[1] == [(1,)]


SIGNS = "'\"`/* aCREATE"


def closed(ends: tuple[str, str]) -> st.SearchStrategy[str]:
    """Text between two signs, full of what means something elsewhere."""
    return st.text(SIGNS.replace(ends[1][0], ""), max_size=12).map(lambda inner: inner.join(ends))


CLOSED = map(closed, (("'", "'"), ('"', '"'), ("`", "`"), ("/*", "*/"), ("//", "\n")))


@given(st.lists(st.one_of(*CLOSED), max_size=6))
def test_quotes_and_comments_hide_their_text_and_nothing_else(pieces: list[str]) -> None:
    statement = "RETURN " + " ".join(pieces)
    assert writing_word(statement) is None
    assert writing_word(f"{statement} CREATE (n)") == "CREATE"
