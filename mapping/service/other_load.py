"""How much other jobs loaded the links of a measured run, as a number that is stored with it."""

from __future__ import annotations

from datetime import timedelta

import numpy as np

from mapping.placement.strategies.baselines import in_order
from mapping.service.live import traffic
from mapping.traffic.job_loads import Loader
from registry.model import Allocation, Fabric, HostOrder, Placement
from registry.model.job import MeasuredRun
from registry.registry import Registry


def other_load(registry: Registry, run: MeasuredRun) -> float | None:
    """Return the largest share of a link's capacity that other jobs used, of the links of a run.

    Counted are the jobs that ran in the middle of the run, if their profile, time per iteration and rank
    order are known, at their mean rate, on the links that the traffic of the run takes.

    Returns
    -------
    float or None
        0.5 if the others sent half as many bytes/s as the link can take, above 1 if more by these estimates.
        0 if nothing else ran. None if none of the others is counted, or if the run has no profile.

    Raises
    ------
    UnknownName, InvalidValue, InvalidPlacement
        The fabric lacks a host, or the load cannot be computed.
    """
    middle = run.started_at + timedelta(seconds=run.wall_seconds / 2)
    live = traffic(registry, run.cluster, middle)
    others = [one for one in live.running.jobs if one.stored.job.id != run.job]
    if not others:
        return 0.0
    counted = [one for one in live.shared.jobs if one.job != run.job and one.iteration_seconds]
    if not counted or run.profile is None:
        return None
    profile = registry.profiles.read(run.profile).profile
    placement = _placement(registry, run, live.fabric)
    own = Loader(live.fabric, [placement], live.costs).load(profile, placement).link
    rates = np.zeros(len(live.fabric.links.capacity))
    for job in counted:
        rates[job.loads.link] += job.loads.bytes / (job.iteration_seconds or 1.0)
    return float((rates / live.fabric.links.capacity)[own].max(initial=0.0))


def _placement(registry: Registry, run: MeasuredRun, fabric: Fabric) -> Placement:
    """Return where the ranks of a run were, on a fabric."""
    if run.placement is None:
        return in_order(run.ranks, Allocation.of(fabric, run.hosts, run.slots))
    return HostOrder(hosts=registry.placements.read(run.placement).hosts).on(fabric)
