"""Names of Kubernetes nodes are those that RFC 1123 allows, and labels are commands of kubectl."""

from __future__ import annotations

import pytest

from registry.errors import InvalidValue
from registry.model.kubernetes_nodes import HOST_LABEL, LONGEST_NAME, label_lines, node_name


@pytest.mark.parametrize("host", ["Node01", "a.b-c.example", "7", "x" * LONGEST_NAME])
def test_a_node_has_the_name_of_its_host_in_lower_case(host: str) -> None:
    assert node_name(host) == host.lower()


@pytest.mark.parametrize("host", ["", "node_1", "-a", "a.", "a..b", "a;rm", "ä", "x" * (LONGEST_NAME + 1)])
def test_what_is_no_name_is_refused(host: str) -> None:
    with pytest.raises(InvalidValue, match="RFC 1123"):
        node_name(host)


def test_each_node_has_one_command() -> None:
    lines = label_lines([("a", {HOST_LABEL: "a", "x": "1"}), ("b", {"x": "2"})])
    assert lines.splitlines() == [
        "kubectl label node a kubernetes.io/hostname=a x=1 --overwrite",
        "kubectl label node b x=2 --overwrite",
    ]
