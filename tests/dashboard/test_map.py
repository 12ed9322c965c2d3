"""The component of the map, and pictures as SVG: every vertex and link, and no markup from names."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.resources import files
from xml.etree import ElementTree

import numpy as np

import dashboard.map.picture as component
import mapping
from dashboard.map.layouts import MOST_HOSTS, picture
from dashboard.map.picture import script
from mapping.cost.report import report_placement
from mapping.placement.case import PlacementCase
from mapping.placement.methods.baselines import in_order
from mapping.placement.search import SearchOptions
from registry.model import Allocation, Fabric, Profile
from registry.model.views import WIDTH
from tests.support.fat_tree import fat_tree

FOLDER = files("dashboard.map")


def test_the_script_is_one_module_with_one_entry_and_names_that_do_not_meet() -> None:
    text = script()
    assert not re.search(r"^import ", text, re.MULTILINE)
    assert re.findall(r"^export .*", text, re.MULTILINE) == [
        "export default function drawFabricMap({ data, parentElement, setTriggerValue }) {"
    ]
    names = re.findall(
        r"^(?:export )?(?:default )?(?:const|let|class|function) (\w+)", script(), re.MULTILINE
    )
    assert len(names) == len(set(names))
    for place, name in enumerate(component.MODULES):
        text = FOLDER.joinpath(f"{name}.js").read_text("utf-8")
        for other in re.findall(r'from "\./(\w+)\.js"', text):
            assert component.MODULES.index(other) < place


def test_text_is_never_made_markup_and_nothing_comes_from_elsewhere() -> None:
    everything = script() + FOLDER.joinpath("style.css").read_text("utf-8")
    forbidden = "innerHTML outerHTML insertAdjacent document.write eval( Function( http @import url("
    assert not [word for word in forbidden.split() if word in everything]


SVG = "{http://www.w3.org/2000/svg}"


def parts(text: str, kind: str) -> list[ElementTree.Element]:
    return ElementTree.fromstring(text).findall(SVG + kind)


def titles(text: str, kind: str) -> list[str]:
    return [one.findtext(f"{SVG}title") or "" for one in parts(text, kind)]


def test_a_fabric_has_a_circle_per_vertex_and_a_line_per_pair_of_neighbours() -> None:
    text = fat_tree(cables=3)._repr_svg_()
    assert sorted(titles(text, "circle")) == sorted(fat_tree().names)
    assert len(parts(text, "line")) == 8
    assert "node00 - leaf0" in titles(text, "line") or "leaf0 - node00" in titles(text, "line")
    for circle in parts(text, "circle"):
        assert 0 <= float(circle.get("cx", "-1")) <= 760
        assert 0 <= float(circle.get("cy", "-1")) <= 380


def test_names_are_neither_markup_nor_control_characters() -> None:
    name = "</svg><script>alert(1)</script>\x1b[31m"
    text = Fabric.from_arcs([name, "b"], [0, 1], [1, 0], 1.0)._repr_svg_()
    assert "<script" not in text
    assert "\x1b" not in text
    assert "</svg><script>alert(1)</script>?[31m" in titles(text, "circle")


def test_hosts_of_a_large_fabric_are_left_out_with_a_note() -> None:
    hosts = 2_000
    source, target = np.r_[1 : hosts + 1], np.zeros(hosts, int)
    slots = np.r_[0, np.ones(hosts, int)]
    fabric = Fabric.from_arcs(
        ["s", *map(str, range(hosts))], np.r_[source, target], np.r_[target, source], 1.0, slots=slots
    )
    text = fabric._repr_svg_()
    assert len(parts(text, "circle")) == 1
    assert "2000 hosts are not drawn" in text
    assert len(text) < 3_000


def test_a_placement_has_a_box_per_host_with_its_ranks_up_to_the_most() -> None:
    allocation = Allocation.of(fat_tree(), ["node00", "node03"], 20)
    text = in_order(24, allocation)._repr_svg_()
    ranks = [f"host {allocation.hosts[0]}: ranks {', '.join(map(str, range(20)))}"]
    assert titles(text, "rect") == [*ranks, f"host {allocation.hosts[1]}: ranks 20, 21, 22, 23"]
    assert "..." in text
    assert titles(in_order(3, allocation)._repr_svg_(), "rect")[1].endswith("ranks none")
    names = [str(number) for number in range(MOST_HOSTS + 3)]
    ring = Fabric.from_arcs(names, range(len(names)), np.roll(range(len(names)), 1), 1.0)
    text = picture(in_order(5, Allocation.of(ring, names)))
    assert len(parts(text, "rect")) == MOST_HOSTS
    assert "; 3 hosts are not drawn" in text


def test_a_report_colours_the_worst_link_and_the_hosts_with_ranks() -> None:
    fabric = fat_tree()
    profile = Profile.from_edges([0], [1], [100e9])
    allocation = Allocation.of(fabric, ["node00", "node02", "node03"])
    options = SearchOptions(strategies=["in-order"], steps=1)
    report = report_placement(
        PlacementCase(fabric=fabric, profile=profile, allocation=allocation, options=options)
    )
    text = report._repr_svg_()
    ranks = {title for title in titles(text, "circle") if ": " in title}
    assert ranks == {"node00: 1 ranks", "node02: 1 ranks"}
    worst = [line for line in parts(text, "line") if line.get("stroke") == "rgb(220,0,0)"]
    assert worst
    assert all("2 s" in (line.findtext(f"{SVG}title") or "") for line in worst)
    graph = report.to_networkx()
    assert [graph.nodes[name]["ranks"] for name in ("node00", "node01", "node02")] == [[0], [], [1]]
    assert sum(data["bytes"] for *_, data in graph.edges(data=True)) == report.evaluation.hop_bytes
    assert report.to_pandas()["host"].tolist() == ["node00", "node02"]
    assert len(repr(report)) <= WIDTH
    idle = replace(report, evaluation=replace(report.evaluation, link_bytes=np.zeros(len(fabric.links))))
    assert "rgb(220" not in idle._repr_svg_()


def test_a_curve_is_a_table() -> None:
    fabric, profile = fat_tree(), Profile.from_edges([0, 1], [1, 0], [8.0, 8.0])
    allocation = Allocation.of(fabric, ["node00", "node03", "node01"])
    curve = mapping.remap_few(fabric, profile, allocation, present=in_order(2, allocation), steps=100)
    table = curve.to_pandas()
    assert table["moved"].tolist() == [point.moved for point in curve.points]
    assert table["gain"].iloc[0] == 0.0
