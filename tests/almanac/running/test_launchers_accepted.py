"""Each launcher is seen to start ranks in a requested order; tests/bench/launchers has random cases."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from almanac.running.call import parse_call
from almanac.running.hosts import hosts_of
from almanac.running.launchers import launcher_of
from almanac.running.run import apply_order
from almanac.running.verification import Verification, verify_order
from bench.launchers.cases import Case
from bench.launchers.pretended import LAUNCHERS
from tests.support.launchers import require


@pytest.mark.parametrize("name", list(LAUNCHERS))
def test_each_launcher_is_seen_to_obey(name: str, tmp_path: Path) -> None:
    pretended, case = LAUNCHERS[name], Case.draw(2, 5)
    if name == "Intel MPI" and shutil.which(pretended.needs[0]) is None:
        pytest.skip("Intel MPI is not installed; I_MPI_ROOT names its folder")
    require(*pretended.needs, pretended.compiler)
    with pretended.open(tmp_path) as job, job(case) as started:
        launcher = replace(launcher_of(started.words), compilers=(pretended.compiler,))
        call = parse_call([*started.words, "true"], launcher.values)
        order = case.order(hosts_of(call, launcher, started.environment), launcher)
        run = apply_order(call, launcher, order, tmp_path)
        added = run.words[1 : 1 + len(launcher.added)]
        environment = {**os.environ, **started.environment, **run.environment}
        call = replace(call, launcher=(*pretended.before, *call.launcher))
        found = verify_order(call, launcher, order.hosts, (added, environment), tmp_path, 120.0)
    assert found == Verification(misplaced=(), by="the launcher and the MPI library")
