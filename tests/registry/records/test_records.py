"""What every kind of record promises: stored once, found by a beginning of its id, listed, refused whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from registry.errors import DatabaseError, UnknownName
from registry.model import Allocation, HostOrder, Job, Simulation, Trace
from registry.model.circuit_plan import CircuitRoutes
from registry.model.intake import Intake
from registry.model.measured_run import MeasuredRun
from registry.records.circuit_plans import CircuitPlanRecord
from registry.records.placements.records import PlacementRecord
from registry.records.simulations import SimulationRecord
from registry.registry import Registry
from tests.registry.model.test_circuit_plan import circuit_plan, reconfiguration_record
from tests.registry.model.test_trace import simulation, trace
from tests.support.busy_cluster import rows_of
from tests.support.fat_tree import at, fat_tree, tree_tables
from tests.support.full_cluster import HOSTS, measured_run


@pytest.fixture
def known(registry: Registry) -> Registry:
    """A cluster of four hosts with tables and two jobs, three ranks' profile and trace, and a placement."""
    profile = trace().profile(name="run", application="cg")
    jobs = tuple(Job(id=job, hosts=HOSTS, slots=(1, 1, 1, 1), state="RUNNING") for job in ("1", "2"))
    registry.save(
        Intake(
            cluster="toy",
            observed_at=at(0),
            fabric=fat_tree(),
            tables=tree_tables(),
            profiles=(profile,),
            traces=(trace(),),
            jobs=jobs,
        )
    )
    registry.placements.save(placement_on(registry))
    return registry


def placement_on(known: Registry, seed: int | None = None, **changed: Any) -> PlacementRecord:
    """A placement of the profile's ranks."""
    snapshot = known.fabrics.read("toy")
    placement = HostOrder(hosts=("node03", "node03", "node00"), source="test").on(snapshot.fabric)
    record = PlacementRecord(
        cluster="toy",
        content=snapshot.id,
        profile=known.profiles.read("run").id,
        placement=replace(placement, seed=seed),
    )
    return replace(record, **changed)


def plan_on(known: Registry, **changed: Any) -> CircuitPlanRecord:
    """A plan for both jobs on the cluster's switch."""
    profile = known.profiles.read("run").id
    record = reconfiguration_record(
        cluster="toy",
        hosts=HOSTS,
        profiles=(profile, profile),
        ranks=(3, 3),
        jobs=("1", "2"),
        plan=circuit_plan(node_of_vertex=[0, 1, 3, 2, 2, 1]),
    )
    return replace(record, **changed)


def run_on(known: Registry, **changed: Any) -> Simulation:
    """A run over the links of the fabric."""
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


def same(one: Any, other: Any) -> bool:
    """Check that two data types hold the same, arrays and nested types compared by value."""
    for field in fields(one):
        left, right = getattr(one, field.name), getattr(other, field.name)
        if isinstance(left, CircuitRoutes | Allocation):
            assert same(left, right)
            continue
        both = (np.asarray(left), np.asarray(right))
        assert np.array_equal(*both, equal_nan=both[0].dtype.kind == "f"), field.name
    return True


class Kind(NamedTuple):
    """A kind of record: how one of a number is made and saved, listed and damaged."""

    name: str
    make: Callable[[Registry, int], Any]
    save: Callable[[Registry, Any], str]
    read: Callable[[Registry], Callable[[str], Any]]
    rows: Callable[..., Any]
    damage: str
    slower: Callable[[Any], Any] = lambda record: record

    def saved(self, known: Registry, number: int) -> str:
        """Save the record of a number; return its id."""
        return self.save(known, self.make(known, number))

    def ids(self, known: Registry, *asked: str, **cut: int) -> list[str]:
        """Return the ids of the list."""
        return [row.id for row in self.rows(known, *asked, **cut)]


def numbered_plan(known: Registry, number: int) -> CircuitPlanRecord:
    return plan_on(known, plan=circuit_plan(node_of_vertex=[0, 1, 3, 2, 2, 1], seed=number))


def numbered_run(known: Registry, number: int) -> MeasuredRun:
    return measured_run(wall_seconds=60.0 + number)


PLAN = Kind(
    "circuit plan",
    numbered_plan,
    lambda known, record: known.circuit_plans.save(record),
    lambda known: known.circuit_plans.read,
    lambda known, *asked, **cut: known.circuit_plans.list(*asked, **cut),
    "MATCH (n:Reconfiguration) SET n.method = 'guess'",
    lambda record: replace(record, wall_seconds=9.0),
)
SIMULATION = Kind(
    "simulation",
    lambda known, number: simulation_on(known, simulation=run_on(known, seed=number)),
    lambda known, record: known.simulations.save(record),
    lambda known: known.simulations.read,
    lambda known, *asked, **cut: known.simulations.list(*asked, **cut),
    "MATCH (n:Simulation) SET n.mode = 'letters'",
    lambda record: replace(record, wall_seconds=9.0),
)
TRACE = Kind(
    "trace",
    lambda known, number: trace().scaled(2.0 + number),
    save_trace,
    lambda known: known.traces.read,
    lambda known: known.traces.list(),
    "MATCH (n:Trace) SET n.ranks = 1",
)
PLACEMENT = Kind(
    "placement",
    placement_on,
    lambda known, record: known.placements.save(record),
    lambda known: known.placements.read,
    lambda known, *asked, **cut: known.placements.history(*asked, **cut),
    "MATCH (n:Placement), (t:Trace) SET n.host_of_rank = t.blob",
    lambda record: replace(record, placement=replace(record.placement, seconds=9.0, steps=1)),
)
MEASURED = Kind(
    "measured run",
    numbered_run,
    lambda known, record: known.measured_runs.save(record),
    lambda known: known.measured_runs.read,
    lambda known, *asked, **cut: known.measured_runs.list(*asked, **cut),
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
    stored = kind.read(known)(identity)
    assert getattr(stored, "wall_seconds", 1.5) != 9.0


@pytest.mark.parametrize("kind", [*OF_CLUSTER, TRACE], ids=named)
def test_a_record_is_found_by_a_beginning_of_its_id(known: Registry, kind: Kind) -> None:
    identity, other = kind.saved(known, 1), kind.saved(known, 2)
    assert identity != other
    read = kind.read(known)
    assert (read(identity[:8]).id, read(identity).id) == (identity, identity)
    for name in (identity[0], "", "x"):
        with pytest.raises(UnknownName) as caught:
            read(name)
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
        (PLAN, {"cluster": "cluster", "profiles": "profile", "jobs": "job"}),
        (
            SIMULATION,
            {"placement": "placement", "content": "snapshot", "profile": "profile", "trace": "trace"},
        ),
        (PLACEMENT, {"content": "snapshot", "profile": "profile", "job": "job"}),
        (MEASURED, {"cluster": "cluster", "profile": "profile", "placement": "placement"}),
    ],
    ids=named,
)
def test_what_a_record_names_must_be_there_and_nothing_else_is_written(
    known: Registry, kind: Kind, missing: dict[str, str]
) -> None:
    record = kind.make(known, 1)
    before = known.database.query("MATCH (n) RETURN count(n)")[1]
    for name, what in missing.items():
        value = ("1", "none") if name.endswith("s") else "none"
        with pytest.raises(UnknownName) as caught:
            kind.save(known, replace(record, **{name: value}))
        assert caught.value.kind == what
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
        kind.read(known)(identity)
