"""Advice for running jobs, searched on a real Dask cluster: the same as on one machine."""

from __future__ import annotations

from dataclasses import replace

from mapping.cluster import open_cluster
from mapping.placement.search.options import SearchOptions
from mapping.service.advising import Advised, advise_all
from mapping.service.live import traffic
from registry.registry import Registry
from tests.support.dask_cluster import DaskCluster

OPTIONS = SearchOptions(steps=4000, workers=1)


def test_advice_found_on_a_cluster_is_that_of_one_machine(running: Registry, dask: DaskCluster) -> None:
    live, phases = traffic(running, "c"), []
    with open_cluster(dask.address) as cluster:
        found = list(
            advise_all(running, live, OPTIONS, lambda phase, done, *_: phases.append((phase, done)), cluster)
        )
    there = {one.advice.job: one for one in found if isinstance(one, Advised)}
    here = {one.advice.job: one for one in advise_all(running, live, OPTIONS) if isinstance(one, Advised)}
    assert set(there) == set(here) == {"1", "2"}
    for job, one in here.items():
        assert replace(there[job].advice, at=one.advice.at) == one.advice  # ids are of content
        assert there[job].complete
    assert phases[-1] == ("jobs", 2)
