"""Tables with two LIDs a port, as different tools print them: a pair's load is split over both ways."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ingest.formats.routes.dialects import DUMP_FTS, FDBS
from mapping.routing import forwarding_tables
from registry.model import Fabric
from tests.support.infiniband_data import infiniband
from tests.support.inputs import parse, read

RUN = "infiniband/fattree2-64-lmc1"
FABRIC = infiniband("fattree2-64-lmc1")


def walked(fabric: Fabric, start: int, lid: int) -> list[int]:
    """Rows of the links that a packet takes from a host's cable to the owner of a LID."""
    links, tables = fabric.links, fabric.tables
    assert tables is not None
    row_of = {int(guid): row for row, guid in enumerate(tables.switch_guid)}
    leaving = {
        end: row
        for row, end in enumerate(zip(links.source.tolist(), links.source_port.tolist(), strict=True))
    }
    row = leaving[start, 1]
    path = [row]
    while fabric.forwards[links.target[row]]:
        at = int(links.target[row])
        row = leaving[at, int(tables.ports[row_of[int(fabric.guid[at])], lid])]
        path.append(row)
    return path


def test_half_of_the_load_takes_the_way_of_each_lid() -> None:
    adapters = FABRIC.adapters
    hosts = FABRIC.hosts[::7]
    routes = forwarding_tables.build(FABRIC, hosts)
    lid_of = dict(zip(adapters.host[adapters.port_adapter].tolist(), adapters.port_lid.tolist(), strict=True))
    split = 0
    for i, j in np.ndindex(len(hosts), len(hosts)):
        if i == j:
            continue
        expected = np.zeros(len(FABRIC.links))
        for lid in (lid_of[int(hosts[j])], lid_of[int(hosts[j])] + 1):
            expected[walked(FABRIC, int(hosts[i]), lid)] += 0.5
        assert np.array_equal(routes.link_bytes([i], [j], [1.0]), expected)
        split += int((expected == 0.5).any())
    assert split > len(hosts)


@pytest.mark.parametrize(
    ("parser", "name"),
    [(FDBS, "opensm.fdbs.gz"), (DUMP_FTS, "dump_fts.txt.gz"), (DUMP_FTS, "dump_fts-n.txt.gz")],
    ids=["fdbs", "dump_fts", "dump_fts -n"],
)
def test_tables_that_name_no_owners_split_the_load_alike(parser: object, name: str) -> None:
    tables = parse(parser, read(f"{RUN}/{name}")).tables  # type: ignore[arg-type]
    hosts = FABRIC.hosts[::5]
    known = forwarding_tables.build(FABRIC, hosts)
    other = forwarding_tables.build(replace(FABRIC, tables=tables), hosts)
    source, target = np.nonzero(~np.eye(len(hosts), dtype=bool))
    amounts = np.arange(1.0, len(source) + 1)
    assert np.array_equal(
        known.link_bytes(source, target, amounts), other.link_bytes(source, target, amounts)
    )
