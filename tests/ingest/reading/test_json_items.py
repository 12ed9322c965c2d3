"""Items of a long list in JSON, one at a time: what a plain reader gives, wherever the text is cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.reading import json_items, source
from ingest.reading.json_items import items
from ingest.reading.source import read_paths
from registry.errors import InputError
from tests.support.inputs import damaged, file

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def of(content: str | bytes) -> list[Any]:
    return list(items(file(content), "jobs"))


@given(
    before=st.dictionaries(st.text(max_size=3), VALUES, max_size=2),
    after=st.dictionaries(st.text(max_size=3), VALUES, max_size=2),
    jobs=st.lists(VALUES, max_size=5),
    indent=st.none() | st.integers(0, 2),
    chunk=st.integers(1, 40),
)
def test_items_are_those_that_a_plain_reader_finds(
    before: dict[str, Any], after: dict[str, Any], jobs: list[Any], indent: int | None, chunk: int
) -> None:
    content = before | {"jobs": jobs} | after | {"jobs": jobs}
    text = json.dumps(content, indent=indent, ensure_ascii=bool(indent))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_items, "CHUNK", chunk)
        assert of(text) == jobs


def test_a_byte_order_mark_and_blanks_around_do_no_harm() -> None:
    assert of(b'\xef\xbb\xbf \r\n{ "x" : 1 , "jobs" : [ 1 , 2.5 , "a" ] } \n') == [1, 2.5, "a"]


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ('{"x": 1}', None, "no list under the key jobs"),
        ("{}", None, "no list under the key jobs"),
        ('{"jobs": 5}', 1, "no list under the key jobs"),
        ("[1]", 1, "no list under the key jobs"),
        ("", 1, "no list under the key jobs"),
        ('{"jobs": [1,\n2', 2, "invalid or truncated JSON: no ']' after the list jobs"),
        ('{"jobs": [1,\n', 2, "invalid or truncated JSON: Expecting value"),
        ('{"jobs": [1],\n}', 2, "invalid or truncated JSON: Expecting value"),
        ('{"jobs": [1]', 1, "invalid or truncated JSON: no ',' between two keys"),
        ('{"jobs" [1]}', 1, "invalid or truncated JSON: no ':' after a key"),
        ('{"jobs": [1] "x": 2}', 1, "invalid or truncated JSON: no ',' between two keys"),
        ('{"jobs": [1]}\n{}', 2, "more than one JSON value"),
        ('{"jobs": [1], "jobs": [2]}', 1, "the key jobs is repeated"),
        ('{1: [1]}', 1, "a key is not text"),
        ('{"jobs": [{"a": 1, "a": 2}]}', 1, "an object repeats this key"),
        ('{"jobs": [NaN]}', 1, "is not a JSON number"),
        ('{"jobs": [1e999]}', 1, "the number is too large"),
        ('{"jobs": ["\\ud800"]}', 1, "text with half a surrogate pair, which is not a character"),
        ('{"jobs": [' + "[" * 100_000, 1, "unreadable JSON: maximum recursion depth exceeded"),
        (b'{"jobs": ["a\xff"]}', 1, "byte 0xff is not UTF-8 text"),
        (b'{"jobs":\n["a\0"]}', 2, "the file is binary, not text"),
    ],
)  # fmt: skip
def test_what_is_no_such_document_is_refused(content: str | bytes, line: int | None, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        of(content)
    assert caught.value.path == "input"
    assert caught.value.reason.startswith(reason)
    assert caught.value.line == line


@given(
    damaged(
        b'{"meta": {"v": [1, 2]}, "jobs": [{"a": "\\u00e4", "b": [1.5, null]}, {"a": "x"}], "last": true}'
    )
)
def test_a_damaged_document_is_read_as_a_plain_reader_does_or_refused(content: bytes) -> None:
    try:
        found = of(content)
    except InputError:
        return
    assert found == json.loads(content.decode("utf-8-sig"))["jobs"]


HALF = "text with half a surrogate pair, which is not a character"


def of_disk(path: Path, content: bytes, piece: int) -> list[Any] | tuple[str, int | None]:
    """The items of a file that stays on disk, or what is wrong where."""
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "LARGE", 0)
        patch.setattr(source, "PIECE", piece)
        ((given,),) = (group.files for group in read_paths([path]))
        assert given.size_on_disk is not None
        try:
            return list(items(given, "jobs"))
        except InputError as error:
            return error.reason, error.line


@pytest.mark.parametrize("piece", [1, 3, 50, 10_000])
@pytest.mark.parametrize(
    ("content", "found"),
    [
        ('{"jobs":\n[1, "é", {"a": [2.5, null]}], "x": 3}'.encode(), [1, "é", {"a": [2.5, None]}]),
        (b'{"jobs":\n["a", "\xff"]}', ("byte 0xff is not UTF-8 text", 2)),
        (b'{"jobs":\n["a",\n "\xc3', ("byte 0xc3 is not UTF-8 text", 3)),
        (b'{"jobs":\n["a\0"]}', ("the file is binary, not text", 2)),
        (b'{"jobs":\n["a",\n', ("invalid or truncated JSON: Expecting value", 3)),
        (b'{"jobs":\n["\\ud83d\\ude00", "\\ud83d"]}', (HALF, 2)),
    ],
)  # fmt: skip
def test_a_large_file_is_read_as_a_small_one_is(
    content: bytes, found: list[Any] | tuple[str, int | None], piece: int, tmp_path: Path
) -> None:
    assert of_disk(tmp_path / "x", content, piece) == found


def test_a_value_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_items, "CHUNK", 10)
    monkeypatch.setattr(json_items, "MAX_VALUE", 100)
    assert of('{"jobs": [' + ",".join(["123456789"] * 100) + "]}") == [123456789] * 100
    with pytest.raises(InputError, match="a value of more than 100 characters"):
        of('{"jobs": ["' + "a" * 200)
