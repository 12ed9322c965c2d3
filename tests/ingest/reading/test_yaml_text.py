"""YAML within limits: any bytes are text, lists and objects, or an InputError."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ingest.reading.yaml_text import load_yaml
from registry.errors import InputError
from tests.support.inputs import file


def test_scalars_of_yaml_are_the_text_that_stands_there() -> None:
    text = "---\nswitch: no\nids: [0010, 12:30, ~, 1e3, 'a b', \"c\\n\"]\nempty:\n"
    found = {"switch": "no", "ids": ["0010", "12:30", "~", "1e3", "a b", "c\n"], "empty": ""}
    assert load_yaml(file(text)) == found


PLAIN = st.text("abcxyz0123456789-_", min_size=1, max_size=6)
TREES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PLAIN, inner, max_size=3),
    max_leaves=15,
)


@given(TREES, st.booleans())
def test_yaml_agrees_with_the_librarys_own_loader(value: Any, flow: bool) -> None:
    text = yaml.dump(value, default_flow_style=flow, default_style='"')
    assert load_yaml(file(text)) == value == yaml.load(text, yaml.BaseLoader)


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("a: 1\nb: 2\na: 3\n", "is repeated", 3),
        ("a: &x [1]\nb: *x\n", "anchors", 1),
        ("b: 1\na: *x\n", "aliases", 2),
        ("- !!python/object:os.system x\n", "tags", 1),
        ("? [a]\n: b\n", "a key is not text", 1),
        ("a: [1,\n2", "truncated", 2),
        ('a:\n  "b', "truncated", 2),
        ("---\na\n---\nb\n", "2 YAML documents", None),
        ("# nothing\n", "0 YAML documents", None),
        ("[" * 3000, "nested deeper|cut off", 1),
        ("a: \x07", "invalid YAML", None),
    ],
)
def test_what_yaml_can_do_beyond_data_is_refused(text: str, reason: str, line: int | None) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        load_yaml(file(text))
    assert caught.value.line == line


def test_a_few_lines_of_aliases_do_not_become_a_memory_full_of_values() -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{k}: &a{k} [*a{k - 1}, *a{k - 1}]" for k in range(1, 60)]
    with pytest.raises(InputError, match="anchors"):
        load_yaml(file("\n".join(lines)))


@given(st.binary(max_size=60) | st.text("ab:-[]{}\"'#&*!|>?% \n\t0,", max_size=60).map(str.encode))
def test_any_bytes_are_yaml_or_an_input_error(data: bytes) -> None:
    refused = ""
    try:
        load_yaml(file(data))
    except InputError as error:
        refused = str(error)
    assert "\n" not in refused


def test_a_limit_on_bytes_is_kept() -> None:
    with pytest.raises(InputError, match="more than 10 bytes"):
        load_yaml(file("a: [1, 2, 3, 4]"), limit=10)
