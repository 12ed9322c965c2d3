"""Darshan's logs, binary or printed: recognised and rejected, since they contain files, not messages."""

from __future__ import annotations

from collections.abc import Sequence

from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError

REASON = (
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


def _parse_darshan(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Raise `InputError` with the reason and what to record instead."""
    raise InputError(REASON, path=files[0].path)


DARSHAN = Format(
    "darshan",
    kind="profile",
    evidence="public",
    about="Darshan's log: rejected, it records file accesses, not messages",
    recognise=_recognise_darshan,
    parse=_parse_darshan,
)
