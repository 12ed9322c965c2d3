"""The steps of one ingest: read files, recognise formats, parse, merge and check, save.

Nothing is saved before everything has been read and checked, and then in one transaction: a failed ingest
leaves the registry unchanged.

If the format of files is made of several files, those of one folder or archive become one source; formats are
recognised by content. The files of an OTF2 archive are in two folders and identified by their names: beside
``traces.otf2`` are ``traces.def`` and the folder ``traces`` with one or two files per location.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Protocol
from warnings import warn

from ingest import catalog
from ingest.merging.identities import has_ports
from ingest.merging.merge import Comparison, Scans, Source, compare_with_stored, merge, require_same_cluster
from ingest.options import Options
from ingest.parsed import Format, undo_double_counting
from ingest.reading.source import ANCHOR, SourceGroup, read_paths
from registry.errors import InputError, InvalidValue, UnknownFormat
from registry.model import Fabric, Profile
from registry.model.intake import Intake, Receipt, Saved
from registry.progress import Progress, silent
from registry.store.fabrics import Snapshot
from registry.store.ingest_runs import Attempt, RunInfo
from registry.units import code_version


class Saves(Scans, Protocol):
    """Methods of a registry that the pipeline calls; `registry.registry.Registry` has them."""

    def save(self, intake: Intake, progress: Progress = silent) -> Receipt:
        """Save an intake as a whole or not at all."""

    def last_seen(self, cluster: str, at: datetime) -> Snapshot | None:
        """Return the fabric of a cluster valid at a time, or None if none was seen before."""

    def same(self, key: str) -> RunInfo | None:
        """Return the last successful run with identical input, or None."""

    def unchanged(self, attempt: Attempt, known: RunInfo) -> None:
        """Record an ingest whose input is identical to that of a known run."""

    def failed(self, attempt: Attempt, error: BaseException) -> None:
        """Record an ingest that failed before saving; must not raise."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Report:
    """Result of an ingest."""

    intake: Intake
    """Data that were read, with the warnings of reading."""
    receipt: Receipt | None
    """What saving changed; None after a dry run."""
    warnings: tuple[str, ...]
    """Warnings of reading, then those of saving."""
    same_as: RunInfo | None = None
    """Earlier run with identical input: nothing was parsed, `intake` and `receipt` contain nothing new."""
    compared: Comparison | None = None
    """Comparison of a fabric without ports with the stored one; such a fabric is not saved."""


def ingest(
    registry: Saves | None,
    paths: Iterable[str | Path],
    options: Options | None = None,
    *,
    dry_run: bool = False,
    progress: Progress = silent,
) -> Report:
    """Read files and save their data.

    If a successful run had identical input (bytes, names, times and options), nothing is parsed. A fabric
    without ports (a scheduler's tree) does not replace one with ports: the two are compared.

    Args:
        registry: May be None for a dry run.
        paths: Files, folders, archives, or ``-`` for standard input.
        dry_run: Read and check everything, save nothing.

    Raises:
        InputError, UnknownFormat, UnknownName, ConfigError: As `plan`; nothing was saved.
        PoorerSource: A fabric without ports has nothing in common with the stored one.
        WrongCluster: See `ingest.merging.merge.require_same_cluster`.
        DatabaseError: Nothing was saved.
    """
    options, files = options or Options(), tuple(map(str, paths))
    if dry_run or registry is None:
        intake = plan(files, options, progress=progress)
        return Report(intake=intake, receipt=None, warnings=intake.warnings)
    attempt = Attempt(started_at=datetime.now(UTC), cluster=options.cluster, files=files)
    try:
        groups = read_paths(files)
        attempt = replace(attempt, key=_key(groups, options, progress))
        known = registry.same(attempt.key)
        if known is not None and _repeats_nothing(known):
            return _as_before(registry, attempt, known)
        recognised = _recognise(groups, options)
        attempt = replace(attempt, formats=tuple(format.name for format, _ in recognised))
        sources = _sources(recognised, options, progress)
        started_at, begun = attempt.started_at, attempt.begun
        intake = replace(merge(sources, options), started_at=started_at, begun=begun, key=attempt.key)
        intake, compared = _compare_if_poorer(registry, intake, sources)
        if not options.replace:
            require_same_cluster(registry, intake)
    except Exception as error:
        registry.failed(attempt, error)
        raise
    receipt = registry.save(intake, progress)
    warnings = tuple(dict.fromkeys((*intake.warnings, *receipt.warnings)))
    return Report(intake=intake, receipt=receipt, warnings=warnings, compared=compared)


def _compare_if_poorer(
    registry: Saves, intake: Intake, sources: Sequence[Source]
) -> tuple[Intake, Comparison | None]:
    """Return the intake; a fabric without ports is compared with a stored one with ports, and removed."""
    fabric, cluster, time = intake.fabric, intake.cluster, intake.observed_at
    if fabric is None or cluster is None or time is None or has_ports(fabric):
        return intake, None
    last = registry.last_seen(cluster, time)
    if last is None or not has_ports(last.fabric):
        return intake, None
    compared = compare_with_stored(cluster, intake.source, sources, last.fabric, last.observed_at)
    # No key: a later ingest of the same files compares them again, with the fabric stored by then.
    rest = replace(intake, fabric=None, key="", warnings=(*intake.warnings, *compared.disagreements))
    return rest, compared


def plan(
    paths: Iterable[str | Path], options: Options | None = None, *, progress: Progress = silent
) -> Intake:
    """Return the data of the files, merged and checked, without using a database.

    Raises:
        InputError: Invalid content, with file, line, text and reason.
        UnknownFormat: A file of no known format.
        UnknownName: A name in one file that is missing in another one.
        ConfigError: An option that is missing or does not fit.
    """
    options = options or Options()
    return merge(_sources(_recognise(read_paths(paths), options), options, progress), options)


def _recognise(groups: Sequence[SourceGroup], options: Options) -> list[tuple[Format, SourceGroup]]:
    """Return each source with its format."""
    if not groups:
        raise InputError("no files were given")
    return gather(groups, options.format)


def _sources(
    recognised: Sequence[tuple[Format, SourceGroup]], options: Options, progress: Progress
) -> list[Source]:
    """Parse all sources."""
    sources: list[Source] = []
    for done, (format, group) in enumerate(recognised):
        progress(f"reading {group.path}", done, len(recognised))
        sources.extend(_parse(format, group, options, progress))
    progress("checking", len(recognised), len(recognised))
    return sources


def _key(groups: Iterable[SourceGroup], options: Options, progress: Progress) -> str:
    """Return the hash of all input of an ingest; equal to that of a successful run if nothing is new."""
    digest = hashlib.sha256(f"{code_version()}\n{options!r}\n".encode())
    for group in groups:
        for file in group.files:
            identity = f"{group.path}\n{file.path}\n{file.modified_at.isoformat()}\n{file.size}\n"
            digest.update(identity.encode("utf-8", "surrogateescape"))
            for piece in file.watched(progress, f"comparing {file.path}").pieces():
                digest.update(piece)
    return digest.hexdigest()


def _repeats_nothing(known: RunInfo) -> bool:
    """Return True if repeating a run changes nothing; placements depend on the present fabric."""
    formats = catalog.FORMATS
    return all(name in formats and formats.find(name).kind != "placement" for name in known.formats)


def _as_before(registry: Saves, attempt: Attempt, known: RunInfo) -> Report:
    """Return the report of an ingest whose input is identical to that of an earlier run."""
    again = replace(attempt, formats=known.formats, digest=known.digest, warnings=known.warnings)
    registry.unchanged(again, known)
    intake = Intake(
        cluster=attempt.cluster or None,
        source=", ".join(known.formats),
        files=known.files,
        warnings=known.warnings,
        digest=known.digest,
        key=attempt.key,
        started_at=attempt.started_at,
    )
    receipt = Receipt(
        cluster=intake.cluster,
        snapshot=known.snapshot or None,
        routing=known.routing or None,
        saved={"profiles": Saved(ids=known.profiles)},
        warnings=known.warnings,
    )
    return Report(intake=intake, receipt=receipt, warnings=known.warnings, same_as=known)


def _parse(format: Format, group: SourceGroup, options: Options, progress: Progress) -> Iterator[Source]:
    """Parse a group as a whole, or its files one by one if their format is not grouped."""
    for part in [group] if format.grouped else [file.as_group() for file in group.files]:
        files = tuple(file.watched(progress, f"reading {file.path}") for file in part.files)
        if not format.streamed:
            files = tuple(file.held() for file in files)
        try:
            parsed = undo_double_counting(format.parse(files, options), options.divide, part.path)
        except InvalidValue as error:
            raise InputError(error.named(), path=part.path) from error
        yield Source(group=part, format=format.name, parsed=parsed)


def read(
    path: str | Path,
    *,
    capacity: float | str | None = None,
    weight: float | str | None = None,
    **options: Any,
) -> Fabric | Profile:
    """Return the fabric or profile in a file of any format of the catalog, without a database.

    Warnings of reading are Python's warnings.

    Args:
        path: File, folder or archive.
        capacity: The file is a fabric: bytes/s of cables without a rate, or the attribute of edges with it;
            ``weight`` is the number of an edge in formats that have a single one. Matrices and lists of edges
            are profiles by default.
        weight: The file is a profile: bytes of edges without any, or the attribute of edges with them.
            GraphML and node-link JSON are fabrics by default.
        **options: Further fields of `ingest.options.Options`, such as ``parts``, ``format`` or
            ``transposed``.

    Raises:
        InputError: Invalid content, with file, line, text and reason; or it has neither fabric nor profile,
            or the other one than asked for.
        UnknownFormat: A file of no known format.
        InvalidValue: An option out of range, or both capacity and weight.
    """
    if capacity is not None and weight is not None:
        raise InvalidValue("weight", "not with capacity: a file is a fabric or a profile")
    wanted = "fabric" if capacity is not None else None if weight is None else "profile"
    given = capacity if weight is None else weight
    if isinstance(given, str):
        options["attribute"] = given
    elif given is not None:
        options["rate" if wanted == "fabric" else "weight"] = given
    chosen = _graph_options(wanted, options)
    sources = _sources(_recognise_graph(path, chosen), chosen, silent)
    if len(sources) > 1:
        raise InputError(f"has {len(sources)} sources: read them one by one", path=str(path))
    (source,) = sources
    if source.parsed.incomplete:
        raise InputError(source.parsed.incomplete, path=str(path))
    found = source.parsed.fabric or next(iter(source.parsed.profiles), None)
    kind = None if found is None else "fabric" if isinstance(found, Fabric) else "profile"
    if found is None or (wanted is not None and kind != wanted):
        holds = f"holds a {kind}" if kind else "holds neither a fabric nor a profile"
        raise InputError(f"the format {source.format} {holds}", path=str(path))
    for text in source.parsed.warnings:
        warn(text, stacklevel=2)
    return found


def _graph_options(wanted: str | None, options: Mapping[str, Any]) -> Options:
    """Return the options of `read`; an error names its parameters."""
    try:
        return Options(graph=wanted, **options)
    except InvalidValue as error:
        name = error.field.removeprefix("Options.")
        raise InvalidValue("capacity" if name == "rate" else name, error.what) from None


def _recognise_graph(path: str | Path, options: Options) -> list[tuple[Format, SourceGroup]]:
    """Return the source with its format; only the caller knows what a list of edges between names is."""
    groups = read_paths([path])
    try:
        return _recognise(groups, options)
    except UnknownFormat:
        if options.graph is None:
            raise
        return _recognise(groups, replace(options, format="edge-list"))


def gather(groups: Iterable[SourceGroup], name: str | None = None) -> list[tuple[Format, SourceGroup]]:
    """Return each source with its format, in the order of the files.

    Args:
        groups: Files as returned by `ingest.reading.source.read_paths`.
        name: Name of the format of all files (default: recognised by content).

    Raises:
        UnknownName: There is no format of that name.
        UnknownFormat, InputError: As `ingest.catalog.recognise`.
    """
    found: dict[tuple[str, str] | int, tuple[Format, str, list[SourceGroup]]] = {}
    recent: dict[str, Format] = {}
    for group in anchored(groups):
        where = folder_of(group.files[0].path) if len(group.files) == 1 else group.path
        format = catalog.FORMATS.find(name) if name else _recognised(group, recent.get(where))
        recent[where] = format
        key = (format.name, where) if format.grouped else len(found)
        found.setdefault(key, (format, where, []))[2].append(group)
    return [(format, _joined(parts, where)) for format, where, parts in found.values()]


def anchored(groups: Iterable[SourceGroup]) -> list[SourceGroup]:
    """Return the groups with the files of each OTF2 archive in one, its anchor file first."""
    groups = list(groups)
    owner = {_trunk(group.path): group.path for group in groups if _is_anchor(group)}
    found: dict[str | int, list[SourceGroup]] = {}
    for group in groups:
        anchor = group.path if _is_anchor(group) else _anchor_of(group, owner)
        found.setdefault(len(found) if anchor is None else anchor, []).append(group)
    return [
        _joined(sorted(parts, key=lambda part: not _is_anchor(part)), str(key))
        for key, parts in found.items()
    ]


def folder_of(path: str) -> str:
    """Return the folder of a file, or its archive with the folder in it.

    Examples: ``runs.tar`` for ``runs.tar!a.json``, ``runs.tar!day`` for ``runs.tar!day/a.json``, ``.`` for
    ``a.json``.
    """
    archive, mark, inner = path.rpartition("!")
    folder = PurePosixPath(inner).parent.as_posix()
    if not mark:
        return folder
    return archive if folder == "." else f"{archive}!{folder}"


def _recognised(group: SourceGroup, recent: Format | None) -> Format:
    """Return the format of a group; the format of the previous file of the folder is tried first."""
    if recent is not None and recent.grouped and len(group.files) == 1:
        (file,) = group.files
        if file.data and recent.recognise(file.head(), file.path):
            return recent
    return catalog.recognise(group)


def _is_anchor(group: SourceGroup) -> bool:
    return len(group.files) == 1 and group.path.endswith(ANCHOR)


def _trunk(path: str) -> str:
    return path[: path.rindex(".")]


def _anchor_of(group: SourceGroup, owner: dict[str, str]) -> str | None:
    """Return the anchor file of the OTF2 archive to which a file belongs by its name, or None."""
    path = group.path
    if len(group.files) > 1 or not path.endswith((".def", ".evt", ".snap", ".marker")):
        return None
    return owner.get(_trunk(path)) or owner.get(path.rpartition("/")[0])


def _joined(parts: Sequence[SourceGroup], where: str) -> SourceGroup:
    if len(parts) == 1:
        return parts[0]
    return SourceGroup(path=where, files=tuple(file for part in parts for file in part.files))
