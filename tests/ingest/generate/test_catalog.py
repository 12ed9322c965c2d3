"""Generators by name: every line of the catalog leads to a function whose parameters can be given as text."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Sequence
from itertools import chain
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from almanac.commands.data.generate import OWN
from ingest import catalog
from ingest.generate.catalog import FABRICS, GENERATORS, PROFILES, WEIGHTS, Generator, make
from ingest.generate.signatures import REQUIRED, dataclass_of, parameters_of
from ingest.options import Options
from ingest.writers.generated_files import formats_of, write
from registry.errors import InvalidValue, UnknownName
from registry.model import Profile
from tests.support import paths
from tests.support.inputs import file

DOCUMENTED = (paths.ROOT / "docs" / "reference" / "generators.md").read_text()
SMALL: dict[str, dict[str, str]] = {
    "nas-bt": {"ranks": "9", "points": "12", "steps": "1"},
    "nas-sp": {"ranks": "9", "points": "12", "steps": "1"},
    "nas-cg": {"ranks": "8", "rows": "1400", "iterations": "1"},
    "nas-lu": {"ranks": "6", "grid": "3x2", "points": "12", "steps": "1"},
    "nas-mg": {"ranks": "8", "points": "16", "cycles": "1"},
    "nas-ft": {"ranks": "8", "points": "16,16,16", "steps": "1"},
    "nas-is": {"ranks": "8", "keys": "1024"},
    "nas-ep": {"ranks": "7"},
    "lulesh": {"side": "2"},
    "hpcg": {"grid": "2x2x1", "points": "16x16x8"},
    "sweep3d": {"grid": "3,2"},
    "snap": {"grid": "3x2"},
    "stencil": {"sides": "3x3", "points": "5", "periodic": "yes"},
    "ring": {"ranks": "5", "both_ways": "true"},
    "all-to-all": {"ranks": "5"},
    "random": {"ranks": "9", "partners": "2", "skew": "0.5"},
    "stream": {"vertices": "40", "sources": "2"},
    "collective": {"operation": "all-reduce", "ranks": "6", "algorithm": "tree"},
    "kkt": {"ranks": "4", "side": "4"},
    "crankshaft": {"ranks": "4", "nodes": "600"},
    "ai-layout": {"tensor": "2", "data": "3", "tensor_bytes": "5", "data_bytes": "7",
        "order": "data,tensor,context,pipeline"},
}  # fmt: skip


@pytest.mark.parametrize("generator", PROFILES, ids=lambda generator: generator.name)
def test_every_profile_is_made_of_text_and_read_back_from_each_format(generator: Generator) -> None:
    made = make(generator, SMALL[generator.name])
    assert isinstance(made, Profile)
    assert made.pairs
    for format in formats_of(made):
        content = file(write(made, format), "made")
        known = catalog.recognise(content.as_group())
        assert known.name == format
        (back,) = known.parse([content], Options()).profiles
        assert back.ranks == made.ranks
        columns = ("indptr", "partner", "bytes", "messages")
        assert all((getattr(back, name) == getattr(made, name)).all() for name in columns)


@pytest.mark.parametrize(
    "generator",
    list(chain.from_iterable(GENERATORS.values())),
    ids=lambda generator: f"{generator.kind}-{generator.name}",
)
def test_every_line_leads_to_a_function_whose_parameters_can_be_given_as_text(generator: Generator) -> None:
    assert generator.kind in {"fabric", "profile", "weights"}
    parameters = generator.parameters()
    assert all(parameter.type for parameter in parameters)
    assert not {parameter.name for parameter in parameters} & set(OWN)
    assert generator.explained()
    assert not generator.about.endswith(".")
    assert generator.kind != "profile" or f"`{generator.name}`" in DOCUMENTED
    function = generator.load()
    names = inspect.signature(dataclass_of(function) or function).parameters
    assert [parameter.name for parameter in parameters] == list(names)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("stencil", {"sides": "3x3"}, "stencil.points: is required"),
        ("stencil", {"sides": "3xz", "points": "5"}, "sides: is 'z', not a whole number"),
        ("stencil", {"sides": "3x3", "points": "5", "periodic": "maybe"}, "yes or no"),
        ("stencil", {"sides": "3x3", "points": "5", "bytes": "inf"}, "finite"),
        ("snap", {"grid": "3"}, "needs 2 values"),
        ("collective", {"operation": "gossip", "ranks": "4"}, "must be one of all-reduce"),
    ],
)
def test_values_that_cannot_be_read_are_named(name: str, values: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        make(PROFILES.find(name), values)


def test_names_that_are_not_there_get_the_closest_ones_of_three_tables() -> None:
    with pytest.raises(UnknownName, match="closest: stencil"):
        PROFILES.find("stencl")
    with pytest.raises(UnknownName, match="closest: points"):
        make(PROFILES.find("stencil"), {"point": "5"})
    assert dict(GENERATORS) == {"fabric": FABRICS, "profile": PROFILES, "weights": WEIGHTS}
    for kind, table in GENERATORS.items():
        assert {generator.kind for generator in table} == {kind}


def sample(
    one: int,
    two: float = 2.5,
    *,
    three: bool | Sequence[bool] = True,
    four: Literal["a", "b"] = "a",
    five: tuple[int, ...] | None = None,
) -> None:
    """A function.

    More about it.

    Parameters
    ----------
    one, two : int
        First. Second sentence.
    four : str
        Two
        lines; k .. n.

    Raises
    ------
    InvalidValue
    """


def test_parameters_are_read_from_signature_and_docstring() -> None:
    found = {parameter.name: parameter for parameter in parameters_of(sample)}
    assert found["one"].default is REQUIRED
    assert found["one"].about == found["two"].about == "First"
    assert found["four"].about == "Two lines; k .. n"
    types = ["whole number", "number", "yes or no or yes or no,...", "a|b", "whole number,..."]
    assert [parameter.type for parameter in found.values()] == types
    texts: dict[str, tuple[str, Any]] = {
        "one": ("7", 7), "two": ("7", 7.0), "three": ("no,yes", (False, True)), "four": ("b", "b"),
        "five": ("4", (4,)),
    }  # fmt: skip
    for name, (text, value) in texts.items():
        assert found[name].read(text) == value


def test_an_annotation_that_no_text_can_be_is_a_fault_of_the_catalog() -> None:
    def wrong(one: dict[str, int]) -> None: ...

    with pytest.raises(TypeError):
        parameters_of(wrong)


@given(text=st.text(max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parameter in parameters_of(sample):
        with contextlib.suppress(InvalidValue):
            parameter.read(text)
