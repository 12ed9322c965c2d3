"""The one rule for names of hosts in short and in full."""

from __future__ import annotations

import pytest

from registry.model.host_names import same_hosts, without_domain


@pytest.mark.parametrize(
    ("name", "short"),
    [("node1.a.example", "node1"), ("node1", "node1"), ("10.0.0.1", "10.0.0.1"), (".a", ".a"), ("n1.", "n1")],
)
def test_a_domain_is_what_follows_the_first_dot_after_a_letter(name: str, short: str) -> None:
    assert without_domain(name) == short


@pytest.mark.parametrize(
    ("names", "known", "same"),
    [
        (["n1", "n2"], ["n1.x", "n2.x"], {"n1": "n1.x", "n2": "n2.x"}),
        (["n1.x", "n2.x"], ["n2", "n1"], {"n1.x": "n1", "n2.x": "n2"}),
        (["n1.x"], ["n1.y"], {"n1.x": "n1.y"}),
        (["n1"], ["n1", "n1.x"], {"n1": "n1"}),
        (["n1"], ["n1.x", "n1.y"], {}),
        (["n1.x", "n1.y"], ["n1"], {}),
        (["n1", "n1.x"], ["n1"], {"n1": "n1"}),
        (["n1", "n1.z"], ["n1", "n1.x"], {"n1": "n1"}),
        (["10.0.0.1"], ["10.0.0.2"], {}),
        (["N1"], ["n1.x"], {}),
        ([], ["n1"], {}),
    ],
)
def test_names_are_the_same_up_to_the_first_dot_unless_that_is_ambiguous(
    names: list[str], known: list[str], same: dict[str, str]
) -> None:
    assert same_hosts(names, known) == same
