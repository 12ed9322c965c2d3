"""Jobs of Flux: the resource set R, version 1 (RFC 20)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from ingest.formats.jobs import flux_r
from ingest.options import Options
from registry.errors import InputError
from registry.model import Job
from tests.support.inputs import parse, read, refusal

SAMPLE = read("flux/f3Xq7vB.json")
R: dict[str, Any] = json.loads(SAMPLE)


def job(content: Any, options: Options | None = None, path: str = "jobs/f3.R.json") -> Job:
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    (found,) = parse(flux_r, text, options, path=path).jobs
    return found


def changed(**execution: Any) -> dict[str, Any]:
    return R | {"execution": R["execution"] | execution}


def test_hosts_take_the_cores_of_their_broker_ranks_in_order_and_none_are_reported() -> None:
    found = job(SAMPLE)
    assert found.hosts == ("corona12", "corona13", "corona7", "login1")
    assert found.slots == (16, 16, 16, 6)
    assert (found.ranks, found.started_at) == (0, datetime.fromtimestamp(1753790000, UTC))
    graph = R | {"scheduling": {"graph": {"nodes": [], "edges": []}}}
    warnings = parse(flux_r, json.dumps(graph), path="f3.json").warnings
    assert warnings == (
        "job f3: R contains no tasks, so the slots of a host are its cores",
        "its scheduling graph is ignored",
    )


def test_the_id_is_the_name_of_the_file() -> None:
    assert job(SAMPLE).id == "f3"
    assert job(SAMPLE, path="jobs.tar!a/ƒ3Xq.json").id == "ƒ3Xq"
    for path in ("-", ".json"):
        with pytest.raises(InputError, match=r"name the file JOBID\.json"):
            job(SAMPLE, path=path)


def test_an_old_r_names_no_hosts_and_the_caller_does() -> None:
    """As flux-core printed it in 2019."""
    old = {"version": 1, "execution": {"R_lite": [{"rank": "[0-1]", "children": {"core": "0-3"}}]}}
    assert job(old, Options(hosts=("x", "a"))).hosts == ("x", "a")
    with pytest.raises(InputError, match="--hosts"):
        job(old)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (R | {"version": 2}, "version: is not 1"),
        ({"version": 1}, "execution: is not an object"),
        (changed(nodelist=["corona[12-13]"]), "execution: names 2 hosts and 4 broker ranks"),
        (changed(nodelist=["a[1-"]), "unpaired bracket in a host list"),
        (changed(nodelist="a"), "execution.nodelist: is not a list"),
        (changed(R_lite=[{"rank": "0-3", "children": {}}]), "execution.R_lite[0].children.core: is not text"),
        (changed(R_lite=[{"rank": "3-0", "children": {"core": "0"}}]), "execution.R_lite[0].rank: is"),
        (changed(R_lite=[{"rank": "0,0", "children": {"core": "0"}}]), "execution.R_lite[0].rank: repeats"),
        (changed(R_lite=R["execution"]["R_lite"] * 2), "execution.R_lite[2].rank: broker rank 2"),
        (changed(R_lite=[{"rank": "0-999999999", "children": {"core": "0"}}]), "execution.R_lite[0].rank"),
        (changed(starttime="now"), "execution.starttime: is not a time"),
        (changed(starttime=1e300), "execution.starttime: is not a time"),
        (changed(nodelist=["a,a,b,c"]), "host a is repeated"),
    ],
)  # fmt: skip
def test_what_is_no_r_is_refused(content: Any, reason: str) -> None:
    assert refusal(flux_r, json.dumps(content), path="jobs/f3.R.json").reason.startswith(reason)
