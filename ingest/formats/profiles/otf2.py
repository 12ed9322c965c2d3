"""Recordings of MPI programs: OTF2 archives; mpiP's reports and Darshan's logs are refused."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from ingest.formats.profiles import otf2_events
from ingest.formats.profiles.shared import profile_of, self_edge_warnings, stem
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import ANCHOR, SourceFile
from registry.errors import InputError
from registry.installation import require

SECONDS = 3600
"""Longest time for reading one archive."""


def _recognise_otf2(head: str, path: str) -> bool:
    """Return True if the first bytes are those of a file of such an archive."""
    return head[:1] in "\x01\x02\x03" and head[1:2] == "B" and (head[2:6] == "OTF2" or "\0" in head[2:16])


def _parse_otf2(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the profile of one archive; missing files, and inter-communicators, are errors.

    Raises:
        MissingExtra: The library ``otf2`` is not installed.
    """
    anchors = [file for file in files if file.path.endswith(ANCHOR)]
    if len(anchors) != 1:
        reason = (
            f"an OTF2 archive has one file {ANCHOR} with its .def and its folder: ingest the whole archive"
        )
        raise InputError(reason, path=files[0].path)
    if len(files) == 1:
        raise InputError("the .def file and the folder of the anchor file are missing", path=files[0].path)
    require("otf2", "otf2")
    sums = _read(files, anchors[0])
    columns = list(zip(*sums["edges"], strict=True)) or [()] * 4
    profile = profile_of(columns, sums["ranks"], _place(anchors[0].path), OTF2.name, options)
    warnings = list(self_edge_warnings(profile))
    if sums["collectives"]:
        warnings.append(
            f"{sums['collectives']} events of collectives are ignored: their messages are not recorded"
        )
    return Parsed(profiles=(profile,), warnings=tuple(warnings))


def _place(path: str) -> str:
    """Return what names the recording: the anchor, or its archive or folder under Score-P's usual name."""
    if stem(path) != "traces":
        return path
    archive, _, inner = path.rpartition("!")
    folder = PurePosixPath(inner).parent
    return archive or (str(folder) if folder.name else path)


def _read(files: Sequence[SourceFile], anchor: SourceFile) -> dict[str, Any]:
    """Return the sums of the archive, read in a separate process."""
    trunk = PurePosixPath(anchor.path).stem
    base = anchor.path[: -len(f"{trunk}{ANCHOR}")]
    with tempfile.TemporaryDirectory(prefix="almanac-otf2-") as folder:
        for file in files:
            inner = (
                PurePosixPath(file.path.removeprefix(base))
                if file is not anchor
                else PurePosixPath(f"{trunk}{ANCHOR}")
            )
            if inner.is_absolute() or ".." in inner.parts or not 1 <= len(inner.parts) <= 2:
                raise InputError("the file does not belong to the archive", path=file.path)
            target = Path(folder, inner)
            try:
                target.parent.mkdir(exist_ok=True)
                target.write_bytes(file.data)
            except (OSError, ValueError) as error:  # a file instead of a folder, or an invalid name
                reason = f"the file cannot be stored with the others: {error.args[-1]}"
                raise InputError(reason, path=file.path) from error
        return _run(Path(folder, f"{trunk}{ANCHOR}"), Path(folder, "almanac-sums.json"), anchor.path)


def _run(anchor: Path, out: Path, path: str) -> dict[str, Any]:
    command = [sys.executable, "-I", otf2_events.__file__, str(anchor), str(out)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)  # noqa: S603
    except subprocess.TimeoutExpired as error:
        raise InputError(f"reading took more than {SECONDS} s", path=path) from error
    if done.returncode != 0 or not out.is_file():
        raise InputError("the archive is damaged: the OTF2 library failed", path=path)
    sums: dict[str, Any] = json.loads(out.read_text("utf-8"))
    if "error" in sums:
        raise InputError(f"unreadable archive: {sums['error']}".split("\n")[0], path=path)
    return sums


OTF2 = Format(
    "otf2",
    kind="profile",
    evidence="real",
    about="profile: OTF2 archive of Score-P or TAU: anchor file, folder or tar",
    recognise=_recognise_otf2,
    parse=_parse_otf2,
    grouped=True,
)
"""A communication profile from an OTF2 archive of Score-P, TAU or Extrae's converter.

An archive consists of ``traces.otf2`` (the anchor), ``traces.def`` and a folder ``traces`` with the events of
each location. MpiSend and MpiIsend are summed; receivers are converted from ranks of their communicator. The
library ``otf2`` reads the archive in a separate process and from a temporary folder, since it reads files
only.
"""


def _refuse(reason: str, files: Sequence[SourceFile], options: Options) -> Parsed:
    raise InputError(reason, path=files[0].path)


_NO_MESSAGES = (
    "Darshan records file accesses of ranks, not messages between them, so that no placement can be judged "
    "by it. Record with Open MPI's monitoring (--mca pml_monitoring_enable 2), Score-P (OTF2) or "
    "DUMPI instead"
)
_PRINTED = "# darshan log version:"


def _recognise_darshan(head: str, path: str) -> bool:
    """Return True if the text is output of darshan-parser, or a log (a version and binary numbers)."""
    return head.startswith(_PRINTED) or (
        head[:2] in ("2.", "3.") and "\0" in head[3:8] and path.endswith(".darshan")
    )


DARSHAN = Format(
    "darshan",
    kind="profile",
    evidence="public",
    about="Darshan's log: rejected, it records file accesses, not messages",
    recognise=_recognise_darshan,
    parse=partial(_refuse, _NO_MESSAGES),
)
"""Darshan's logs, binary or printed: recognised and rejected, since they contain files, not messages."""


_NO_PAIRS = (
    "mpiP sums messages by call site, not by pairs of ranks: no placement can be judged by it. Record with "
    "Open MPI's monitoring (--mca pml_monitoring_enable 2), Score-P (OTF2) or DUMPI instead"
)


def _recognise_mpip(head: str, path: str) -> bool:
    """Return True if the first line is mpiP's."""
    first = next((line for line in head.split("\n") if line.strip()), "")
    return first.startswith("@ mpiP") or (first.startswith("@") and "mpiP" in first)


MPIP = Format(
    "mpip",
    kind="profile",
    evidence="real",
    about="mpiP's report: rejected, it does not contain traffic between pairs of ranks",
    recognise=_recognise_mpip,
    parse=partial(_refuse, _NO_PAIRS),
)
"""mpiP's report: recognised and rejected, since it contains no traffic between pairs of ranks."""
