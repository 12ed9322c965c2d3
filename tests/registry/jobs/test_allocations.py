"""Jobs whose hosts the scan names in full, and the other way round."""

from __future__ import annotations

import pytest

from registry.errors import UnknownName
from registry.maintenance.deletion import delete_observation
from registry.model import Fabric, HostOrder, Job
from registry.model.intake import Intake
from registry.registry import Registry
from tests.support.fat_tree import at


def fabric(*hosts: str) -> Fabric:
    """Hosts on one switch."""
    n = len(hosts)
    ends = list(range(n)), [n] * n
    return Fabric.from_arcs(
        [*hosts, "leaf"], ends[0] + ends[1], ends[1] + ends[0], 1.0, slots=[1] * n + [0], forwards=False
    )


def job(*hosts: str) -> Job:
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
    jobs = Intake(cluster="c", jobs=(job(*of_job),))
    other = Intake(cluster="c", observed_at=at(-1), fabric=fabric("n7"), source="test")
    if scan_first:
        registry.save(scan)
        receipt = registry.save(jobs)
        assert receipt.unknown_hosts == ()
    else:
        registry.save(other)
        mixed = Intake(cluster="c", jobs=(job(*of_job, "n7"),))
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
    registry.save(Intake(cluster="c", jobs=(job(*SHORT),)))
    observation = registry.fabrics.observations("c")[-1]
    delete_observation(registry.database, observation.id)
    assert joined(registry) == []
    registry.save(scan)
    assert joined(registry) == list(FULL)


def test_hosts_of_which_several_could_be_meant_are_unknown(registry: Registry) -> None:
    registry.save(
        Intake(cluster="c", observed_at=at(0), fabric=fabric("n1.a", "n1.b", "n2.a"), source="test")
    )
    receipt = registry.save(Intake(cluster="c", jobs=(job("n1", "n2"),)))
    assert receipt.unknown_hosts == ("n1",)
    with pytest.raises(UnknownName, match=r"there is no host 'n1'; closest: n1\.a, n1\.b"):
        registry.save(Intake(cluster="c", jobs=(job("n1"),)))


def test_a_reported_placement_is_on_hosts_with_another_domain(registry: Registry) -> None:
    registry.save(Intake(cluster="c", observed_at=at(0), fabric=fabric(*FULL), source="test"))
    registry.save(Intake(cluster="c", jobs=(job(*SHORT),)))
    order = HostOrder(hosts=("n1", "n2", "n1", "n2"), source="test", name="map", job="1")
    receipt = registry.save(Intake(cluster="c", placements=(order,)))
    stored = registry.placements.read(receipt.ids("placements")[0])
    assert stored.hosts == ("n1.a.example", "n2.a.example") * 2
