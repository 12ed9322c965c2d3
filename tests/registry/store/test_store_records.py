"""What every kind of record promises: stored once, found by a beginning of its id, listed, refused whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from registry.errors import DatabaseError, UnknownName
from registry.model import HostOrder, Job, Simulation, Trace
from registry.model.intake import Intake
from registry.registry import Registry
from registry.store.circuit_plans import CircuitPlanRecord
from registry.store.placement_rows import PlacementRecord
from registry.store.simulations import SimulationRecord
from tests.registry.model.test_circuit_plan import circuit_plan, reconfiguration_record
from tests.registry.model.test_profile_trace import simulation, trace
from tests.support.busy_cluster import rows_of
from tests.support.fat_tree import at, fat_tree, tree_tables
from tests.support.full_cluster import HOSTS, measured_run


@pytest.fixture
def known(registry: Registry) -> Registry:
    """A cluster of four hosts with tables and two jobs, three ranks' profile and trace, and a placement."""
    profile = trace().profile(name="run", application="cg")
    jobs = tuple(Job(id=job, hosts=HOSTS, slots=(1, 1, 1, 1), state="RUNNING") for job in ("1", "2"))
    seen = Intake(cluster="toy", observed_at=at(0), fabric=fat_tree(), tables=tree_tables(), jobs=jobs)
    registry.save(replace(seen, profiles=(profile,), traces=(trace(),)))
    registry.placements.save(placement_on(registry))
    return registry


def placement_on(known: Registry, seed: int | None = None, **changed: Any) -> PlacementRecord:
    snapshot = known.fabrics.read("toy")
    placed = HostOrder(hosts=("node03", "node03", "node00"), source="test").on(snapshot.fabric)
    record = PlacementRecord(cluster="toy", content=snapshot.id, placement=replace(placed, seed=seed))
    return replace(record, **{"profile": known.profiles.read("run").id} | changed)


def plan_on(known: Registry, **changed: Any) -> CircuitPlanRecord:
    profile = known.profiles.read("run").id
    fields = {"profiles": (profile, profile), "ranks": (3, 3), "jobs": ("1", "2"), "hosts": HOSTS}
    plan = circuit_plan(node_of_vertex=[0, 1, 3, 2, 2, 1])
    return reconfiguration_record(**{"cluster": "toy", "plan": plan, **fields, **changed})


def run_on(known: Registry, **changed: Any) -> Simulation:
    carried = np.zeros(len(known.fabrics.read("toy").fabric.links))
    carried[[1, 4]] = [60.0, 40.0]
    return simulation(**{"link_bytes": carried, "link_busy_seconds": carried / 50e9, **changed})


def simulation_on(known: Registry, **changed: Any) -> SimulationRecord:
    """A run of the first trace, with everything filled in."""
    snapshot = known.fabrics.read("toy")
    first = known.traces.list()[-1]
    record = SimulationRecord(
        placement=known.placements.history()[-1].id,
        content=snapshot.id,
        tables=snapshot.routing,
        profile=first.profile,
        trace=first.id,
        simulation=run_on(known),
        parameters={"scale": 2.5, "packet_bytes": 4096, "virtual": True, "buffer": "credits"},
        wall_seconds=1.5,
        code_version="1.2",
    )
    return replace(record, **changed)


def save_trace(registry: Registry, saved: Trace, name: str = "run") -> str:
    """Save a trace with the profile that is counted from it, and return its id."""
    profile = saved.profile(name=name, application="cg")
    return registry.save(Intake(profiles=(profile,), traces=(saved,))).ids("traces")[0]


class Kind(NamedTuple):
    """A kind of record: its attribute of a registry, how one of a number is made, saved again and damaged."""

    name: str
    store: str
    make: Callable[[Registry, int], Any]
    damage: str
    slower: Callable[[Any], Any] = lambda record: record
    listed: str = "list"

    def save(self, known: Registry, record: Any) -> str:
        saved: str = save_trace(known, record) if self is TRACE else getattr(known, self.store).save(record)
        return saved

    def saved(self, known: Registry, number: int) -> str:
        return self.save(known, self.make(known, number))

    def read(self, known: Registry, identity: str) -> Any:
        return getattr(known, self.store).read(identity)

    def rows(self, known: Registry, *asked: str, **cut: int) -> Any:
        return getattr(getattr(known, self.store), self.listed)(*asked, **cut)

    def ids(self, known: Registry, *asked: str, **cut: int) -> list[str]:
        return [row.id for row in self.rows(known, *asked, **cut)]


PLAN = Kind(
    *("circuit plan", "circuit_plans"),
    lambda known, number: plan_on(known, plan=circuit_plan(node_of_vertex=[0, 1, 3, 2, 2, 1], seed=number)),
    "MATCH (n:Reconfiguration) SET n.method = 'guess'",
    lambda record: replace(record, wall_seconds=9.0),
)
SIMULATION = Kind(
    *("simulation", "simulations"),
    lambda known, number: simulation_on(known, simulation=run_on(known, seed=number)),
    "MATCH (n:Simulation) SET n.mode = 'letters'",
    lambda record: replace(record, wall_seconds=9.0),
)
TRACE = Kind(
    *("trace", "traces"),
    lambda known, number: trace().scaled(2.0 + number),
    "MATCH (n:Trace) SET n.ranks = 1",
)
PLACEMENT = Kind(
    *("placement", "placements"),
    placement_on,
    "MATCH (n:Placement), (t:Trace) SET n.host_of_rank = t.blob",
    lambda record: replace(record, placement=replace(record.placement, seconds=9.0, steps=1)),
    "history",
)
MEASURED = Kind(
    *("measured run", "measured_runs"),
    lambda known, number: measured_run(wall_seconds=60.0 + number),
    "MATCH (n:MeasuredRun) SET n.wall_seconds = -1.0",
)
OF_CLUSTER = (PLAN, SIMULATION, PLACEMENT, MEASURED)


def named(kind: object) -> str:
    return kind.name if isinstance(kind, Kind) else ""


@pytest.mark.parametrize("kind", [*OF_CLUSTER, TRACE], ids=named)
def test_the_same_again_adds_nothing(known: Registry, kind: Kind) -> None:
    record = kind.make(known, 1)
    identity = kind.save(known, record)
    before = known.database.query("MATCH (n) RETURN count(n)")[1]
    assert kind.save(known, kind.slower(record)) == identity
    assert known.database.query("MATCH (n) RETURN count(n)")[1] == before
    assert getattr(kind.read(known, identity), "wall_seconds", 1.5) != 9.0


@pytest.mark.parametrize("kind", [*OF_CLUSTER, TRACE], ids=named)
def test_a_record_is_found_by_a_beginning_of_its_id(known: Registry, kind: Kind) -> None:
    identity, other = kind.saved(known, 1), kind.saved(known, 2)
    assert identity != other
    assert [kind.read(known, name).id for name in (identity[:8], identity)] == [identity, identity]
    for name in (identity[0], "", "x"):
        with pytest.raises(UnknownName) as caught:
            kind.read(known, name)
        assert caught.value.kind == kind.name


@pytest.mark.parametrize("kind", OF_CLUSTER, ids=named)
def test_the_newest_are_listed_first_and_the_database_cuts_the_list(known: Registry, kind: Kind) -> None:
    saved = [kind.saved(known, number) for number in range(3)][::-1]
    for asked in ((), ("toy",)):
        assert kind.ids(known, *asked)[:3] == saved
        assert kind.ids(known, *asked, limit=2) == saved[:2]
        if kind is not PLACEMENT:  # of which one row holds all
            assert rows_of(known, lambda counted, asked=asked: kind.rows(counted, *asked)) == 3  # type: ignore[misc]
            assert rows_of(known, lambda counted, asked=asked: kind.rows(counted, *asked, limit=2)) == 2  # type: ignore[misc]
    assert kind.ids(known, "other") == []


@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        (PLAN, ("cluster", "profiles", "jobs")),
        (SIMULATION, ("placement", "content", "profile", "trace")),
        (PLACEMENT, ("content", "profile", "job")),
        (MEASURED, ("cluster", "profile", "placement")),
    ],
    ids=named,
)
def test_what_a_record_names_must_be_there_before_it(known: Registry, kind: Kind, missing: Any) -> None:
    record = kind.make(known, 1)
    before = known.database.query("MATCH (n) RETURN count(n)")[1]
    for name in missing:
        value = ("1", "none") if name.endswith("s") else "none"
        with pytest.raises(UnknownName) as caught:
            kind.save(known, replace(record, **{name: value}))
        assert caught.value.kind == name.rstrip("s").replace("content", "snapshot")
    assert known.database.query("MATCH (n) RETURN count(n)")[1] == before


@pytest.mark.parametrize("kind", OF_CLUSTER, ids=named)
def test_saving_counts_as_a_write_of_the_cluster(known: Registry, kind: Kind) -> None:
    (before,) = known.fabrics.clusters()
    kind.saved(known, 1)
    (after,) = known.fabrics.clusters()
    assert after.version > before.version


@pytest.mark.parametrize("kind", [*OF_CLUSTER, TRACE], ids=named)
def test_a_damaged_record_is_an_error(known: Registry, kind: Kind) -> None:
    identity = kind.saved(known, 1)
    known.database.write(lambda transaction: transaction.run(kind.damage))
    with pytest.raises(DatabaseError, match="damaged"):
        kind.read(known, identity)
