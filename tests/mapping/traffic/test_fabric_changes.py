"""Changes of a fabric: links removed and added, by the names of the command line."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mapping.traffic.device_names import link_text
from mapping.traffic.fabric_changes import Change, applied
from mapping.traffic.job_loads import JobTraffic
from registry.errors import InvalidValue, UnknownName
from registry.model import Fabric, Links
from tests.support.traffic_jobs import running_jobs, two_leaves

Jobs = tuple[Fabric, tuple[JobTraffic, ...]]


def down_link(data: st.DataObject, fabric: Fabric) -> Change:
    row = data.draw(st.integers(0, len(fabric.links) - 1))
    return Change(down_links=(link_text(fabric, row),))


@settings(deadline=None)
@given(running_jobs(), st.data())
def test_each_link_has_its_row_before_the_change(case: Jobs, data: st.DataObject) -> None:
    fabric, _ = case
    names = data.draw(st.permutations([fabric.names[v] for v in range(len(fabric)) if fabric.forwards[v]]))
    add = (f"{names[0]}:{names[1]}:8",) if len(names) > 1 else ()
    change = Change(added=add, down_links=down_link(data, fabric).down_links)
    found = applied(fabric, change)
    links, old = found.fabric.links, found.row_before >= 0
    for name in Links.__dataclass_fields__:
        np.testing.assert_array_equal(
            getattr(links, name)[old], getattr(fabric.links, name)[found.row_before[old]]
        )
    assert (~old).sum() == 2 * len(add)
    np.testing.assert_array_equal(links.order(), np.arange(len(links)))


def test_all_parallel_cables_of_two_devices_go_together() -> None:
    fabric = two_leaves(uplinks=3)
    assert (applied(fabric, Change(down_links=("A:B",))).row_before >= 0).sum() == 8
    assert (applied(fabric, Change(down_links=("A:10", "B:11"))).row_before >= 0).sum() == 10


WORDS = st.text(alphabet="aAbB01:x.-_e\u0663 \n", max_size=12) | st.sampled_from(
    ["0x" + "f" * 30, "A:B:1e400", "A:B:nan", "a0:b0:1e-300", "0xa0:0xb0", "A:" + "9" * 50]
)


@settings(deadline=None, max_examples=300)
@given(st.lists(WORDS, max_size=2), st.lists(WORDS, max_size=2), st.lists(WORDS, max_size=2))
def test_any_words_make_a_change_or_a_known_error(down: list[str], add: list[str], drain: list[str]) -> None:
    fabric = two_leaves()
    try:
        change = Change.of(fabric, down=down, add=add, drain=drain)
    except (UnknownName, InvalidValue):
        return
    after = applied(fabric, change).fabric
    assert after.names == fabric.names
    assert len(after.links) <= len(fabric.links) + 2 * len(add)


def test_words_of_the_command_line_are_links_or_switches() -> None:
    fabric = two_leaves()
    change = Change.of(fabric, down=["A", "B:10", "0xb0"], add=["a0:B"], drain=["b1"])
    assert change == Change(
        down_links=("B:10",), down_switches=("A", "0xb0"), added=("a0:B",), drained=("b1",)
    )
    assert change
    assert not Change()
    for words in ({"down": ["C"]}, {"add": ["A:C"]}, {"drain": ["C"]}):
        with pytest.raises(UnknownName):
            Change.of(fabric, **words)
