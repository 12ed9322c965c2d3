"""Requests with the load of running jobs as background."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mapping.placement.search.options import SearchOptions
from mapping.service.live import with_running_jobs
from mapping.service.placing import place, resolve
from mapping.service.request import PlacementRequest
from registry.errors import InvalidValue
from registry.registry import Registry


def test_a_request_may_have_all_running_jobs_as_background(running: Registry) -> None:
    options = SearchOptions(steps=2000, workers=1)
    request = PlacementRequest(profile="across", job="1", cluster="c", options=options)
    request = with_running_jobs(running, request)
    background = resolve(running, request).costs.background
    assert background is not None
    assert background.jobs == 1
    assert background.load.sum() == 4.0 * 3
    assert place(running, request).evaluation.congestion_seconds == 12.0
    elsewhere = PlacementRequest(profile="across", cluster="c", hosts=("a0", "b0"), slots=2)
    beside = resolve(running, with_running_jobs(running, elsewhere)).costs.background
    assert beside is not None
    assert beside.jobs == 2
    with pytest.raises(InvalidValue, match="name no other"):
        resolve(running, replace(request, background=(("p1", None),)))
    with pytest.raises(InvalidValue, match="cluster"):
        with_running_jobs(running, replace(request, cluster=None))
