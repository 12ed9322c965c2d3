"""JSON within limits: any bytes are a plain value or an InputError."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.reading.json_text import MAX_DEPTH, Spot, load_json
from registry.errors import InputError
from tests.support.inputs import file

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.booleans())
def test_json_comes_back_as_it_was_written(value: Any, ascii: bool) -> None:
    assert load_json(file(json.dumps(value, ensure_ascii=ascii))) == value


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ('{"a": 1,\n"b": {"c": 2,\n"c": 3}}', "repeats this key", None),
        ('{"a": 1,\n"b": [1', "truncated", 2),
        ('{"a":\nNaN}', "is not a JSON number", 2),
        ("[-Infinity]", "is not a JSON number", 1),
        ("[\n1e999]", "too large", 2),
        (f"[{'9' * 5000}]", "too large", 1),
        ("[" * 100_000, "nested deeper", None),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "nested deeper", None),
        ('["\\ud800"]', "surrogate", None),
        ('{"\\udfff": 1}', "surrogate", None),
        ('"a\tb"', "control character", 1),
        ("[1]\n[2]", "truncated", 2),
        ("", "empty", None),
        ("{}\0", "binary", 1),
    ],
)
def test_what_json_allows_and_no_tool_means_is_refused(text: str, reason: str, line: int | None) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        load_json(file(text, "a.json"))
    assert (caught.value.path, caught.value.line) == ("a.json", line)


def test_brackets_and_escapes_in_strings_are_no_nesting_and_no_surrogates() -> None:
    assert load_json(file(json.dumps("[" * 5000))) == "[" * 5000
    assert load_json(file('["\\\\ud800", "\\ud83d\\ude00"]')) == ["\\ud800", "\U0001f600"]
    deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert load_json(file(deep)) is not None


def test_a_limit_on_bytes_is_kept() -> None:
    with pytest.raises(InputError, match="more than 10 bytes"):
        load_json(file("[1, 2, 3, 4]"), limit=10)


@given(
    st.binary(max_size=60) | st.text('{}[]",:0123456789eE+-.\\u naNtrfalsI\n', max_size=60).map(str.encode)
)
def test_any_bytes_are_json_or_an_input_error(data: bytes) -> None:
    try:
        value = load_json(file(data))
    except InputError:
        return
    assert json.loads(data.decode("utf-8-sig")) == value
    assert not (isinstance(value, float) and not math.isfinite(value))


def test_a_spot_names_the_way_to_a_value_of_the_wrong_kind() -> None:
    spot = Spot("f").at("nodes").at(3).at("name")
    assert spot.way == "nodes[3].name"
    assert spot.text("x") == "x"
    assert spot.whole("12", 0, 12) == spot.whole(12, 0, 12) == 12
    for look in (spot.object, spot.list, spot.text):
        with pytest.raises(InputError, match=r"f: nodes\[3\].name: is no"):
            look(7)
    for wrong in (True, 1.0, "1.0", 13, -1, None, "1" * 30, "٣"):
        with pytest.raises(InputError, match="whole number from 0 to 12"):
            spot.whole(wrong, 0, 12)
