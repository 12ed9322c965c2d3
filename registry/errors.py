"""Every error that Fabric Almanac raises on purpose.

    AlmanacError
    |- InvalidValue           a value that a type of registry.model refuses (also a ValueError)
    |- InputError             a file that cannot be read: path, line, text, reason
    |  `- UnknownFormat       no parser recognises the file: known formats
    |- UnknownName            a name that nothing has: kind, name, close matches
    |- PoorerSource           a fabric without ports in the place of one with them: cluster, source
    |- InfeasibleAllocation   more ranks than slots
    |- DisconnectedAllocation hosts that no path joins
    |- UnreachablePair        two hosts between which the routing delivers nothing
    |- InvalidPlacement       a placement that does not fit its profile or allocation
    |- DeadlockFound          packets of a simulated run wait for each other: links, seconds
    |- ConfigError            a setting that cannot be used: source, key, reason
    |- DatabaseError
    |  |- DatabaseUnavailable no server answers: uri, reason, remedy
    |  |- SchemaVersionError  found, needed, the command that mends it
    |  |- InconsistentGraph   what one transaction read does not fit together
    |  `- WriteRefused        a statement that would write where only reading is allowed
    `- MissingExtra           an optional package that is not installed: package, command

Errors carry fields, so that a page or a command can show them its own way; ``str(error)`` is one line.
Nothing below the command line prints or exits.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path

TEXT_LIMIT = 200
"""Longest piece of an offending line that an error quotes, in characters."""
REASON_LIMIT = 2000
"""Longest reason, in characters: some name what stands in a file, whatever its length."""


class AlmanacError(Exception):
    """Base of all errors raised on purpose.

    Attributes
    ----------
    reason : str
        What is wrong and, where there is one, the remedy; one line, shortened to `REASON_LIMIT` characters.
    path : str or None
        File that holds the fault.
    line : int or None
        Line of the fault, from 1.
    text : str or None
        The offending text, shortened to `TEXT_LIMIT` characters.
    """

    def __init__(
        self,
        reason: str,
        *,
        path: str | Path | None = None,
        line: int | None = None,
        text: str | None = None,
    ) -> None:
        self.reason = shorten(reason, REASON_LIMIT)
        self.path = None if path is None else str(path)
        self.line = line
        self.text = None if text is None else shorten(text)
        super().__init__(self.reason)

    def __str__(self) -> str:
        where = "" if self.path is None else self.path
        if self.line is not None:
            where += f":{self.line}" if where else f"line {self.line}"
        shown = "" if self.text is None else f" in {self.text!r}"
        return f"{where}: {self.reason}{shown}" if where else f"{self.reason}{shown}"


class InvalidValue(AlmanacError, ValueError):
    """A field of a data type has a value that the type refuses.

    Attributes
    ----------
    field : str
        Dotted name of the field, such as ``Profile.bytes``.
    """

    def __init__(self, field: str, reason: str) -> None:
        self.field = field
        super().__init__(f"{field}: {reason}")


class InputError(AlmanacError):
    """A file, or a line of it, cannot be understood."""


class UnknownFormat(InputError):
    """No parser recognises a file's content.

    Attributes
    ----------
    known : tuple of str
        Names of the formats that there are.
    """

    def __init__(self, path: str | Path, known: Iterable[str], reason: str | None = None) -> None:
        self.known = tuple(known)
        why = reason or "the content is of no format that is known here"
        super().__init__(f"{why}; known formats: {', '.join(self.known)}", path=path)


class UnknownName(AlmanacError):
    """Nothing of that kind has that name.

    Attributes
    ----------
    kind : str
        What was looked for: ``cluster``, ``host``, ``profile``, ...
    name : str
        The name that was asked for.
    close : tuple of str
        The closest names that exist, best first.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        known: Iterable[str] = (),
        *,
        path: str | Path | None = None,
        line: int | None = None,
        remedy: str = "",
    ) -> None:
        self.kind = kind
        self.name = name
        self.close = close_names(name, list(known))
        reason = f"there is no {kind} {name!r}"
        if self.close:
            reason += f"; closest: {', '.join(self.close)}"
        if remedy:
            reason += f"; {remedy}"
        super().__init__(reason, path=path, line=line)


class PoorerSource(AlmanacError):
    """A fabric without ports would take the place of one whose ports are known.

    Attributes
    ----------
    cluster, source : str
        The formats that tell no ports.
    """

    def __init__(self, cluster: str, source: str) -> None:
        self.cluster = cluster
        self.source = source
        super().__init__(
            f"{source} tells no ports, but those of {cluster} are known: a sketch would take the place of "
            "the cables; give it in one call with a scan, which compares the two, or name another cluster"
        )


class InfeasibleAllocation(AlmanacError):
    """An allocation has fewer slots than there are ranks.

    Attributes
    ----------
    ranks, slots : int
    """

    def __init__(self, ranks: int, slots: int, hosts: int) -> None:
        self.ranks = ranks
        self.slots = slots
        super().__init__(f"{ranks} ranks do not fit on {hosts} hosts with {slots} slots in all")


class DisconnectedAllocation(AlmanacError):
    """No path of the fabric joins two hosts of an allocation.

    Attributes
    ----------
    source, target : str
        Names of the two hosts.
    """

    def __init__(self, source: str, target: str) -> None:
        self.source = source
        self.target = target
        super().__init__(f"no path of the fabric leads from host {source!r} to host {target!r}")


class UnreachablePair(AlmanacError):
    """The routing delivers nothing between two hosts.

    Attributes
    ----------
    source, target : str
        Names of the two hosts.
    """

    def __init__(self, source: str, target: str, why: str) -> None:
        self.source = source
        self.target = target
        super().__init__(f"no route leads from host {source!r} to host {target!r}: {why}")


class InvalidPlacement(AlmanacError):
    """A placement does not fit: a rank missing or twice, a host over its slots."""


class DeadlockFound(AlmanacError):
    """Packets of a simulated run wait for each other in a circle, and nothing moves any more.

    Attributes
    ----------
    links : tuple of str
        The links whose buffers wait for each other, each for the next and the last for the first, such as
        ``"s1 -> s2"``.
    seconds : float
        Simulated time when the last packet moved.
    delivered, messages : int
        Messages delivered until then, and all.
    """

    def __init__(self, links: Iterable[str], seconds: float, delivered: int, messages: int) -> None:
        self.links = tuple(links)
        self.seconds = seconds
        self.delivered = delivered
        self.messages = messages
        super().__init__(
            f"deadlock after {seconds:.6g} simulated seconds, {delivered} of {messages} messages delivered: "
            f"{len(self.links)} links wait for each other, {', '.join(self.links)}; a routing without "
            "such circles (up-down, dimension-order) or with escape channels (minimal-adaptive) has none"
        )


class ConfigError(AlmanacError):
    """A setting cannot be used.

    Attributes
    ----------
    key : str
    """

    def __init__(self, key: str, reason: str, *, path: str | Path | None = None) -> None:
        self.key = key
        super().__init__(f"setting {key}: {reason}", path=path)


class DatabaseError(AlmanacError):
    """The graph database refused or failed."""


class DatabaseUnavailable(DatabaseError):
    """No server answers.

    Attributes
    ----------
    uri, remedy : str
    """

    def __init__(self, uri: str, why: str, remedy: str) -> None:
        self.uri = uri
        self.remedy = remedy
        super().__init__(f"no database answers at {uri}: {why}; {remedy}")


class SchemaVersionError(DatabaseError):
    """The database holds a schema of another version.

    Attributes
    ----------
    found, needed : int
    command : str
        The command that mends it.
    """

    def __init__(self, found: int, needed: int, command: str) -> None:
        self.found = found
        self.needed = needed
        self.command = command
        super().__init__(f"the database has schema version {found}, this program needs {needed}: {command}")


class InconsistentGraph(DatabaseError):
    """What one transaction read does not fit together.

    Servers that read committed data may show a transaction a state from before and one from after another
    writer's commit; a transaction that ends so is tried again. Where it stays so, the graph is to be rebuilt.
    """


class WriteRefused(DatabaseError):
    """A statement would write where only reading is allowed.

    Attributes
    ----------
    keyword : str
        The word of the statement that writes, or is not known to read.
    """

    def __init__(self, keyword: str, statement: str) -> None:
        self.keyword = keyword
        super().__init__(f"only reading statements are run here: {keyword} is refused", text=statement)


class MissingExtra(AlmanacError):
    """An optional package is not installed.

    Attributes
    ----------
    package, command : str
    """

    def __init__(self, package: str, command: str) -> None:
        self.package = package
        self.command = command
        super().__init__(f"the optional package {package} is not installed: {command}")


def close_names(name: str, known: Sequence[str], count: int = 3) -> tuple[str, ...]:
    """Closest of the known names, best first; ignores case."""
    folded = {candidate.casefold(): candidate for candidate in known}
    found = difflib.get_close_matches(name.casefold(), list(folded), n=count, cutoff=0.5)
    return tuple(folded[key] for key in found)


def shorten(text: str, limit: int = TEXT_LIMIT) -> str:
    """The text cut to `limit` characters, the cut marked by three dots."""
    return text if len(text) <= limit else text[: limit - 3] + "..."
