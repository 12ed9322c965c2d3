"""The page Trends: a row for each application, regressions with their cause, and comparisons."""

from __future__ import annotations

from almanac.demo.fill import CLUSTER
from dashboard.queries.history import history
from dashboard.state.viewer import Viewer
from tests.dashboard.conftest import Connect, Filled
from tests.support.apps import address, captions, messages, page, table

TRENDS = "trends"


def test_each_application_has_a_row_and_the_cluster_filters_them(filled: Filled) -> None:
    app = page(filled.connect, TRENDS)
    assert set(table(app, "placement")["placement"]) == {filled.first, filled.second, filled.alone}
    bold = [one.value for one in app.markdown if one.value.startswith("**")]
    assert len(bold) == 2
    app.selectbox(key="choose cluster").set_value("tree").run()
    assert list(table(app, "placement")["placement"]) == [filled.alone]
    assert address(app)["cluster"] == "tree"


def test_a_regression_names_its_cause_and_is_compared_with_the_last_good_placement(
    connect: Connect,
) -> None:
    with connect() as registry:
        (regression,) = history(registry, Viewer()).regressions
    assert regression.changed
    app = page(connect, TRENDS, cluster=CLUSTER)
    assert f"{regression.ratio:.3g} ×, limit {regression.limit:.3g} ×" in captions(app)
    assert f"Changed: {', '.join(regression.changed)}" in captions(app).splitlines()
    app.button(key="compare 0").click().run()
    assert address(app)["a"] == regression.last_good
    assert address(app)["b"] == regression.id
    facts = table(app, "differs").set_index("fact")
    assert facts.loc["snapshot", "differs"] == "≠"


def test_two_placements_are_compared(filled: Filled) -> None:
    app = page(filled.connect, TRENDS, a=filled.first, b=filled.second)
    facts = table(app, "differs").set_index("fact")
    assert facts.loc["profile", "differs"] == ""
    assert facts.loc["ranks on hosts", "differs"] == "≠"
    links = table(app, "link")
    assert (links.iloc[:, 3].diff().dropna() <= 1e-9).all()
    unknown = page(filled.connect, TRENDS, a=filled.first[:-1] + "x", b=filled.second)
    assert "There is no placement" in messages(unknown)


def test_two_clusters_are_compared(filled: Filled) -> None:
    app = page(filled.connect, TRENDS, compare="clusters")
    facts = table(app, "fact").set_index("fact")
    assert (facts.loc["hosts", "A"], facts.loc["hosts", "B"]) == ("193", "63")
    assert set(table(app, "over bound", "over in order")["cluster"]) == {"ndr", "tree"}
