"""Errors that Fabric Almanac raises on purpose.

    AlmanacError
    |- InvalidValue           a value that a data type does not accept (also a ValueError)
    |- InputError             a file that cannot be read: path, line, text, reason
    |  `- UnknownFormat       a file that no parser recognises: known formats
    |- UnknownName            a name that does not exist: kind, name, close matches
    |- PoorerSource           a fabric without ports after one with ports: cluster, source
    |- WrongCluster           a scan or tables of other devices than the cluster's: shared, devices
    |- ChangeRefused          data that others depend on: what, because
    |- InfeasibleAllocation   more ranks than slots
    |- DisconnectedAllocation hosts that no path connects
    |- UnreachablePair        two hosts without a route
    |- InvalidPlacement       a placement that does not fit its profile or allocation
    |  `- WrongRanks          another number of ranks than the profile: placed, needed
    |- DeadlockFound          packets of a simulation wait for each other: links, seconds
    |- ConfigError            a setting that cannot be used: source, key, reason
    |- SpoolFull              no room for another waiting ingest: folder
    |- DatabaseError
    |  |- DatabaseUnavailable no server answers: uri, reason, remedy
    |  |- SchemaVersionError  found, needed, command that fixes it
    |  |- InconsistentGraph   a transaction read contradicting data
    |  |- WritersPaused       a backup is being written: the transaction is tried again
    |  `- WriteRefused        a writing statement where only reading is allowed
    |- ClusterError           work that a Dask cluster cannot do: address, worker
    |- CommandFailed, StillRunning  a command of the service that failed; one whose last run has not ended
    |- DamagedEntry           a waiting ingest that is incomplete or was changed
    |- Unplaced, Unverified   ranks that `almanac run` does not place; ranks whose hosts could not be seen
    |- MissingExtra           an optional package that is not installed: package, command
    `- PlugInError            a plug-in that cannot be used: kind, name, package

Errors have fields for pages and commands; ``str(error)`` is one line. Nothing below the commands prints.

Names in errors: those closest to an unknown one, and the first of many.
"""

from __future__ import annotations

import copyreg
import difflib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

LISTED = 12
"""Most names that an error lists."""
_NUMBER = re.compile(r"([0-9]{1,18})")


def close_names(name: str, known: Sequence[str], count: int = 3) -> tuple[str, ...]:
    """Return the closest of the known names, best first; case is ignored.

    Names that are equal up to the first dot come first, then those that differ in their numbers only, the
    closest numbers before others: ``node0001`` for ``node001``, whatever the number of zeros; then the names
    with most letters in common, which come first if the name is only a number, as of a job.
    """
    folded = {candidate.casefold(): candidate for candidate in known}
    wanted = name.casefold()
    alike = []
    for key in folded if _NUMBER.search(wanted) else ():
        both = (
            [key, wanted]
            if ("." in key) == ("." in wanted)
            else [one.partition(".")[0] for one in (key, wanted)]
        )
        (own_text, own), (text, numbers) = map(_parts, both)
        if own_text == text:
            alike.append(([abs(a - b) for a, b in zip(own, numbers, strict=True)], key != wanted, key))
    head = wanted.partition(".")[0]
    first = [key for key in folded if key.partition(".")[0] == head and not head.isdecimal()]
    numbered = [key for *_, key in sorted(alike)[:count]]
    lettered = difflib.get_close_matches(wanted, list(folded), n=2 * count, cutoff=0.5)
    found = [*lettered, *numbered] if wanted.isdecimal() else [*first, *numbered, *lettered]
    return tuple(folded[key] for key in list(dict.fromkeys(found))[:count])


def list_names(names: Sequence[str]) -> str:
    """Return the first names, separated by commas, and how many more there are."""
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def _parts(name: str) -> tuple[tuple[str, ...], list[int]]:
    """Return what is between the numbers of a name, and the numbers."""
    parts = _NUMBER.split(name)
    return tuple(parts[::2]), [int(part) for part in parts[1::2]]


TEXT_LIMIT = 200
"""Most characters of an offending line that an error quotes."""
REASON_LIMIT = 2000
"""Most characters of a reason: some quote names from files, which may be long."""


def shorten(text: str, limit: int = TEXT_LIMIT) -> str:
    """Return a text cut to `limit` characters; three dots mark the cut."""
    return text if len(text) <= limit else text[: limit - 3] + "..."


class AlmanacError(Exception):
    """Base class of these errors.

    Attributes:
        reason: What is wrong and what to do; one line, shortened to `REASON_LIMIT` characters.
        path: File with the error.
        line: Line of the error, from 1.
        text: Offending text, shortened to `TEXT_LIMIT` characters.
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

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what restores a pickled error, which `__init__` with other parameters would not."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]

    def __str__(self) -> str:
        where = "" if self.path is None else self.path
        if self.line is not None:
            where += f":{self.line}" if where else f"line {self.line}"
        shown = "" if self.text is None else f" in {self.text!r}"
        return f"{where}: {self.reason}{shown}" if where else f"{self.reason}{shown}"


class InvalidValue(AlmanacError, ValueError):
    """A field of a data type has an invalid value.

    Attributes:
        field: Dotted name of the field, such as ``Profile.bytes``.
    """

    def __init__(self, field: str, reason: str) -> None:
        self.field = field
        super().__init__(f"{field}: {reason}")

    @property
    def what(self) -> str:
        """What is wrong, without the field."""
        return self.reason.removeprefix(f"{self.field}: ")

    def named(self, name: str = "") -> str:
        """Return what is wrong with a name that the user knows for the field; default: the field in words."""
        field = re.sub(r"^(Intake|Options)\.", "", self.field)
        words = re.sub(r"(?<=[a-z])(?=[A-Z])|[._]", " ", field).lower()
        return f"{name or words}: {self.what}"


class InputError(AlmanacError):
    """A file or a line of a file cannot be read."""


class UnknownFormat(InputError):
    """No parser recognises the content of a file.

    Attributes:
        known: Names of all formats.
    """

    def __init__(self, path: str | Path, known: Iterable[str], reason: str | None = None) -> None:
        self.known = tuple(known)
        why = reason or f"the content matches no known format; known formats: {list_names(self.known)}"
        super().__init__(why, path=path)


class UnknownName(AlmanacError):
    """There is no thing of this kind with this name.

    Attributes:
        kind: Kind of the thing: ``cluster``, ``host``, ``profile``, ...
        name: Requested name.
        close: Closest existing names, best first.
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
        reason: str = "",
    ) -> None:
        self.kind = kind
        self.name = name
        names = list(dict.fromkeys(known))
        self.close = close_names(name, names)
        reason = reason or f"there is no {kind} {name!r}"
        if self.close:
            reason += f"; closest: {', '.join(self.close)}"
        if len(names) > len(self.close):
            reason += f"; known: {list_names(names)}"
        if remedy:
            reason += f"; {remedy}"
        super().__init__(reason, path=path, line=line)


class PoorerSource(AlmanacError):
    """A fabric without ports would replace one with ports.

    Attributes:
        cluster, source: `source`: formats of the fabric without ports.
    """

    def __init__(self, cluster: str, source: str) -> None:
        self.cluster = cluster
        self.source = source
        super().__init__(
            f"{source} has no ports, those of {cluster} are known: a sketch would replace the cables; "
            "ingest it together with a scan, which compares the two, or name another cluster"
        )


class ChangeRefused(AlmanacError):
    """Stored data cannot be deleted, renamed or merged because of other data.

    Attributes:
        what: The data: ``profile wrf``.
        because: The other data, such as ``placements: 3``.
    """

    def __init__(self, what: str, because: Iterable[str], remedy: str) -> None:
        self.what = what
        self.because = tuple(because)
        super().__init__(f"{what}: {', '.join(self.because)}; {remedy}")


class WrongCluster(AlmanacError):
    """A scan or forwarding tables have other devices than the cluster."""

    def __init__(self, shared: int, devices: int, what: str, scan: str, path: str | None = None) -> None:
        self.shared, self.devices = shared, devices
        question = "is this another cluster? Add --replace to accept it"
        super().__init__(f"{shared} of the {devices} {what} are in {scan}: {question}", path=path)


class InfeasibleAllocation(AlmanacError):
    """An allocation has fewer slots than there are ranks."""

    def __init__(self, ranks: int, slots: int, hosts: int) -> None:
        self.ranks = ranks
        self.slots = slots
        super().__init__(
            f"{ranks} ranks do not fit on {slots} slots of {hosts} hosts: give more hosts or more slots"
        )


class DisconnectedAllocation(AlmanacError):
    """No path of the fabric connects two hosts of an allocation.

    Attributes:
        source, target: Names of the two hosts.
    """

    def __init__(self, source: str, target: str) -> None:
        self.source = source
        self.target = target
        super().__init__(f"no path of the fabric leads from host {source!r} to host {target!r}")


class UnreachablePair(AlmanacError):
    """The routing has no route between two hosts.

    Attributes:
        source, target: Names of the two hosts.
    """

    def __init__(self, source: str, target: str, why: str) -> None:
        self.source = source
        self.target = target
        super().__init__(f"no route leads from host {source!r} to host {target!r}: {why}")


class InvalidPlacement(AlmanacError):
    """A placement does not fit: a rank missing or twice, a host over its slots."""


class WrongRanks(InvalidPlacement):
    """A placement and a profile have different numbers of ranks.

    Attributes:
        placed, needed: Ranks of the placement and of the profile.
    """

    def __init__(self, placed: int, needed: int, path: str | None = None) -> None:
        self.placed = placed
        self.needed = needed
        cure = (
            f": if the last ranks of the recording sent and received nothing, begin its CSV file with "
            f"'# ranks: {placed}' and ingest it again"
        )
        text = f"{placed} ranks are placed, the profile has {needed}"
        super().__init__(text + (cure if placed > needed else ""), path=path)


class DeadlockFound(AlmanacError):
    """Packets of a simulation wait for each other in a circle, and nothing moves any more.

    Attributes:
        links: Links whose buffers wait, each for the next and the last for the first, such as ``"s1 -> s2"``.
        seconds: Simulated time when the last packet moved.
        delivered, messages: Messages delivered by then, and all messages.
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
    """A setting or an option cannot be used, or an option is missing.

    Attributes:
        key: Key of the setting, or the option with its dashes, which `reason` then names itself.
    """

    def __init__(self, key: str, reason: str, *, path: str | Path | None = None) -> None:
        self.key = key
        super().__init__(reason if key.startswith("--") else f"setting {key}: {reason}", path=path)


class DatabaseError(AlmanacError):
    """The graph database rejected a statement or failed."""


class DatabaseUnavailable(DatabaseError):
    """No database server answers."""

    def __init__(self, uri: str, why: str, remedy: str) -> None:
        self.uri = uri
        self.remedy = remedy
        super().__init__(f"no database answers at {uri}: {why}; {remedy}")


class SchemaVersionError(DatabaseError):
    """The database has a schema of another version.

    Attributes:
        command: Command that fixes it.
    """

    def __init__(self, found: int, needed: int, command: str) -> None:
        self.found = found
        self.needed = needed
        self.command = command
        super().__init__(f"the database has schema version {found}, this program needs {needed}: {command}")


class InconsistentGraph(DatabaseError):
    """A transaction read data that contradicts itself.

    A server may show a transaction one state before and one after the commit of another writer; such a
    transaction is tried again. If the error persists, the graph must be rebuilt.
    """


class RegistryBusy(DatabaseError):
    """The registry was written to in every attempt to read it at one moment."""


class WritersPaused(DatabaseError):
    """A backup is being written, so no data may change for a moment; the transaction is tried again."""


class WriteRefused(DatabaseError):
    """A statement would write, but only reading is allowed.

    Attributes:
        keyword: Word of the statement that writes, or is not known to only read.
    """

    def __init__(self, keyword: str, statement: str) -> None:
        self.keyword = keyword
        super().__init__(f"only reading statements are run here: {keyword} is refused", text=statement)


class MissingExtra(AlmanacError):
    """An optional package is not installed."""

    def __init__(self, package: str, command: str) -> None:
        self.package = package
        self.command = command
        super().__init__(f"the optional package {package} is not installed; install it with: {command}")


class PlugInError(AlmanacError):
    """A plug-in of another package cannot be used.

    Attributes:
        kind, name, package: Kind and name of the plug-in; package and version that it is from.
    """

    def __init__(self, kind: str, name: str, package: str, why: str) -> None:
        self.kind = kind
        self.name = name
        self.package = package
        super().__init__(
            f"the {kind} {name!r} of {package} cannot be used: {why}; update or remove {package}"
        )


class ClusterError(AlmanacError):
    """Work cannot be done on a Dask cluster.

    Attributes:
        address: Address of the scheduler.
        worker: Address of the worker with the problem.
    """

    def __init__(self, address: str, why: str, worker: str | None = None) -> None:
        self.address = address
        self.worker = worker
        super().__init__(f"Dask cluster {address}: {why}")


class CommandFailed(AlmanacError):
    """A command of the service failed: it could not start, took too long, or ended with an error."""


class StillRunning(AlmanacError):
    """A command was not started, since its last run has not ended."""


class Unplaced(AlmanacError):
    """The ranks cannot be placed, or should not be; the job runs in its own order."""


class Unverified(AlmanacError):
    """Where the ranks run could not be seen."""


class SpoolFull(AlmanacError):
    """The folder of waiting ingests has no room for another one."""

    def __init__(self, folder: Path, why: str) -> None:
        self.folder = folder
        super().__init__(f"the ingest cannot be queued in {folder}: {why}")


class DamagedEntry(AlmanacError):
    """An entry of the spool is incomplete, was changed, or is of an unknown version."""
