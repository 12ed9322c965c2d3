"""A registry with the shipped demo and a fabric that changed, and browsers."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import streamlit as st

import almanac
from almanac.demo.demo import CLUSTER
from almanac.demo.demo import fill as fill_demonstration
from ingest.options import Options
from ingest.pipeline import ingest
from mapping.placement.search import SearchOptions
from mapping.questions.live import traffic
from mapping.questions.place import PlacementRequest, place
from mapping.traffic.names import link_text
from registry.database.driver import Database
from registry.database.embedded_server import ServerAddress
from registry.model import Job
from registry.model.intake import Intake
from registry.registry import Registry
from tests.conftest import empty
from tests.support import paths, servers
from tests.support.fat_tree import at
from tests.support.small_fabrics import ring_of_switches

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from bench.support.served_dashboard import Served
    from tests.support.browsing import Visitor

DATA = paths.DATA
DEMO = Path(almanac.__path__[0]) / "demo_data"
MARKUP = "<b>bold</b> **x** :red[y] [l](http://e.invalid) `c` $a$"
"""A job name that would show if it were taken for markup."""
SCANNED = datetime(2026, 1, 1, 8, 30, 15, tzinfo=UTC)
RESCANNED = SCANNED + timedelta(hours=4)
Connect = Callable[[], Registry]


@dataclass(frozen=True, kw_only=True)
class Filled:
    """Where the filled registry is, and ids in it: two placements of job 4711, one of no job."""

    address: ServerAddress
    first: str
    second: str
    alone: str

    def connect(self) -> Registry:
        return servers.opened(self.address)


@pytest.fixture(scope="session")
def filled(embedded_server: ServerAddress) -> Filled:
    address, (first, second, alone) = servers.filled("pages", fill)
    return Filled(address=address, first=first, second=second, alone=alone)


def fill(registry: Registry) -> tuple[str, str, str]:
    """The demo's fabric, job and profile; a small fabric before and after two cables were lost."""
    tree = DATA / "infiniband" / "fattree2-64-broken-link"
    ingest(registry, [DEMO / "ndr-dgx.ibnetdiscover", DEMO / "opensm-lfts.dump.gz"], Options(cluster="ndr"))
    ingest(registry, [DEMO / "slurm_job.txt"], Options(cluster="ndr"))
    ingest(registry, [DEMO / "hpcg_16_64.tar.gz"], Options(name="hpcg"))
    ingest(registry, [DATA / "edges" / "npb_cg_S_16.csv.gz"], Options(name="cg"))
    ingest(registry, [tree / "before.ibnetdiscover"], Options(cluster="tree", observed_at=SCANNED))
    ingest(registry, [tree / "ibnetdiscover.txt"], Options(cluster="tree", observed_at=RESCANNED))
    waiting = Job(id="9", name=MARKUP, user="eve", state="PENDING", hosts=("node0001",), slots=(4,))
    registry.save(Intake(cluster="tree", jobs=(waiting,), source="test", observed_at=RESCANNED))
    hosts = tuple(f"node{number:04}" for number in range(1, 9))
    short, long = SearchOptions(steps=2000), SearchOptions(steps=60_000, seed=1)
    requests = (
        PlacementRequest(profile="hpcg", job="4711", cluster="ndr", options=short),
        PlacementRequest(profile="hpcg", job="4711", cluster="ndr", options=long),
        PlacementRequest(profile="cg", cluster="tree", hosts=hosts, slots=2, options=short),
    )
    first, second, alone = (place(registry, request).record_id for request in requests)
    return first, second, alone


RING = ring_of_switches(8)


@pytest.fixture(scope="module")
def filled_neo4j(neo4j_database: Database) -> Iterator[Database]:
    """Neo4j with the same and a ring of switches, which no other worker uses meanwhile."""
    with servers.neo4j_alone():
        empty(neo4j_database)
        registry = Registry(neo4j_database)
        fill(registry)
        registry.save(Intake(cluster="ring", observed_at=at(0), fabric=RING))
        yield neo4j_database


@pytest.fixture(scope="session")
def demonstration(embedded_server: ServerAddress) -> ServerAddress:
    """Return a registry with all that ``almanac demo`` saves."""
    return servers.filled("demonstration", demonstrate)[0]


def demonstrate(registry: Registry) -> None:
    fill_demonstration(registry)


@pytest.fixture(scope="session")
def connect(demonstration: ServerAddress) -> Connect:
    """Open what ``almanac demo`` saves."""
    return lambda: servers.opened(demonstration)


@pytest.fixture(scope="session")
def hottest(connect: Connect) -> tuple[str, str]:
    """Return the demonstration's link with the longest time, and its switch, as addresses name them."""
    with connect() as registry:
        live = traffic(registry, CLUSTER)
    row = int(np.argmax(live.shared.seconds))
    ends = [int(live.fabric.links.source[row]), int(live.fabric.links.target[row])]
    switch = next(vertex for vertex in ends if vertex in live.fabric.switches)
    return link_text(live.fabric, row), live.fabric.names[switch]


@pytest.fixture
def nothing(server: ServerAddress, database: Database) -> Connect:
    """Open an empty registry."""
    return lambda: servers.opened(server)


@pytest.fixture(scope="session")
def browser(processes: None) -> Iterator[Browser]:
    """The system's Chromium, drawing in software."""
    from bench.support.served_dashboard import chromium

    if shutil.which("chromium") is None:
        reason = "no chromium on this machine: apt-get install chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with chromium() as launched:
        yield launched


@pytest.fixture(scope="session")
def visitor(browser: Browser) -> Iterator[Visitor]:
    """One who looks at page after page."""
    from tests.support.browsing import visiting

    with visiting(browser) as opened:
        yield opened


@pytest.fixture(scope="session")
def served(filled: Filled, processes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The dashboard on `filled`."""
    from bench.support.served_dashboard import serve

    with serve(servers.variables(filled.address), tmp_path_factory.mktemp("served")) as running:
        yield running


@pytest.fixture(scope="session")
def demo(
    demonstration: ServerAddress, processes: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """The dashboard on what ``almanac demo`` saves."""
    from bench.support.served_dashboard import serve

    with serve(servers.variables(demonstration), tmp_path_factory.mktemp("demo")) as running:
        yield running


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    """What Streamlit kept for other tests is gone; open registries are closed."""
    st.cache_resource.clear()
    yield
    st.cache_resource.clear()
