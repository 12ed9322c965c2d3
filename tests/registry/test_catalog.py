"""Tables of named things, and options in a text, read from a function's keyword-only parameters."""

from __future__ import annotations

import math

import pytest

from mapping.placement.catalog import Chain
from registry.catalog import Catalog, Choice, Entry, options_of, read_options, split_options
from registry.errors import InvalidValue, UnknownName


def example(a: int, *, starts: int = 1, share: float = 0.5, near: str = "last", both: bool = False) -> None:
    """A function with options."""


def test_values_get_the_types_of_the_defaults_of_keyword_only_parameters() -> None:
    def other(a: int, b: int = 2, *, c: list[int] | None = None, d: int = 3) -> None: ...

    assert options_of(example) == {"starts": 1, "share": 0.5, "near": "last", "both": False}
    assert options_of(other) == {"d": 3}
    name, given = split_options("example:starts=32,share=1,near=first,both=true")
    assert name == "example"
    values = read_options(name, given, options_of(example))
    assert values == {"starts": 32, "share": 1.0, "near": "first", "both": True}
    assert [type(value) for value in values.values()] == [int, float, str, bool]
    assert split_options("example") == ("example", {})


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("example:starts", "example"),
        ("example:", "example"),
        ("example:=3", "example"),
        ("example:starts=1,starts=2", "example.starts"),
        ("example:starts=1.5", "example.starts"),
        ("example:starts=", "example.starts"),
        ("example:share=much", "example.share"),
        ("example:share=nan", "example.share"),
        ("example:both=maybe", "example.both"),
    ],
)
def test_what_makes_no_sense_is_refused_by_field(text: str, field: str) -> None:
    with pytest.raises(InvalidValue) as error:
        read_options(*split_options(text), options_of(example))
    assert error.value.field == field


def test_an_unknown_option_is_an_error_with_the_closest_and_all_options() -> None:
    with pytest.raises(
        UnknownName, match=r"no example option 'start'; closest: starts.*; known: starts, share, near, both"
    ) as error:
        read_options("example", {"start": "1"}, options_of(example))
    assert error.value.close[0] == "starts"
    with pytest.raises(UnknownName, match="has none"):
        read_options("plain", {"start": "1"}, {})


def test_a_chain_keeps_its_options_in_its_text() -> None:
    text = "greedy:starts=4,near=last+threshold-accepting:first=0.0"
    chain = Chain.parse(text)
    assert str(chain) == text
    assert chain.strategy is not None
    assert chain.strategy.options == (("starts", 4), ("near", "last"))
    assert chain.refiners[0].options == (("first", 0.0),)
    assert Chain.parse(str(chain)) == chain


def entry(name: str, target: str = "math:sqrt") -> Entry:
    return Entry(name=name, target=target, about="an example")


def test_a_table_finds_its_entries_and_names_the_closest() -> None:
    table = Catalog("tool", [entry("hammer"), entry("saw")])
    assert table.names == ("hammer", "saw")
    assert [one.name for one in table] == ["hammer", "saw"]
    assert len(table) == 2
    assert "saw" in table
    assert "nail" not in table
    assert table.find("saw").load()(4.0) == 2.0
    with pytest.raises(UnknownName, match="there is no tool 'hamer'; closest: hammer") as error:
        table.find("hamer")
    assert error.value.close == ("hammer",)
    with pytest.raises(UnknownName, match=r"there is no tool 'xyz'; known: hammer, saw$"):
        table.find("xyz")


def test_two_entries_with_one_name_are_a_fault_of_the_table() -> None:
    assert entry("math", "math").load() is math  # an entry without a function is its module
    with pytest.raises(ValueError, match="table of tools"):
        Catalog("tool", [entry("saw"), entry("saw")])


def test_a_choice_applies_its_options_and_writes_them() -> None:
    choice = Choice(
        Entry(name="example", target=f"{__name__}:example", about=""), (("both", True), ("starts", 3))
    )
    assert str(choice) == "example:both=true,starts=3"
    assert choice.name == "example"
    assert choice.function().keywords == {"both": True, "starts": 3}  # type: ignore[attr-defined]
