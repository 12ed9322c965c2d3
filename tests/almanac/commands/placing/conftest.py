"""The command with a fabric and a profile."""

from __future__ import annotations

import pytest

from tests.almanac.conftest import Almanac
from tests.support import paths

FABRIC = paths.DATA / "infiniband" / "fattree2-64-traffic"
PROFILE = paths.DATA / "openmpi" / "npb_cg_S_16.tar.gz"


@pytest.fixture
def loaded(embedded: Almanac) -> Almanac:
    assert (
        embedded("ingest", FABRIC / "ibnetdiscover.txt", FABRIC / "opensm-lfts.dump", "--cluster", "ft").code
        == 0
    )
    assert embedded("ingest", PROFILE, "--name", "cg").code == 0
    return embedded
