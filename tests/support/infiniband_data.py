"""Read real scans and forwarding tables of tests/data with the project's own parsers."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from ingest.formats.fabrics.ibnetdiscover import IBNETDISCOVER
from ingest.formats.routes import OPENSM_LFTS
from ingest.options import Options
from registry.model import Fabric
from tests.support import inputs, paths

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
    scan, tables = (inputs.file(inputs.read(f"infiniband/{name}/{file}"), file) for file in SCANS[name])
    return replace(
        inputs.fabric_in(IBNETDISCOVER.parse([scan], Options())),
        tables=OPENSM_LFTS.parse([tables], Options()).tables,
    )
