"""Spellings of earlier versions, which work for one more version: they are rewritten, and a note shows how.

Each rule gets the words after the command and returns those of the present spelling.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial

Rule = Callable[[list[str]], list[str]]


def present_spelling(words: Sequence[str]) -> list[str]:
    """Return the words of a command line as this version spells them; print a note if they differ."""
    given = list(words)
    for command, rule in _RULES.items():
        size = len(command.split())
        if given[:size] != command.split():
            continue
        changed = _COMMANDS.get(command, command).split() + rule(given[size:])
        if changed != given:
            from almanac.output.printing import note

            note(f"note: this spelling ends with the next version; write: almanac {shlex.join(changed)}")
        return changed
    return given


def _take(words: list[str], *options: str) -> str | None:
    """Remove an option with its value from the words and return the value, or None if it is not there."""
    for index, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option in options and equals:
            del words[index]
            return value
        if word in options and index + 1 < len(words):
            value = words[index + 1]
            del words[index : index + 2]
            return value
    return None


def _rename(words: list[str], *, options: Mapping[str, str]) -> list[str]:
    """Replace options by others, such as ``--export links=``, before their values; an empty text omits it."""
    found = list(words)
    for old, new in options.items():
        name, _, before = new.partition(" ")
        while (value := _take(found, old)) is not None:
            found += [name, before + value] if name else [value]
    return found


def _history(words: list[str]) -> list[str]:
    """Turn the flags of ``history`` into its subcommands."""
    found = _rename(words, options={"--limit": "--top"})
    for flag in ("regressions", "simulations", "circuits", "measured"):
        if f"--{flag}" in found:
            found.remove(f"--{flag}")
            found.insert(0, flag)
    return found


def _advise(words: list[str]) -> list[str]:
    """Insert the subcommand ``placement`` if there are a profile and a placement."""
    values = [
        word
        for before, word in zip(["", *words], words, strict=False)
        if not word.startswith("-") and (not before.startswith("-") or "=" in before or before == "--json")
    ]
    if len(values) < 2 or values[0] in ("jobs", "placement"):
        return words
    return ["placement", *words]


def _export(words: list[str]) -> list[str]:
    """Join ``--format FORMAT -o FILE`` to ``FORMAT=FILE``."""
    found = list(words)
    name, file = _take(found, "--format"), _take(found, "-o", "--output")
    if name is None and file is None:
        return words
    return [*found, (name or "csv") + ("" if file is None else f"={file}")]


_LINKS = {"--links": "--export links=", "--points": "--export points="}
_CIRCUITS = {"-o": "--export circuits=", "--output": "--export circuits=", "--routes": "--export routes="}
_COMMANDS = {
    **{f"run {verb}": f"ingest-run {verb}" for verb in ("list", "delete")},
    "db dump": "db backup",
    "db load": "db restore",
    "job ranks": "job export",
}
"""Commands that have another name now."""
_RULES: dict[str, Rule] = {
    **dict.fromkeys(_COMMANDS, list),
    "job ranks": _export,
    "history": _history,
    "advise": _advise,
    "export": _export,
    "cluster export": _export,
    "profile export": _export,
    "cluster optical": partial(_rename, options=_CIRCUITS),
    "reconfigure": partial(_rename, options=_CIRCUITS),
    "evaluate": partial(_rename, options=_LINKS),
    "simulate": partial(_rename, options={**_LINKS, "--profile": ""}),
    "map": partial(_rename, options={"--profile": ""}),
    "compare": partial(_rename, options={**_LINKS, "--most": "--top"}),
    "metrics": partial(_rename, options={"--hottest": "--top"}),
    "whatif": partial(_rename, options={"--rule": "--routing-after"}),
}
"""Rules of the commands that have old spellings or names."""
