"""Machines that claim one name are hosts of their own."""

from __future__ import annotations

from tests.support.described_adapters import owners, scan


def test_two_machines_of_one_name_that_were_never_seen_are_two_hosts() -> None:
    assert owners(scan("a mlx5_0", "a mlx5_1", "a mlx5_0", "a mlx5_1")) == {
        1: "a [0x0000000000000001]", 2: "a [0x0000000000000001]",
        3: "a [0x0000000000000003]", 4: "a [0x0000000000000003]",
    }  # fmt: skip
    one_card = scan("a mlx5_0", "a mlx5_0", systems={1: 7, 2: 7})
    assert owners(one_card) == {1: "a", 2: "a"}
    cut_off = "a" * 55 + " mlx5_bo"
    assert len(set(owners(scan(cut_off, cut_off)).values())) == 1
