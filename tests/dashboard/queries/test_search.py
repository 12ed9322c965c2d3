"""The global search finds devices, links, jobs, users and placements, as far as the viewer may see them."""

from __future__ import annotations

import pytest

from dashboard.queries.clusters import cached_clusters
from dashboard.queries.search import search
from dashboard.state.viewer import Viewer
from mapping.traffic.device_names import link_text
from tests.dashboard.conftest import MARKUP, Filled
from tests.support.apps import address, page

SEEN = Viewer()


@pytest.mark.parametrize(
    ("cluster", "text", "kind", "expected"),
    [
        ("tree", "node0001", "host", {"cluster": "tree", "host": "node0001"}),
        ("tree", " node0001 ", "host", {"cluster": "tree", "host": "node0001"}),
        ("ndr", "4711", "job", {"job": "ndr/4711"}),
        ("tree", "eve", "user", {"cluster": "tree", "user": "eve"}),
        ("tree", "pabcdef0", "placement", {"placement": "pabcdef0"}),
    ],
)
def test_a_whole_name_leads_to_one_thing(
    filled: Filled, cluster: str, text: str, kind: str, expected: dict[str, str]
) -> None:
    with filled.connect() as registry:
        (hit,) = search(registry, cached_clusters(registry).infos[cluster], text, SEEN)
    assert (hit.kind, dict(hit.address)) == (kind, expected)


def test_a_link_and_a_guid_are_found(filled: Filled) -> None:
    with filled.connect() as registry:
        info = cached_clusters(registry).infos["tree"]
        fabric = registry.fabrics.read("tree").fabric
        switch = int(fabric.switches[0])
        (hit,) = search(registry, info, f"{int(fabric.guid[switch]):#018x}", SEEN)
        assert (hit.kind, hit.label) == ("switch", fabric.names[switch])
        name = link_text(fabric, 0)
        (hit,) = search(registry, info, name.replace(":", " : "), SEEN)
        assert (hit.kind, hit.address["link"]) == ("link", name)


def test_a_part_of_a_name_lists_all_that_contain_it(filled: Filled) -> None:
    with filled.connect() as registry:
        info = cached_clusters(registry).infos["tree"]
        assert {hit.label for hit in search(registry, info, "NODE001", SEEN)} >= {"node0010", "node0011"}
        (hit,) = search(registry, info, "bold", SEEN)
        assert hit.label == f"9 · {MARKUP} · eve"
        assert search(registry, info, "nothing-like-it", SEEN) == []


def test_jobs_and_users_of_others_are_not_found(filled: Filled) -> None:
    with filled.connect() as registry:
        info = cached_clusters(registry).infos["tree"]
        mallory = Viewer(only="mallory")
        assert search(registry, info, "eve", mallory) == []
        assert search(registry, info, "bold", mallory) == []
        assert search(registry, info, "eve", Viewer(key=b"k" * 32)) == []


def test_the_field_opens_a_single_hit_and_lists_several(filled: Filled) -> None:
    app = page(filled.connect, "data", cluster="tree")
    app.text_input(key="search").set_value("node001").run()
    labels = [str(link.proto.label) for link in app.get("page_link")]
    assert "host: node0010" in labels
    assert app.text_input(key="search").value == ""
    app.text_input(key="search").set_value("node0010").run()
    assert address(app) == {"cluster": "tree", "host": "node0010"}
    assert not app.exception
