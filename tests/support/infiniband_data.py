"""Read real scans and forwarding tables of tests/data with the project's own parsers."""

from __future__ import annotations

import gzip
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from ingest.formats.fabrics import ibnetdiscover
from ingest.formats.routes.dialects import OPENSM_LFTS
from ingest.options import Options
from ingest.reading.source import SourceFile
from registry.model import Fabric
from tests.support import paths

DATA = paths.DATA
SCANS = {
    "fattree2-64-traffic": ("ibnetdiscover.txt", "opensm-lfts.dump"),
    "irregular-16sw-updown": ("ibnetdiscover.txt", "opensm-lfts.dump"),
    "irregular-16sw-lmc1": ("ibnetdiscover.txt", "opensm-lfts.dump.gz"),
    "fattree2-64-lmc1": ("ibnetdiscover.txt", "opensm-lfts.dump.gz"),
    "torus-4x4x4-dor": ("ibnetdiscover.txt", "opensm-lfts.dump.gz"),
    "mixed-speeds-oversubscribed": ("ibnetdiscover.txt", "opensm-lfts.dump"),
    "fattree2-64-dead-spine": ("ibnetdiscover.txt", "opensm-lfts.dump"),
    "ndr-dgx-minhop": ("../../public/ndr-dgx.ibnetdiscover", "opensm-lfts.dump.gz"),
}


@cache
def infiniband(name: str) -> Fabric:
    """Return the fabric of a folder of tests/data/infiniband, with its tables."""
    scan, tables = (_source(DATA / "infiniband" / name / file) for file in SCANS[name])
    fabric = ibnetdiscover.parse([scan], Options()).fabric
    assert fabric is not None
    return replace(fabric, tables=OPENSM_LFTS.parse([tables], Options()).tables)


def _source(path: Path) -> SourceFile:
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    return SourceFile(path=str(path), data=data, modified_at=datetime(2025, 1, 1, tzinfo=UTC))
