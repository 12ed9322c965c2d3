"""Pages of the dashboard without a browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from dashboard.shared.viewer import EVERYTHING, Access
from registry.registry import Registry

OVERVIEW, FABRIC, JOBS, JOB, INTERFERENCE = "", "fabric", "jobs", "jobs?", "jobs?tab=shared"
PLANNER, CIRCUITS, HISTORY, DATA = "planner", "planner?tab=circuits", "trends?tab=applications", "data"
RUNS = "trends?tab=simulations"
PAGES = (OVERVIEW, FABRIC, JOBS, INTERFERENCE, PLANNER, CIRCUITS, HISTORY, RUNS, DATA)
"""Each page, and each tab of a page."""
MOST_SECONDS = 120
"""Time limit of a run, for a busy machine; Streamlit's default is 3 s."""


def location(name: str) -> tuple[str, dict[str, str]]:
    """Return the path of a page and the parameter of its tab, if it is one."""
    path, _, tab = name.partition("?")
    return path, {"tab": tab.removeprefix("tab=")} if tab else {}


def app_of(script: Callable[..., object], *args: Any) -> AppTest:
    """Return an app that runs this function, which must import all that it uses."""
    return AppTest.from_function(script, args=args, default_timeout=MOST_SECONDS)


def script(connect: object, access: object) -> None:
    import typing  # the page runs this function alone, without the imports of the module

    from dashboard.app import run

    run(typing.cast(typing.Any, connect), lambda: typing.cast(typing.Any, access))


def page(connect: Callable[[], Registry], name: str, **given: str) -> AppTest:
    return seen_by(EVERYTHING, connect, name, **given)


def seen_by(access: Access, connect: Callable[[], Registry], name: str, **given: str) -> AppTest:
    """Return a page as one with this access sees it."""
    app = app_of(script, connect, access)
    path, tab = location(name)
    app.query_params.update(tab | given)
    app._page_hash = calc_hash(path)  # the public way is for pages that are files
    app.run()
    assert not app.exception, app.exception
    return app


def address(app: AppTest) -> dict[str, str]:
    given = app.query_params.items()
    return {name: value if isinstance(value, str) else value[0] for name, value in given}


def messages(app: AppTest) -> str:
    shown = [element.value for kind in (app.error, app.info, app.warning) for element in kind]
    return "\n".join(shown).replace("\\", "")


def captions(app: AppTest) -> str:
    shown = [element.value for kind in (app.caption, app.markdown) for element in kind]
    return "\n".join(shown).replace("\\", "")


def numbers(app: AppTest) -> dict[str, str]:
    shown = {metric.label: metric.value for metric in app.metric}
    return {label.replace("\\", ""): value.replace("\\", "") for label, value in shown.items()}


def table(app: AppTest, *columns: str) -> pd.DataFrame:
    found = [one.value for one in app.dataframe if set(columns) <= set(one.value.columns)]
    assert len(found) == 1, [list(one.value.columns) for one in app.dataframe]
    value: pd.DataFrame = found[0]
    return value


def titles(app: AppTest) -> list[str]:
    return [head.value for head in app.header]


def whole(app: AppTest) -> str:
    texts = [element.value for kind in ("text", "caption", "markdown") for element in getattr(app, kind)]
    cells = [table.value.to_csv() for table in app.dataframe]
    labels = [str(link.proto.label) for link in app.get("page_link")]
    return "\n".join([*texts, *cells, *labels, messages(app)]).replace("\\", "")
