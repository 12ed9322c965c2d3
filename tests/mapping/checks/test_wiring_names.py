"""Names of a plan and of a fabric: which fit, which are ambiguous, which port a label means."""

from __future__ import annotations

import pytest

from mapping.checks.wiring.names import End, FabricNames
from registry.model import NO_PORT
from tests.support.ibnetdiscover_scans import scanned

DIRECTOR = "MF0;sat-ib1-A:MCS8500"
LEAF = "MF0;sat-20ib0:MQM8700/U1"
NAMES = FabricNames(
    scanned(
        *((LEAF, 1, "SAT37 ibp11s0f0", 1), (LEAF, 2, "SAT37 ibp203s0f0", 1)),
        *((LEAF, 3, "node01 mlx5_0", 1), (LEAF, 4, "node01 mlx5_1", 1)),
        (LEAF, 5, "node02.one.org mlx5_0", 1),
        *((LEAF, 6, "node03.one.org mlx5_0", 1), (LEAF, 7, "node03.two.org mlx5_0", 1)),
        *((LEAF, 8, "node04 HCA-1", 1), (LEAF, 9, "node04 HCA-1", 2)),
        *((LEAF, 21, f"{DIRECTOR}/L16/U2", 20), (LEAF, 22, f"{DIRECTOR}/L01/U1", 20)),
        (f"{DIRECTOR}/L16/U2", 30, f"{DIRECTOR}/S05/U1", 1),
        *((LEAF, 23, "leaf-ib0", 1), (LEAF, 24, "leaf_IB7", 1)),
    )
)


def devices(name: str, label: str = "") -> list[str]:
    return [NAMES.devices[one].name for one in NAMES.find(name, label).devices]


@pytest.mark.parametrize(
    ("device", "names"),
    [
        ("sat-20ib0", (LEAF, "sat-20ib0", "SAT-20IB0", "mf0;Sat-20ib0:MQM9700/U1", "SAT_20ib0 ")),
        ("sat-ib1-A", ("SAT-IB1-A", f"{DIRECTOR}/L16/U2")),
        ("SAT37", ("sat37", "SAT37 ibp11s0f0")),
        ("node01", ("NODE01", "node01-ib0", "node01_mlx5_1")),
        ("node01", ("node01.cluster.example.org", "node01-hca2.cluster.example.org")),
        ("node02.one.org", ("node02",)),
        ("leaf_IB7", ("leaf-IB7",)),
    ],
)
def test_spellings_of_one_device(device: str, names: tuple[str, ...]) -> None:
    for name in names:
        assert devices(name) == [device], name


def test_a_name_may_end_with_the_label_of_its_port() -> None:
    assert devices("node01 IB Port 1", "IB Port 1") == ["node01"]
    assert devices("node01 IB Port 1", "IB Port 2") == []


def test_a_name_that_fits_two_devices_is_ambiguous() -> None:
    assert devices("node03") == ["node03.one.org", "node03.two.org"]
    assert devices("node03.one.org") == ["node03.one.org"]
    assert devices("leaf") == ["leaf-ib0", "leaf_IB7"]


def test_other_devices_do_not_fit() -> None:
    """Above all: another domain, or a rail that the fabric lacks, is no spelling of what it has."""
    for name in ("node1", "node011", "node02.two.org", "leaf-ib1", "sat", "node01-a", ""):
        assert devices(name) == [], name


@pytest.mark.parametrize(
    ("name", "label", "part", "port"),
    [
        ("SAT-20IB0", "Port 21", "", 21),
        ("SAT-20IB0", "21", "", 21),
        ("SAT-20IB0", "P21", "", 21),
        ("SAT-20IB0", "IB1/21", "", 21),
        ("SAT-20IB0", "1/5/2", "", NO_PORT),
        ("SAT-20IB0", "Blade 1_Port 1/5", "", NO_PORT),
        ("SAT-IB1-A", "Blade 16_Port 2/20", "L16/U2", 20),
        ("SAT-IB1-A", "L16/U2/P20", "L16/U2", 20),
        ("SAT-IB1-A", "Blade 1_Port 1/7", "L01/U1", 7),
        ("SAT-IB1-A", "Blade 20_Port 2/3", "L20/U2", 3),
        ("SAT-IB1-A", "Port 20", "", NO_PORT),
        (f"{DIRECTOR}/L16/U2", "Port 20", "L16/U2", 20),
        ("sat37", "SAT37 ibp11s0f0", "ibp11s0f0", 1),
        ("sat37", "IBP203S0F0", "ibp203s0f0", 1),
        ("sat37", "ibp203s0f1", "ibp203s0f1", NO_PORT),
        ("sat37", "mlx5_0", "", NO_PORT),
        ("sat37", "Port 1", "", NO_PORT),
        ("node01", "mlx5_1", "mlx5_1", 1),
        ("node01", "mlx5_1/2", "mlx5_1", 2),
        ("node01", "mlx5_1:2", "mlx5_1", 2),
        ("node01", "MLX5-1", "mlx5_1", 1),
        ("node01", "HCA-2", "mlx5_1", 1),
        ("node01", "HCA-2 Port 1", "mlx5_1", 1),
        ("node01", "2/1", "mlx5_1", 1),
        ("node01", "ib1", "mlx5_1", 1),
        ("node01", "ib4", "", NO_PORT),
        ("node01", "mlx5_4", "mlx5_4", NO_PORT),
        ("node01-ib1", "Port 1", "mlx5_1", 1),
        ("node01", "slot 3", "", NO_PORT),
        ("node02", "Port 1", "mlx5_0", 1),
        ("node02", "port 1", "mlx5_0", 1),
        ("node04", "HCA-1", "HCA-1", NO_PORT),
        ("node04", "HCA-1/2", "HCA-1", 2),
        ("node9", "mlx5_0", "mlx5_0", NO_PORT),
    ],
)
def test_labels_of_ports(name: str, label: str, part: str, port: int) -> None:
    match = NAMES.find(name, label)
    device = devices(name, label)[0] if match.devices else name
    assert NAMES.planned_end(match, name, label) == End(device, part, port)
