"""Time of an iteration of running jobs, measured at the counters of their hosts' own cables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mapping.service.live import Live
from mapping.traffic.interference import interference
from mapping.traffic.shared_load import SharedLoad
from registry.errors import UnknownName
from registry.model import Bools, Floats
from registry.model.counter_deltas import LinkRates
from registry.registry import Registry

MEASURED = "measured"
"""Origin of a time of an iteration that follows from counters."""


def with_counters(registry: Registry, live: Live) -> Live:
    """Return running jobs with the times of iterations that their cluster's counters give.

    Nothing changes if the cluster has no counters.
    """
    try:
        rates = registry.counters.rates(live.running.snapshot.cluster, live.running.at)
    except UnknownName:
        return live
    return with_measured_iterations(live, rates)


def with_measured_iterations(live: Live, rates: LinkRates | None) -> Live:
    """Return running jobs with a measured time of an iteration if none is stated or traced.

    It is the bytes of the profile on the cables of the job's hosts over the bytes/s counted there. Only
    cables of hosts with no other running job count, and only if the job ran all the time of the counting.

    Parameters
    ----------
    rates : LinkRates or None
        Rates of the links of ``live.fabric``.
    """
    shared, fabric = live.shared, live.fabric
    if rates is None or len(rates.bytes_per_second) != len(fabric.links):
        return live
    own = _cables_of_one_job(live) & ~rates.at_least & ~np.isnan(rates.bytes_per_second)
    jobs = []
    for number, load in enumerate(shared.jobs):
        started = live.job(load.job).stored.job.started_at
        if load.iteration_seconds is None and started is not None and started <= rates.start:
            seconds = _measured(shared, number, np.where(own, rates.bytes_per_second, 0.0))
            load = replace(load, iteration_seconds=seconds, iteration_from=MEASURED if seconds else "")
        jobs.append(load)
    return replace(live, shared=replace(shared, jobs=tuple(jobs)))


def utilisation(live: Live, rates: LinkRates | None) -> Floats | None:
    """Return the estimated utilisation of each link (float64[m]): the rates of all jobs over its capacity.

    None if nothing is loaded, or if a job that loads a link has no time per iteration.

    Parameters
    ----------
    rates : LinkRates or None
        Rates of the links of ``live.fabric``, from which missing times are measured.
    """
    found = interference(with_measured_iterations(live, rates).shared).utilisation
    return found if found.any() and not np.isnan(found).any() else None


def _cables_of_one_job(live: Live) -> Bools:
    """Return which links (bool[m]) are cables of a host that only one running job uses."""
    fabric = live.fabric
    jobs = live.running.jobs
    vertex = fabric.known_vertices({host for one in jobs for host in one.stored.job.hosts})
    users = np.zeros(len(fabric), np.int64)
    for one in jobs:
        users[[vertex[host] for host in set(one.stored.job.hosts) if host in vertex]] += 1
    host_end = np.where(fabric.forwards[fabric.links.source], fabric.links.target, fabric.links.source)
    found: Bools = ~fabric.network_link & (users[host_end] == 1)
    return found


def _measured(shared: SharedLoad, job: int, rate: Floats) -> float | None:
    """Return the time of an iteration of a job by these rates of its own cables; None without traffic."""
    part = slice(int(shared.indptr[job]), int(shared.indptr[job + 1]))
    counted = rate[shared.link[part]]
    total = float(counted.sum())
    return float(shared.bytes[part][counted > 0].sum()) / total if total > 0 else None
