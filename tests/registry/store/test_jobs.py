"""Jobs in the graph: brought up to date, never taken away; hosts that a scan names in full, or they do."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import pytest

from registry.errors import InvalidValue, UnknownName
from registry.model import Fabric, HostOrder, Job, Profile, Trace
from registry.model.intake import Intake, Receipt
from registry.registry import Registry
from registry.store.job_lists import JobFilter
from registry.upkeep.deletion import delete_observation
from tests.support.fat_tree import at, fat_tree


def save(registry: Registry, *jobs: Job, when: datetime | None = None, cluster: str = "toy") -> Receipt:
    return registry.save(Intake(cluster=cluster, observed_at=when, jobs=jobs))


def running(job: str = "4711", hosts: tuple[str, ...] = ("node02", "node00")) -> Job:
    texts: dict[str, Any] = {"name": "stencil", "user": "eve", "account": "hpc"}
    texts |= {"partition": "batch", "state": "RUNNING"}
    times: dict[str, Any] = {"submitted_at": at(1), "started_at": at(2)}
    ranks: dict[str, Any] = {"slots": tuple(range(1, len(hosts) + 1)), "ranks": 3, "distribution": "block"}
    return Job(id=job, hosts=hosts, source="scontrol", **texts, **times, **ranks)


def test_a_saved_job_is_read_back_and_ran_on_devices_in_order_with_slots(toy: Registry) -> None:
    assert save(toy, running(), when=at(3)).new("jobs") == 1
    stored = toy.jobs.read("4711")
    assert (stored.id, stored.cluster, stored.profile, stored.as_of) == ("toy/4711", "toy", None, at(3))
    assert stored.job == running()
    _, rows = toy.database.query(
        "MATCH (:Job {id: 'toy/4711'})-[:RAN_ON]->(:Allocation)-[o:ON]->(d:Device) "
        "RETURN d.name, o.order, o.slots ORDER BY o.order"
    )
    assert rows == [("node02", 0, 1), ("node00", 1, 2)]
    before = toy.database.query("MATCH (n) RETURN count(n)")[1]
    assert save(toy, running(), when=at(4)).new("jobs") == 0
    assert toy.database.query("MATCH (n) RETURN count(n)")[1] == before


def test_a_later_record_updates_a_job_and_an_earlier_one_fills_what_is_open(toy: Registry) -> None:
    done = Job(id="4711", state="COMPLETED", ended_at=at(9), source="sacct")
    early = Job(id="4712", state="COMPLETED", ended_at=at(9))
    save(toy, running(), when=at(3))
    assert save(toy, done, early, when=at(10)).new("jobs") == 2
    save(toy, running("4712"), when=at(3))
    for name in ("4711", "4712"):
        stored = toy.jobs.read(name)
        assert (stored.job.state, stored.job.ended_at, stored.as_of) == ("COMPLETED", at(9), at(10))
        assert (stored.job.hosts, stored.job.user) == (running().hosts, "eve")
    save(toy, running("1"), Job(id="1", state="COMPLETED"))  # two records in one intake are joined
    job = toy.jobs.read("1").job
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
    toy: Registry, records: list[tuple[Job, int]], hosts: Any, slots: Any, guessed: bool
) -> None:
    for record, minute in records:
        assert save(toy, replace(record, state=f"AT {minute}"), when=at(minute)).new("jobs") == 1
    job = toy.jobs.read("4711").job
    assert (job.hosts, job.slots, job.guessed) == (hosts, slots, guessed)
    assert job.state == f"AT {max(minute for _, minute in records)}"


def test_allocations_are_shared_and_the_later_of_two_counts(toy: Registry) -> None:
    save(toy, Job(id="1", state="PENDING"), when=at(1))
    allocations = "MATCH (a:Allocation) RETURN count(a)"
    assert toy.database.query(allocations)[1] == [(0,)]
    save(toy, running("1"), running("2"), running("3", hosts=("node00", "node02")), when=at(2))
    assert toy.jobs.read("1").job.hosts == running().hosts
    assert toy.database.query(allocations)[1] == [(2,)]
    save(toy, running("1", hosts=("node01",)), when=at(4))
    assert toy.jobs.read("1").job.hosts == ("node01",)
    ran = "MATCH (:Job {job: '1'})-[r:RAN_ON]->() RETURN count(r)"
    assert toy.database.query(ran)[1] == [(2,)]  # both are kept


def test_a_job_with_an_unknown_host_is_saved_and_says_so(toy: Registry) -> None:
    second, third = running("2", hosts=("login", "node00")), running("3", hosts=("login",))
    receipt = save(toy, running("1"), second, third)
    assert receipt.new("jobs") == 3
    assert receipt.unknown_hosts == ("login",)
    assert receipt.warnings[-1].startswith("2 of 3 jobs ran on hosts that the fabric lacks: login; ")
    assert toy.jobs.read("2").job.hosts == ("login", "node00")
    assert toy.jobs.unknown_hosts(toy.jobs.read("2")) == ("login",)
    assert toy.jobs.unknown_hosts(toy.jobs.read("1")) == ()
    joined = "MATCH (:Job {job: '2'})-[:RAN_ON]->(:Allocation)-[:ON]->(d) RETURN collect(d.name)"
    assert toy.database.query(joined)[1] == [(["node00"],)]


def test_a_host_that_a_later_scan_contains_is_joined_to_the_jobs_that_named_it(toy: Registry) -> None:
    save(toy, running("1", hosts=("new1", "node00", "new2")), running("2", hosts=("new2", "node01")))
    grown = fat_tree()
    joined = "MATCH (j:Job)-[:RAN_ON]->(:Allocation)-[o:ON]->(d) WITH j, o, d ORDER BY j.job, o.order"
    for number, renamed in ((5, {"node02": "new2"}), (6, {"node02": "new2", "node03": "new1"})):
        names = tuple(renamed.get(name, name) for name in grown.names)
        toy.save(Intake(cluster="toy", observed_at=at(number), fabric=replace(grown, names=names)))
        hosts = ["node00", "new2"] if number == 5 else ["new1", "node00", "new2"]
        _, rows = toy.database.query(f"{joined} RETURN j.job, collect(d.name), collect(o.slots)")
        assert rows == [("1", hosts, [1, 2, 3][-len(hosts) :]), ("2", ["new2", "node01"], [1, 2])]
    assert toy.jobs.unknown_hosts(toy.jobs.read("1")) == ()
    assert toy.jobs.read("1").job.hosts == ("new1", "node00", "new2")


@pytest.mark.parametrize("strict", [True, False])
def test_unknown_hosts_are_an_error_on_demand_or_if_no_host_is_known(toy: Registry, strict: bool) -> None:
    before = toy.database.query("MATCH (n) RETURN count(n)")[1]
    jobs = (running("1"), running("2", hosts=("nod00",)))
    with pytest.raises(UnknownName) as caught:
        toy.save(Intake(cluster="toy", jobs=jobs if strict else jobs[1:], strict=strict))
    assert (caught.value.kind, caught.value.name, caught.value.close[0]) == ("host", "nod00", "node00")
    assert toy.database.query("MATCH (n) RETURN count(n)")[1] == before


def test_a_host_that_was_there_once_is_known_and_a_switch_is_none(toy: Registry) -> None:
    with pytest.raises(UnknownName):
        save(toy, running(hosts=("leaf0",)))
    with pytest.raises(UnknownName, match="no fabric of cluster 'other' has been ingested"):
        save(toy, running(), cluster="other")
    toy.save(Intake(cluster="toy", observed_at=at(5), fabric=fat_tree(leaves=1)))
    assert save(toy, running(hosts=("node03",))).new("jobs") == 1


def test_a_job_is_found_by_its_id_and_its_cluster(toy: Registry) -> None:
    save(toy, running())
    toy.save(Intake(cluster="two", observed_at=at(0), fabric=fat_tree()))
    with pytest.raises(UnknownName) as caught:
        toy.jobs.read("471")
    assert caught.value.close == ("4711",)
    with pytest.raises(UnknownName, match="it is in cluster toy"):
        toy.jobs.read("4711", "two")
    with pytest.raises(UnknownName, match="there is no cluster 'other'; known: toy, two"):
        toy.jobs.read("4711", "other")
    save(toy, running(hosts=("node01",)), cluster="two")
    with pytest.raises(UnknownName, match=r"^job 4711 is in clusters toy and two; add --cluster NAME$"):
        toy.jobs.read("4711")
    assert toy.jobs.read("4711", "two").job.hosts == ("node01",)


def test_jobs_are_listed_latest_started_first(toy: Registry) -> None:
    toy.save(Intake(cluster="two", observed_at=at(0), fabric=fat_tree()))
    save(toy, Job(id="a"), Job(id="b", started_at=at(1)), Job(id="c", started_at=at(2)))
    save(toy, Job(id="d", started_at=at(3)), cluster="two")
    assert [stored.job.id for stored in toy.jobs.list("toy")] == ["c", "b", "a"]
    assert [stored.job.id for stored in toy.jobs.list()] == ["d", "c", "b", "a"]


def test_the_profile_attached_last_is_the_one_a_job_ran(toy: Registry) -> None:
    sizes = {"a": 1.0, "b": 2.0}
    profiles = (Profile.from_edges([0], [1], [size], name=name) for name, size in sizes.items())
    toy.save(Intake(profiles=tuple(profiles)))
    save(toy, running(), running("4712"))
    for job, profile, reason in (("4711", "x", "no profile 'x'"), ("1", "a", "no job '1'")):
        with pytest.raises(UnknownName, match=reason):
            toy.jobs.attach(job, profile)
    for wrong, reason in (({"4713": "a"}, "no job '4713'"), ({"4712": "x"}, "no profile 'x'")):
        with pytest.raises(UnknownName, match=reason):
            toy.jobs.attach_many("toy", {"4711": "a", **wrong})
    assert toy.jobs.read("4711").profile is None
    ran = "MATCH (:Job)-[r:RAN]->() RETURN count(r)"
    for _ in range(2):
        toy.jobs.attach_many("toy", {"4711": "a", "4712": "a"})
    identity = toy.profiles.read("a").id
    assert [toy.jobs.read(job).profile for job in ("4711", "4712")] == [identity, identity]
    assert toy.database.query(ran)[1] == [(2,)]
    identity = toy.jobs.attach("4711", "b")
    assert toy.jobs.attach("4711", identity) == identity
    assert toy.jobs.read("4711").profile == identity == toy.profiles.read("b").id
    assert toy.database.query(ran)[1] == [(3,)]


def test_the_time_of_an_iteration_is_stated_or_that_of_the_newest_trace(toy: Registry) -> None:
    save(toy, running())
    plain = Profile.from_edges([0], [1], [2.0], name="plain")
    toy.save(Intake(profiles=(plain,)))

    def attached(profile: str, seconds: float | None = None) -> tuple[float | None, str]:
        toy.jobs.attach("4711", profile, iteration_seconds=seconds)
        stored = toy.jobs.read("4711")
        return stored.iteration_seconds, stored.iteration_from

    def traced(*times: float) -> None:
        zero = np.zeros(len(times), np.int32)
        columns: dict[str, Any] = {"sender": zero, "receiver": zero + 1}
        columns |= {"bytes": zero.astype(np.int64), "tag": zero}
        messages = Trace(ranks=2, at=np.array(times), **columns)
        toy.save(Intake(profiles=(messages.profile(name="traced"),), traces=(messages,)))

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
    assert toy.job_pages.open("4711").stored.iteration_seconds == 3.0
    assert toy.job_pages.page(JobFilter()).rows[0].stored.iteration_from == "stated"


@pytest.mark.parametrize("end", [at(9), None])
def test_a_job_that_ended_runs_again_only_if_it_started_again(toy: Registry, end: datetime | None) -> None:
    done = replace(running(), state="COMPLETED", ended_at=end)
    save(toy, done, when=at(10))
    for started in (None, at(2)):
        save(toy, replace(running(), started_at=started), when=at(11))  # a list from before the end
        job = toy.jobs.read("4711").job
        assert (job.state, job.started_at, job.ended_at) == ("COMPLETED", at(2), end)
        assert toy.running("toy", at(12)).jobs == ()
    save(toy, replace(running(), started_at=at(12)), when=at(13))  # put back into the queue
    job = toy.jobs.read("4711").job
    assert (job.state, job.started_at, job.ended_at) == ("RUNNING", at(12), None)
    save(toy, done, when=at(14))
    assert toy.jobs.read("4711").job.state == "COMPLETED"


def test_a_computed_start_does_not_change_with_each_list(toy: Registry) -> None:
    save(toy, running(), when=at(3))
    assert save(toy, replace(running(), started_at=at(3)), when=at(4)).new("jobs") == 0
    assert toy.jobs.read("4711").job.started_at == at(2)
    save(toy, replace(running(), started_at=at(30)), when=at(31))
    assert toy.jobs.read("4711").job.started_at == at(30)


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
