"""The words of a launcher's command: its options, and the program with its own."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from registry.errors import Unplaced

PYTHON = re.compile(r"python[\d.]*")
"""Base name of Python's interpreter, with any version."""


class Option(NamedTuple):
    """An option as it was given."""

    name: str
    """Without leading dashes."""
    values: tuple[str, ...]
    words: tuple[str, ...]
    """Words of the command, the option first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A launcher's command."""

    launcher: tuple[str, ...]
    """The launcher, with its subcommand if it has one."""
    options: tuple[Option, ...]
    """Options of the launcher."""
    program: tuple[str, ...]
    """The program and its arguments."""

    @property
    def command(self) -> tuple[str, ...]:
        """The program and its arguments, without the ``--`` that may be before or among them."""
        return tuple(word for word in self.program if word != "--")

    @property
    def application(self) -> str:
        """Base name of the program, or of the script or module that Python runs."""
        program, *arguments = self.command
        name = Path(program).name
        if PYTHON.fullmatch(name):
            for at, word in enumerate(arguments, 1):
                if word == "-m":
                    return next(iter(arguments[at:]), name)
                if word in ("-c", "-W", "-X"):
                    return name
                if not word.startswith("-"):
                    return Path(word).name
        return name

    def last(self, names: Collection[str]) -> str | None:
        """Return the value of the last of these options, or None if none is given."""
        found = [option.values[0] for option in self.options if option.name in names]
        return found[-1] if found else None

    def count(self, names: Collection[str]) -> int | None:
        """Return the number that one of these options gives; `Unplaced` is raised if it is not one."""
        value = self.last(names)
        if value is None:
            return None
        if not value.isdecimal() or int(value) < 1:
            raise Unplaced(f"{value} is not a number of ranks or hosts")
        return int(value)

    def words(self, added: Sequence[str] = (), without: Collection[str] = ()) -> tuple[str, ...]:
        """Return the words of the command with further options, and without those of some names."""
        kept = [word for option in self.options if option.name not in without for word in option.words]
        return (*self.launcher, *added, *kept, *self.program)


def parse_call(words: Sequence[str], values: Mapping[str, int], begin: int = 1) -> Call:
    """Return the options of a launcher's command; the first word that is none begins the program.

    Args:
        values: Number of values of each option of the launcher, by its name without dashes.
        begin: Number of words of the launcher.

    Raises:
        Unplaced: An unknown option: how many of the next words are its own is not known.
    """
    options: list[Option] = []
    at = begin
    while at < len(words) and words[at].startswith("-") and words[at] not in ("-", "--"):
        word = words[at]
        name, attached, value = word.lstrip("-").partition("=")
        if attached and values.get(name, 0) == 1:
            options.append(Option(name, (value,), (word,)))
            at += 1
        elif name in values and not attached:
            end = at + 1 + values[name]
            if end > len(words):
                raise Unplaced(f"{word} lacks its value")
            options.append(Option(name, tuple(words[at + 1 : end]), tuple(words[at:end])))
            at = end
        elif len(name) > 1 and not word.startswith("--") and values.get(name[0], 0) == 1:  # -n4
            options.append(Option(name[0], (word[2:],), (word,)))
            at += 1
        else:
            raise Unplaced(f"the option {word} of {words[0]} is not known here")
    program = tuple(words[at:])
    if not [word for word in program if word != "--"]:
        raise Unplaced("no program is given")
    return Call(launcher=tuple(words[:begin]), options=tuple(options), program=program)
