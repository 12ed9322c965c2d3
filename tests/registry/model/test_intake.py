"""Names of clusters: plain ones."""

from __future__ import annotations

import pytest

from ingest.options import Options
from registry.errors import InvalidValue
from registry.model.intake import MAX_NAME, Intake, check_cluster_name

PLAIN = ("hpc1", "HPC 1", "a.b_c-d+e", "9", "Zürich", "超算", "x" * MAX_NAME)
OTHERS = (
    *("", " ", ".", "..", "../x", "a/b", "/etc", "a\\b", "C:\\x", "C:x", "~", "-x", "--yes", "_", ".hidden"),
    *(" x", "x ", "a\nb", "a\tb", "a\x1b[31mb", "a\x00", "a\x7f", "a\u202eb", "a\u200bb", "a\u00a0b"),
    *("*", "$(id)", "a;b", "a'b", 'a"b', "a|b", "a&b", "<b>", "a?b", "a#b", "x" * (MAX_NAME + 1)),
)


@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_name_is_accepted(name: str) -> None:
    check_cluster_name(name)
    assert Options(cluster=name).cluster == name


@pytest.mark.parametrize("name", OTHERS)
def test_another_name_is_refused_with_the_rule(name: str) -> None:
    with pytest.raises(InvalidValue, match="begins with a letter or a digit") as caught:
        check_cluster_name(name)
    assert str(caught.value).isprintable()
    if name:
        with pytest.raises(InvalidValue, match=r"^Options.cluster: "):
            Options(cluster=name)
        with pytest.raises(InvalidValue, match=r"^Intake.cluster: "):
            Intake(cluster=name)
