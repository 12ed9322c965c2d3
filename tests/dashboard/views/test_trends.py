"""The page Trends: a row for each application, regressions with their cause, and comparisons."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from almanac.demo.fill import CLUSTER
from dashboard.queries.history import history
from dashboard.state.viewer import Viewer
from registry.registry import Registry
from tests.dashboard.conftest import Connect, Filled
from tests.dashboard.test_app import address, messages, page

TRENDS = "trends"


@pytest.fixture
def demo_registry(demonstration: Path) -> Connect:
    return lambda: Registry.open(home=demonstration, idle_seconds=300)


def with_column(app: AppTest, column: str) -> pd.DataFrame:
    """The table that has this column."""
    found: pd.DataFrame = next(one.value for one in app.dataframe if column in one.value.columns)
    return found


def test_each_application_has_a_row_and_the_cluster_filters_them(filled: Filled) -> None:
    app = page(filled.connect, TRENDS)
    assert set(with_column(app, "placement")["placement"]) == {filled.first, filled.second, filled.alone}
    bold = [one.value for one in app.markdown if one.value.startswith("**")]
    assert len(bold) == 2
    app.selectbox(key="choose cluster").set_value("tree").run()
    assert list(with_column(app, "placement")["placement"]) == [filled.alone]
    assert address(app)["cluster"] == "tree"


def test_a_regression_names_its_cause_and_is_compared_with_the_last_good_placement(
    demo_registry: Connect,
) -> None:
    with demo_registry() as registry:
        (regression,) = history(registry, Viewer()).regressions
    assert regression.changed
    app = page(demo_registry, TRENDS, cluster=CLUSTER)
    state = f"{regression.ratio:.3g} ×, limit {regression.limit:.3g} ×"
    assert any(state in one.value.replace("\\", "") for one in app.markdown)
    assert f"Changed: {', '.join(regression.changed)}" in [one.value.replace("\\", "") for one in app.caption]
    app.button(key="compare 0").click().run()
    assert address(app)["a"] == regression.last_good
    assert address(app)["b"] == regression.id
    facts = with_column(app, "differs").set_index("fact")
    assert facts.loc["snapshot", "differs"] == "≠"


def test_two_placements_are_compared(filled: Filled) -> None:
    app = page(filled.connect, TRENDS, a=filled.first, b=filled.second)
    facts = with_column(app, "differs").set_index("fact")
    assert facts.loc["profile", "differs"] == ""
    assert facts.loc["ranks on hosts", "differs"] == "≠"
    links = with_column(app, "link")
    assert (links.iloc[:, 3].diff().dropna() <= 1e-9).all()
    unknown = page(filled.connect, TRENDS, a=filled.first[:-1] + "x", b=filled.second)
    assert "There is no placement" in messages(unknown)


def test_two_clusters_are_compared(filled: Filled) -> None:
    app = page(filled.connect, TRENDS, compare="clusters")
    facts = with_column(app, "fact").set_index("fact")
    assert (facts.loc["hosts", "A"], facts.loc["hosts", "B"]) == ("193", "63")
    assert set(with_column(app, "over bound")["cluster"]) == {"ndr", "tree"}
