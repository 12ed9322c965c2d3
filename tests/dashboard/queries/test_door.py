"""Every parameter of every page with what belongs to another user: the page of an id that is not there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.queries import door
from dashboard.state.viewer import Access, Viewer
from registry.errors import UnknownName
from registry.registry import Registry
from tests.dashboard.conftest import Filled
from tests.support import paths
from tests.support.apps import FABRIC, JOB, PAGES, address, seen_by, whole

PLACEMENTS = ("placement", "a", "b", "beside", "map", "run", "plan", "link", "load", "inside")
JOBS = ("job", "text", "user", "cluster", "cluster a", "cluster b", "application")
OTHER = (
    *("at", "from", "to", "since", "until", "range", "live", "wall", "tab", "show", "colour", "shape"),
    *("compare", "links", "curve", "outcome", "metric", "rule", "page", "gain", "over", "state"),
    *("host", "switch", "device", "down", "drain", "slow", "add"),
)
"""Parameters of the address: those that may name a placement or a result, a job, and the others."""
PICKED = re.compile(
    r"(?:query_params(?:\.get|\.get_all|\.pop)?[([]|named\(|any_of\(|tabbed\(|parsed_moment\()\"([a-z ]+)\""
    r"|(?:choose|moment|at_least|chips|text_field|toggle|timeline)\(\s*\"[^\"]*\",\s*\"([a-z ]+)\""
)
"""Where the pages read a parameter."""
READS = re.compile(
    r"\b(cached_placement|cached_pair|_both|cached_plan|whole_runs|cached_page|cached_choices|cached_ingests)\b"
    r"|registry\.(placements|jobs|job_pages|simulations|circuit_plans|measured_runs|runs|advices|traces|running)\b"
)
"""Functions and stores that know no viewer."""
ALLOWED = {"placement_search.py"}
"""It saves what it finds for the job that is shown; it reads nothing by an id of the address."""


def sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((paths.ROOT / "dashboard" / folder).rglob("*.py"))


def test_every_parameter_of_a_page_is_tried() -> None:
    known = {*PLACEMENTS, *JOBS, *OTHER}
    used = {
        name
        for path in sources("views", "widgets")
        for found in PICKED.findall(path.read_text("utf-8"))
        for name in found
        if name
    }
    assert {"placement", "job", "run", "plan", "load", "beside"} <= used
    assert used <= known, used - known


def test_pages_read_what_belongs_to_users_through_the_door_only() -> None:
    wrong = {
        f"{path.name}: {line}"
        for path in sources("views", "widgets", "components", "tables", "figures")
        for line in ast.unparse(ast.parse(path.read_text("utf-8"))).splitlines()
        if READS.search(line) and not line.startswith("from registry.") and path.name not in ALLOWED
    }
    assert not wrong


def shown(app: AppTest, identity: str) -> str:
    """Return all of a page and its address, with an id and the present time left out."""
    kinds = " ".join(element.type for element in app.main)
    text = "\n".join((whole(app), str(sorted(address(app).items())), kinds))
    text = text.replace(identity, "ID").replace(identity.rpartition("/")[2], "ID")
    return re.sub(r"\d\d:\d\d:\d\d|\d+ (second|minute)s? ago", "", text)


@pytest.mark.parametrize("name", [*PAGES, JOB])
def test_another_users_placement_or_job_is_as_unknown_as_one_that_is_not_there(
    filled: Filled, name: str
) -> None:
    missing = "p" + "0" * (len(filled.second) - 1)
    access = Access(only="eve")
    pairs = [(parameter, filled.second, missing) for parameter in PLACEMENTS]
    pairs += [(parameter, "ndr/4711", "ndr/9999") for parameter in ("job", "text", "load")]
    for parameter, others, none in pairs:
        real, unreal = (
            shown(seen_by(access, filled.connect, name, **{parameter: given}), given)
            for given in (others, none)
        )
        assert real == unreal, (name, parameter)
        assert "4711" not in real, (name, parameter)


@pytest.mark.parametrize("parameter", [*OTHER, *JOBS])
@pytest.mark.parametrize("name", [FABRIC, JOB])
def test_no_other_parameter_shows_a_placement_beside_it(filled: Filled, name: str, parameter: str) -> None:
    given = {"cluster": "ndr", "placement": filled.second, parameter: filled.first}
    app = seen_by(Access(only="eve"), filled.connect, name, **given)
    assert not re.search(r"(?<!\d)4711(?!\d)", whole(app) + str(address(app)))
    assert not {"ranks", "strategy"} & {column for table in app.dataframe for column in table.value.columns}


def test_the_owner_opens_what_others_do_not(filled: Filled) -> None:
    with filled.connect() as registry:
        user = registry.jobs.read("4711").job.user
        own, other = Viewer(only=user), Viewer(only="eve")
        assert door.placement(registry, filled.second, own).stored.id == filled.second
        assert door.pair(registry, filled.first, filled.second, own)[0].stored.id == filled.first
        assert door.job(registry, "4711", "ndr", own).stored.job.user == user
        for viewer, name in ((other, filled.second), (other, filled.alone), (own, filled.alone)):
            refused(registry, name, viewer)
        assert door.placement(registry, filled.alone, Viewer()).stored.id == filled.alone
        assert door.choices(registry, other).users == ("eve",)
        assert "hpcg" not in " ".join(door.choices(registry, other).applications)


def refused(registry: Registry, name: str, viewer: Viewer) -> None:
    for read in (
        lambda: door.placement(registry, name, viewer),
        lambda: door.pair(registry, name, name, viewer),
    ):
        with pytest.raises(UnknownName) as caught:
            read()
        assert (caught.value.kind, caught.value.name, caught.value.close) == ("placement", name, ())


def test_ingest_runs_name_nothing_of_others(filled: Filled) -> None:
    with filled.connect() as registry:
        everything, limited = (door.ingests(registry, viewer) for viewer in (Viewer(), Viewer(only="eve")))
        assert any(run.files for run in everything.runs)
        assert {text for run in limited.runs for text in (*run.files, *run.warnings)} == {door.HIDDEN}
        assert [len(run.files) for run in limited.runs] == [len(run.files) for run in everything.runs]
