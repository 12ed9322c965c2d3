"""mpiP's report: recognised and rejected, since it contains no traffic between pairs of ranks."""

from __future__ import annotations

from collections.abc import Sequence

from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError

REASON = (
    "mpiP sums messages by call site, not by pairs of ranks: no placement can be judged by it. Record with "
    "Open MPI's monitoring (--mca pml_monitoring_enable 2), Score-P (OTF2) or DUMPI instead"
)


def _recognise_mpip(head: str, path: str) -> bool:
    """Return True if the first line is mpiP's."""
    first = next((line for line in head.split("\n") if line.strip()), "")
    return first.startswith("@ mpiP") or (first.startswith("@") and "mpiP" in first)


def _parse_mpip(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Raise `InputError` with the reason and what to record instead."""
    raise InputError(REASON, path=files[0].path)


MPIP = Format(
    "mpip",
    kind="profile",
    evidence="real",
    about="mpiP's report: rejected, it does not contain traffic between pairs of ranks",
    recognise=_recognise_mpip,
    parse=_parse_mpip,
)
