"""Darshan's logs, which tell of files and not of messages: recognised to say so, binary or printed."""

from __future__ import annotations

from collections.abc import Sequence

from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError

REASON = (
    "Darshan records what ranks read and write in files, not what they send to each other: no placement can "
    "be judged by it. Record with Open MPI's monitoring (--mca pml_monitoring_enable 2), Score-P (OTF2) or "
    "DUMPI instead"
)
_PRINTED = "# darshan log version:"


def recognise(head: str, path: str) -> bool:
    """Whether it is what darshan-parser prints, or a log: its version, as text, and numbers behind it."""
    return head.startswith(_PRINTED) or (
        head[:2] in ("2.", "3.") and "\0" in head[3:8] and path.endswith(".darshan")
    )


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Refuse.

    Raises
    ------
    InputError
        Always, with the reason and what to record instead.
    """
    raise InputError(REASON, path=files[0].path)
