"""Work and a search on a real Dask cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mapping
from mapping.cluster import open_cluster
from tests.support.cluster_tasks import Counted, process_of, refuse
from tests.support.dask_cluster import DaskCluster
from tests.support.search_problems import ring


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def test_a_value_is_sent_once_and_results_and_errors_come_back(dask: DaskCluster, tmp_path: Path) -> None:
    log = tmp_path / "log"
    value = Counted(str(log))
    with open_cluster(dask.address) as found:
        assert (found.machines, found.threads) == (3, 3)
        found.share(value)
        found.share(value)
        with pytest.raises(ZeroDivisionError, match="refused"):
            found.submit(refuse).result()
        processes = [one.result() for one in [found.submit(process_of, {"in": [value]}) for _ in range(24)]]
    assert set(processes) == set(dask.workers)
    assert 1 <= len(lines(log)) <= 6  # not with each task; Dask may copy it to a busy worker twice


def test_a_search_gives_the_placement_of_one_machine(dask: DaskCluster) -> None:
    options: dict[str, Any] = {"objective": "hop-bytes", "steps": 2000, "seeds": 2, "workers": 2}
    with open_cluster(dask.address) as cluster:
        there = mapping.place(*ring(12, 12), executor=cluster, **options)
    here = mapping.place(*ring(12, 12), **options)
    np.testing.assert_array_equal(there.host_of_rank, here.host_of_rank)
