"""Jobs in the graph: brought up to date, never taken away; hosts that a scan names in full, or they do."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import pytest

from registry.errors import InvalidValue, UnknownName
from registry.maintenance.deletion import delete_observation
from registry.model import Fabric, HostOrder, Job, Profile, Trace
from registry.model.intake import Intake, Receipt
from registry.pages.jobs import JobFilter
from registry.registry import Registry
from tests.support.fat_tree import at, fat_tree


@pytest.fixture
def known(registry: Registry) -> Registry:
    registry.save(Intake(cluster="toy", observed_at=at(0), fabric=fat_tree()))
    return registry


def save(registry: Registry, *jobs: Job, when: datetime | None = None, cluster: str = "toy") -> Receipt:
    return registry.save(Intake(cluster=cluster, observed_at=when, jobs=jobs))


def running(job: str = "4711", hosts: tuple[str, ...] = ("node02", "node00")) -> Job:
    texts: dict[str, Any] = {"name": "stencil", "user": "eve", "account": "hpc"}
    texts |= {"partition": "batch", "state": "RUNNING"}
    times: dict[str, Any] = {"submitted_at": at(1), "started_at": at(2)}
    ranks: dict[str, Any] = {"slots": tuple(range(1, len(hosts) + 1)), "ranks": 3, "distribution": "block"}
    return Job(id=job, hosts=hosts, source="scontrol", **texts, **times, **ranks)


def test_a_saved_job_is_read_back_and_ran_on_devices_in_order_with_slots(known: Registry) -> None:
    assert save(known, running(), when=at(3)).new("jobs") == 1
    stored = known.jobs.read("4711")
    assert (stored.id, stored.cluster, stored.profile, stored.as_of) == ("toy/4711", "toy", None, at(3))
    assert stored.job == running()
    _, rows = known.database.query(
        "MATCH (:Job {id: 'toy/4711'})-[:RAN_ON]->(:Allocation)-[o:ON]->(d:Device) "
        "RETURN d.name, o.order, o.slots ORDER BY o.order"
    )
    assert rows == [("node02", 0, 1), ("node00", 1, 2)]
    before = known.database.query("MATCH (n) RETURN count(n)")[1]
    assert save(known, running(), when=at(4)).new("jobs") == 0
    assert known.database.query("MATCH (n) RETURN count(n)")[1] == before


def test_a_later_record_updates_a_job_and_an_earlier_one_fills_what_is_open(known: Registry) -> None:
    done = Job(id="4711", state="COMPLETED", ended_at=at(9), source="sacct")
    early = Job(id="4712", state="COMPLETED", ended_at=at(9))
    save(known, running(), when=at(3))
    assert save(known, done, early, when=at(10)).new("jobs") == 2
    save(known, running("4712"), when=at(3))
    for name in ("4711", "4712"):
        stored = known.jobs.read(name)
        assert (stored.job.state, stored.job.ended_at, stored.as_of) == ("COMPLETED", at(9), at(10))
        assert (stored.job.hosts, stored.job.user) == (running().hosts, "eve")
    save(known, running("1"), Job(id="1", state="COMPLETED"))  # two records in one intake are joined
    job = known.jobs.read("1").job
    assert (job.state, job.hosts) == ("COMPLETED", running().hosts)


def shown(job: Job, slots: tuple[int, ...], *, ranks: int = 0, guessed: bool = False) -> Job:
    return replace(job, slots=slots, ranks=ranks, guessed=guessed)


EXACT = running()
OF_RANKS = shown(EXACT, (3, 3), ranks=6, guessed=True)
TURNED = shown(running(hosts=("node00", "node02")), (2, 2), guessed=True)


@pytest.mark.parametrize(
    ("records", "hosts", "slots", "guessed"),
    [
        # guessed after reported, reported later, and reported of earlier
        ([(EXACT, 3), (TURNED, 4)], EXACT.hosts, (1, 2), False),
        ([(EXACT, 3), (shown(EXACT, (5, 6)), 5)], EXACT.hosts, (5, 6), False),
        ([(shown(EXACT, (2, 2), guessed=True), 5), (EXACT, 3)], EXACT.hosts, (1, 2), False),
        # a share of ranks is a better guess than one of processors
        ([(OF_RANKS, 3), (shown(EXACT, (64, 64), guessed=True), 4)], EXACT.hosts, (3, 3), True),
        ([(OF_RANKS, 3), (shown(EXACT, (4, 4), ranks=8, guessed=True), 5)], EXACT.hosts, (4, 4), True),
        # a guess on other hosts counts
        ([(EXACT, 3), (shown(running(hosts=("node01",)), (7,), guessed=True), 4)], ("node01",), (7,), True),
    ],
)
def test_guessed_slots_do_not_replace_better_ones_of_the_same_hosts(
    known: Registry, records: list[tuple[Job, int]], hosts: Any, slots: Any, guessed: bool
) -> None:
    for record, minute in records:
        assert save(known, replace(record, state=f"AT {minute}"), when=at(minute)).new("jobs") == 1
    job = known.jobs.read("4711").job
    assert (job.hosts, job.slots, job.guessed) == (hosts, slots, guessed)
    assert job.state == f"AT {max(minute for _, minute in records)}"


def test_allocations_are_shared_and_the_later_of_two_counts(known: Registry) -> None:
    save(known, Job(id="1", state="PENDING"), when=at(1))
    allocations = "MATCH (a:Allocation) RETURN count(a)"
    assert known.database.query(allocations)[1] == [(0,)]
    save(known, running("1"), running("2"), running("3", hosts=("node00", "node02")), when=at(2))
    assert known.jobs.read("1").job.hosts == running().hosts
    assert known.database.query(allocations)[1] == [(2,)]
    save(known, running("1", hosts=("node01",)), when=at(4))
    assert known.jobs.read("1").job.hosts == ("node01",)
    ran = "MATCH (:Job {job: '1'})-[r:RAN_ON]->() RETURN count(r)"
    assert known.database.query(ran)[1] == [(2,)]  # both are kept


def test_a_job_with_an_unknown_host_is_saved_and_says_so(known: Registry) -> None:
    second, third = running("2", hosts=("login", "node00")), running("3", hosts=("login",))
    receipt = save(known, running("1"), second, third)
    assert receipt.new("jobs") == 3
    assert receipt.unknown_hosts == ("login",)
    assert receipt.warnings[-1].startswith("2 of 3 jobs ran on hosts that the fabric lacks: login; ")
    assert known.jobs.read("2").job.hosts == ("login", "node00")
    assert known.jobs.unknown_hosts(known.jobs.read("2")) == ("login",)
    assert known.jobs.unknown_hosts(known.jobs.read("1")) == ()
    joined = "MATCH (:Job {job: '2'})-[:RAN_ON]->(:Allocation)-[:ON]->(d) RETURN collect(d.name)"
    assert known.database.query(joined)[1] == [(["node00"],)]


def test_a_host_that_a_later_scan_contains_is_joined_to_the_jobs_that_named_it(known: Registry) -> None:
    save(known, running("1", hosts=("new1", "node00", "new2")), running("2", hosts=("new2", "node01")))
    grown = fat_tree()
    joined = "MATCH (j:Job)-[:RAN_ON]->(:Allocation)-[o:ON]->(d) WITH j, o, d ORDER BY j.job, o.order"
    for number, renamed in ((5, {"node02": "new2"}), (6, {"node02": "new2", "node03": "new1"})):
        names = tuple(renamed.get(name, name) for name in grown.names)
        known.save(Intake(cluster="toy", observed_at=at(number), fabric=replace(grown, names=names)))
        hosts = ["node00", "new2"] if number == 5 else ["new1", "node00", "new2"]
        _, rows = known.database.query(f"{joined} RETURN j.job, collect(d.name), collect(o.slots)")
        assert rows == [("1", hosts, [1, 2, 3][-len(hosts) :]), ("2", ["new2", "node01"], [1, 2])]
    assert known.jobs.unknown_hosts(known.jobs.read("1")) == ()
    assert known.jobs.read("1").job.hosts == ("new1", "node00", "new2")


@pytest.mark.parametrize("strict", [True, False])
def test_unknown_hosts_are_an_error_on_demand_or_if_no_host_is_known(known: Registry, strict: bool) -> None:
    before = known.database.query("MATCH (n) RETURN count(n)")[1]
    jobs = (running("1"), running("2", hosts=("nod00",)))
    with pytest.raises(UnknownName) as caught:
        known.save(Intake(cluster="toy", jobs=jobs if strict else jobs[1:], strict=strict))
    assert (caught.value.kind, caught.value.name, caught.value.close[0]) == ("host", "nod00", "node00")
    assert known.database.query("MATCH (n) RETURN count(n)")[1] == before


def test_a_host_that_was_there_once_is_known_and_a_switch_is_none(known: Registry) -> None:
    with pytest.raises(UnknownName):
        save(known, running(hosts=("leaf0",)))
    with pytest.raises(UnknownName, match="no fabric of cluster 'other' has been ingested"):
        save(known, running(), cluster="other")
    known.save(Intake(cluster="toy", observed_at=at(5), fabric=fat_tree(leaves=1)))
    assert save(known, running(hosts=("node03",))).new("jobs") == 1


def test_a_job_is_found_by_its_id_and_its_cluster(known: Registry) -> None:
    save(known, running())
    known.save(Intake(cluster="two", observed_at=at(0), fabric=fat_tree()))
    with pytest.raises(UnknownName) as caught:
        known.jobs.read("471")
    assert caught.value.close == ("4711",)
    with pytest.raises(UnknownName, match="it is in cluster toy"):
        known.jobs.read("4711", "two")
    with pytest.raises(UnknownName, match="there is no cluster 'other'; known: toy, two"):
        known.jobs.read("4711", "other")
    save(known, running(hosts=("node01",)), cluster="two")
    with pytest.raises(UnknownName, match=r"^job 4711 is in clusters toy and two; add --cluster NAME$"):
        known.jobs.read("4711")
    assert known.jobs.read("4711", "two").job.hosts == ("node01",)


def test_jobs_are_listed_latest_started_first(known: Registry) -> None:
    known.save(Intake(cluster="two", observed_at=at(0), fabric=fat_tree()))
    save(known, Job(id="a"), Job(id="b", started_at=at(1)), Job(id="c", started_at=at(2)))
    save(known, Job(id="d", started_at=at(3)), cluster="two")
    assert [stored.job.id for stored in known.jobs.list("toy")] == ["c", "b", "a"]
    assert [stored.job.id for stored in known.jobs.list()] == ["d", "c", "b", "a"]


def test_the_profile_attached_last_is_the_one_a_job_ran(known: Registry) -> None:
    sizes = {"a": 1.0, "b": 2.0}
    profiles = (Profile.from_edges([0], [1], [size], name=name) for name, size in sizes.items())
    known.save(Intake(profiles=tuple(profiles)))
    save(known, running(), running("4712"))
    for job, profile, reason in (("4711", "x", "no profile 'x'"), ("1", "a", "no job '1'")):
        with pytest.raises(UnknownName, match=reason):
            known.jobs.attach(job, profile)
    for wrong, reason in (({"4713": "a"}, "no job '4713'"), ({"4712": "x"}, "no profile 'x'")):
        with pytest.raises(UnknownName, match=reason):
            known.jobs.attach_many("toy", {"4711": "a", **wrong})
    assert known.jobs.read("4711").profile is None
    ran = "MATCH (:Job)-[r:RAN]->() RETURN count(r)"
    for _ in range(2):
        known.jobs.attach_many("toy", {"4711": "a", "4712": "a"})
    identity = known.profiles.read("a").id
    assert [known.jobs.read(job).profile for job in ("4711", "4712")] == [identity, identity]
    assert known.database.query(ran)[1] == [(2,)]
    identity = known.jobs.attach("4711", "b")
    assert known.jobs.attach("4711", identity) == identity
    assert known.jobs.read("4711").profile == identity == known.profiles.read("b").id
    assert known.database.query(ran)[1] == [(3,)]


def test_the_time_of_an_iteration_is_stated_or_that_of_the_newest_trace(known: Registry) -> None:
    save(known, running())
    plain = Profile.from_edges([0], [1], [2.0], name="plain")
    known.save(Intake(profiles=(plain,)))

    def attached(profile: str, seconds: float | None = None) -> tuple[float | None, str]:
        known.jobs.attach("4711", profile, iteration_seconds=seconds)
        stored = known.jobs.read("4711")
        return stored.iteration_seconds, stored.iteration_from

    def traced(*times: float) -> None:
        zero = np.zeros(len(times), np.int32)
        columns: dict[str, Any] = {"sender": zero, "receiver": zero + 1}
        columns |= {"bytes": zero.astype(np.int64), "tag": zero}
        messages = Trace(ranks=2, at=np.array(times), **columns)
        known.save(Intake(profiles=(messages.profile(name="traced"),), traces=(messages,)))

    assert attached("plain") == (None, "")
    assert attached("plain", 2.5) == (2.5, "stated")
    assert attached("plain") == (2.5, "stated")  # what was stated stays
    traced(0.0, 4.0)
    assert attached("traced") == (4.0, "trace")
    assert attached("traced", 3.0) == (3.0, "stated")
    assert attached("traced") == (3.0, "stated")
    for wrong in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InvalidValue, match="above zero"):
            attached("traced", wrong)
    assert known.job_pages.open("4711").stored.iteration_seconds == 3.0
    assert known.job_pages.page(JobFilter()).rows[0].stored.iteration_from == "stated"


@pytest.mark.parametrize("end", [at(9), None])
def test_a_job_that_ended_runs_again_only_if_it_started_again(known: Registry, end: datetime | None) -> None:
    done = replace(running(), state="COMPLETED", ended_at=end)
    save(known, done, when=at(10))
    for started in (None, at(2)):
        save(known, replace(running(), started_at=started), when=at(11))  # a list from before the end
        job = known.jobs.read("4711").job
        assert (job.state, job.started_at, job.ended_at) == ("COMPLETED", at(2), end)
        assert known.running("toy", at(12)).jobs == ()
    save(known, replace(running(), started_at=at(12)), when=at(13))  # put back into the queue
    job = known.jobs.read("4711").job
    assert (job.state, job.started_at, job.ended_at) == ("RUNNING", at(12), None)
    save(known, done, when=at(14))
    assert known.jobs.read("4711").job.state == "COMPLETED"


def test_a_computed_start_does_not_change_with_each_list(known: Registry) -> None:
    save(known, running(), when=at(3))
    assert save(known, replace(running(), started_at=at(3)), when=at(4)).new("jobs") == 0
    assert known.jobs.read("4711").job.started_at == at(2)
    save(known, replace(running(), started_at=at(30)), when=at(31))
    assert known.jobs.read("4711").job.started_at == at(30)


def fabric(*hosts: str) -> Fabric:
    """Hosts on one switch."""
    n = len(hosts)
    ends = list(range(n)), [n] * n
    return Fabric.from_arcs(
        [*hosts, "leaf"], ends[0] + ends[1], ends[1] + ends[0], 1.0, slots=[1] * n + [0], forwards=False
    )


def job_on(*hosts: str) -> Job:
    return Job(
        id="1", state="RUNNING", started_at=at(0), hosts=hosts, slots=(1,) * len(hosts), source="sacct"
    )


def joined(registry: Registry) -> list[str]:
    """Return the names of the devices to which the job is joined, in its order."""
    statement = "MATCH (:Job)-[:RAN_ON]->(:Allocation)-[o:ON]->(d:Device) RETURN d.name ORDER BY o.order"
    return [name for (name,) in registry.database.query(statement)[1]]


SHORT, FULL = ("n2", "n1"), ("n2.a.example", "n1.a.example")


@pytest.mark.parametrize(("of_scan", "of_job"), [(FULL, SHORT), (SHORT, FULL)])
@pytest.mark.parametrize("scan_first", [True, False])
def test_a_job_is_joined_to_hosts_with_another_domain_whichever_comes_first(
    registry: Registry, of_scan: tuple[str, ...], of_job: tuple[str, ...], scan_first: bool
) -> None:
    scan = Intake(cluster="c", observed_at=at(0), fabric=fabric(*of_scan), source="test")
    jobs = Intake(cluster="c", jobs=(job_on(*of_job),))
    other = Intake(cluster="c", observed_at=at(-1), fabric=fabric("n7"), source="test")
    if scan_first:
        registry.save(scan)
        receipt = registry.save(jobs)
        assert receipt.unknown_hosts == ()
    else:
        registry.save(other)
        mixed = Intake(cluster="c", jobs=(job_on(*of_job, "n7"),))
        assert set(registry.save(mixed).unknown_hosts) == set(of_job)
        registry.save(scan)
    assert joined(registry) == [*of_scan, *([] if scan_first else ["n7"])]
    stored = registry.jobs.read("1")
    assert registry.jobs.unknown_hosts(stored) == ()
    assert stored.job.hosts[:2] == of_job
    snapshot = registry.fabrics.read("c", at(0))
    assert [snapshot.fabric.names[v] for v in snapshot.fabric.vertices(of_job)] == list(of_scan)
    (running,) = registry.running("c", at(1)).jobs
    assert running.stored.job.hosts[:2] == of_job


def test_a_job_is_joined_again_when_a_deleted_scan_comes_back(registry: Registry) -> None:
    other = Intake(cluster="c", observed_at=at(-1), fabric=fabric("n7"), source="test")
    scan = Intake(cluster="c", observed_at=at(0), fabric=fabric(*FULL, "n7"), source="test")
    registry.save(other)
    registry.save(scan)
    registry.save(Intake(cluster="c", jobs=(job_on(*SHORT),)))
    observation = registry.fabrics.observations("c")[-1]
    delete_observation(registry.database, observation.id)
    assert joined(registry) == []
    registry.save(scan)
    assert joined(registry) == list(FULL)


def test_hosts_of_which_several_could_be_meant_are_unknown(registry: Registry) -> None:
    registry.save(
        Intake(cluster="c", observed_at=at(0), fabric=fabric("n1.a", "n1.b", "n2.a"), source="test")
    )
    receipt = registry.save(Intake(cluster="c", jobs=(job_on("n1", "n2"),)))
    assert receipt.unknown_hosts == ("n1",)
    with pytest.raises(UnknownName, match=r"there is no host 'n1'; closest: n1\.a, n1\.b"):
        registry.save(Intake(cluster="c", jobs=(job_on("n1"),)))


def test_a_reported_placement_is_on_hosts_with_another_domain(registry: Registry) -> None:
    registry.save(Intake(cluster="c", observed_at=at(0), fabric=fabric(*FULL), source="test"))
    registry.save(Intake(cluster="c", jobs=(job_on(*SHORT),)))
    order = HostOrder(hosts=("n1", "n2", "n1", "n2"), source="test", name="map", job="1")
    receipt = registry.save(Intake(cluster="c", placements=(order,)))
    stored = registry.placements.read(receipt.ids("placements")[0])
    assert stored.hosts == ("n1.a.example", "n2.a.example") * 2
