"""Names, GUIDs and LIDs that devices share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mapping.checks.finding import Severity
from registry.model import Adapters
from tests.support.checked_fabrics import findings_of
from tests.support.infiniband_data import infiniband


def test_names_guids_and_lids_of_two_devices_are_found() -> None:
    (finding,) = findings_of(infiniband("mixed-speeds-oversubscribed"), "identities")
    assert finding.subject == "Quantum Mellanox Technologies"
    fabric = infiniband("fattree2-64-traffic")
    adapters = fabric.adapters
    guid, lid = np.array(adapters.guid), np.array(adapters.port_lid)
    guid[1], lid[5] = guid[0], lid[4]
    columns = {name: getattr(adapters, name) for name in Adapters.__slots__}
    twice = replace(fabric, adapters=Adapters(**{**columns, "guid": guid, "port_lid": lid}))
    findings = findings_of(twice, "identities")
    assert [finding.severity for finding in findings] == [Severity.ERROR] * 2
    assert findings[0].text.startswith("node GUID 0x")
    assert findings[1].subject == f"LID {int(lid[4])}"
