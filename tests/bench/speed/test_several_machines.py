"""The cost of a cluster, measured on a real one: every size has its data and its times."""

from __future__ import annotations

import json
from pathlib import Path

from bench.speed.several_machines import main
from bench.support.paths import RESULTS
from tests.support.dask_cluster import DaskCluster


def test_a_run_has_the_fields_of_the_record(dask: DaskCluster, tmp_path: Path) -> None:
    output = tmp_path / "record.json"
    main([dask.address, "--largest", "100", "--output", str(output)])
    found, kept = (json.loads(path.read_text()) for path in (output, RESULTS / "several_machines.json"))
    assert found.keys() == kept.keys()
    assert (found["workers"], [one["ranks"] for one in found["sizes"]]) == (3, [100])
    for one in found["sizes"]:
        assert one.keys() == kept["sizes"][0].keys()
        assert all(value > 0 for value in one.values())
