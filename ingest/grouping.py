"""Grouping of files into sources: the files of one recording, or of one site.

If the format of files is made of several files, those of one folder or archive become one source; formats are
recognised by content. The files of an OTF2 archive are in two folders and identified by their names: beside
``traces.otf2`` are ``traces.def`` and the folder ``traces`` with one or two files per location.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from ingest import catalog
from ingest.parsed import Format
from ingest.reading.source import ANCHOR, SourceGroup


def gather(groups: Iterable[SourceGroup], name: str | None = None) -> list[tuple[Format, SourceGroup]]:
    """Return each source with its format, in the order of the files.

    Parameters
    ----------
    groups : iterable of SourceGroup
        Files as returned by `ingest.reading.source.read_paths`.
    name : str, optional
        Name of the format of all files (default: recognised by content).

    Raises
    ------
    UnknownName
        There is no format of that name.
    UnknownFormat, InputError
        As `ingest.catalog.recognise`.
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
