"""JSON, YAML and XML within limits: any bytes are plain values, an element, or an InputError."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ingest.reading.json_text import MAX_DEPTH, Spot, load_json
from ingest.reading.xml_text import load_xml
from ingest.reading.yaml_text import load_yaml
from registry.errors import InputError
from tests.support.inputs import damaged, file

Load = Callable[..., Any]
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)
PLAIN = st.text("abcxyz0123456789-_", min_size=1, max_size=6)
TREES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PLAIN, inner, max_size=3),
    max_leaves=15,
)


@given(VALUES, st.booleans())
def test_json_comes_back_as_it_was_written(value: Any, ascii: bool) -> None:
    assert load_json(file(json.dumps(value, ensure_ascii=ascii))) == value


@given(TREES, st.booleans())
def test_yaml_agrees_with_the_librarys_own_loader(value: Any, flow: bool) -> None:
    text = yaml.dump(value, default_flow_style=flow, default_style='"')
    assert load_yaml(file(text)) == value == yaml.load(text, yaml.BaseLoader)


def test_scalars_of_yaml_are_the_text_in_the_file() -> None:
    text = "---\nswitch: no\nids: [0010, 12:30, ~, 1e3, 'a b', \"c\\n\"]\nempty:\n"
    found = {"switch": "no", "ids": ["0010", "12:30", "~", "1e3", "a b", "c\n"], "empty": ""}
    assert load_yaml(file(text)) == found


def test_the_outermost_element_of_xml_is_returned() -> None:
    root = load_xml(file("<?xml version='1.0'?><a x='1'><b>text</b></a>"))
    assert (root.tag, root.get("x"), root.findtext("b")) == ("a", "1", "text")


NO_ENTITIES = "document types and entities are not allowed"


@pytest.mark.parametrize(
    ("load", "text", "reason", "line"),
    [
        (load_json, '{"a": 1,\n"b": {"c": 2,\n"c": 3}}', "repeats this key", None),
        (load_json, '{"a": 1,\n"b": [1', "truncated", 2),
        (load_json, '{"a":\nNaN}', "is not a JSON number", 2),
        (load_json, "[-Infinity]", "is not a JSON number", 1),
        (load_json, "[\n1e999]", "too large", 2),
        (load_json, f"[{'9' * 5000}]", "too large", 1),
        (load_json, "[" * 100_000, "nested deeper", None),
        (load_json, "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "nested deeper", None),
        (load_json, '["\\ud800"]', "surrogate", None),
        (load_json, '{"\\udfff": 1}', "surrogate", None),
        (load_json, '"a\tb"', "control character", 1),
        (load_json, "[1]\n[2]", "truncated", 2),
        (load_json, "", "empty", None),
        (load_json, "{}\0", "binary", 1),
        (load_yaml, "a: 1\nb: 2\na: 3\n", "is repeated", 3),
        (load_yaml, "a: &x [1]\nb: *x\n", "anchors", 1),
        (load_yaml, "b: 1\na: *x\n", "aliases", 2),
        (load_yaml, "- !!python/object:os.system x\n", "tags", 1),
        (load_yaml, "? [a]\n: b\n", "a key is not text", 1),
        (load_yaml, "a: [1,\n2", "truncated", 2),
        (load_yaml, 'a:\n  "b', "truncated", 2),
        (load_yaml, "---\na\n---\nb\n", "2 YAML documents", None),
        (load_yaml, "# nothing\n", "0 YAML documents", None),
        (load_yaml, "[" * 3000, "nested deeper|cut off", 1),
        (load_yaml, "a: \x07", "invalid YAML", None),
        (load_xml, "<a>\n<b></a>", "invalid or truncated XML", 2),
        (load_xml, "<a>", "invalid or truncated XML", 1),
        (load_xml, "text", "invalid or truncated XML", 1),
        (load_xml, "<!DOCTYPE a><a/>", NO_ENTITIES, None),
        (load_xml, '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', NO_ENTITIES, None),
        (load_xml, "<?xml version='1.0' encoding='nothing'?><a/>", "XML", None),
        (load_xml, "<a>\0</a>", "binary", 1),
        (load_xml, "", "empty", None),
    ],
)
def test_what_is_more_than_data_or_damaged_is_refused(
    load: Load, text: str, reason: str, line: int | None
) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        load(file(text, "a.txt"))
    assert caught.value.path == "a.txt"
    if line is not None or load is not load_xml:
        assert caught.value.line == line


def test_brackets_and_escapes_in_strings_are_no_nesting_and_no_surrogates() -> None:
    assert load_json(file(json.dumps("[" * 5000))) == "[" * 5000
    assert load_json(file('["\\\\ud800", "\\ud83d\\ude00"]')) == ["\\ud800", "\U0001f600"]
    deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert load_json(file(deep)) is not None


def test_limits_on_bytes_and_aliases_are_kept() -> None:
    for load, text in ((load_json, "[1, 2, 3, 4]"), (load_yaml, "a: [1, 2, 3, 4]")):
        with pytest.raises(InputError, match="more than 10 bytes"):
            load(file(text), limit=10)
    lines = ["a0: &a0 [x, x]"] + [f"a{k}: &a{k} [*a{k - 1}, *a{k - 1}]" for k in range(1, 60)]
    with pytest.raises(InputError, match="anchors"):
        load_yaml(file("\n".join(lines)))


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


@given(
    st.binary(max_size=60) | st.text("ab:-[]{}\"'#&*!|>?% \n\t0,", max_size=60).map(str.encode),
    damaged(b"<?xml version='1.0'?><a x='1'><b>&lt;</b></a>") | st.binary(max_size=60),
)
def test_any_bytes_are_yaml_or_xml_or_an_input_error(data: bytes, marked_up: bytes) -> None:
    refused = ""
    try:
        load_yaml(file(data))
    except InputError as error:
        refused = str(error)
    assert "\n" not in refused
    with suppress(InputError):
        assert isinstance(load_xml(file(marked_up)).tag, str)


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
