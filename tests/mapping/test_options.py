"""Options in a text, read from a function's keyword-only parameters."""

from __future__ import annotations

import pytest

from mapping.options import options_of, read_options, split_options
from mapping.placement.catalog import Chain
from registry.errors import InvalidValue, UnknownName


def example(a: int, *, starts: int = 1, share: float = 0.5, near: str = "last", both: bool = False) -> None:
    """A function with options."""


def test_options_are_the_keyword_only_parameters_with_a_plain_default() -> None:
    def other(a: int, b: int = 2, *, c: list[int] | None = None, d: int = 3) -> None: ...

    assert options_of(example) == {"starts": 1, "share": 0.5, "near": "last", "both": False}
    assert options_of(other) == {"d": 3}


def test_values_get_the_types_of_the_defaults() -> None:
    name, given = split_options("example:starts=32,share=1,near=first,both=true")
    assert name == "example"
    values = read_options(name, given, options_of(example))
    assert values == {"starts": 32, "share": 1.0, "near": "first", "both": True}
    assert [type(value) for value in values.values()] == [int, float, str, bool]


def test_a_name_alone_has_no_options() -> None:
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


def test_an_unknown_option_is_told_with_the_closest_and_all_there_are() -> None:
    with pytest.raises(UnknownName, match="example has starts, share, near, both") as error:
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
