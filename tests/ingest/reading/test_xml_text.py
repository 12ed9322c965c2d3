"""XML within limits: any bytes are an element or an InputError."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.reading.xml_text import load_xml
from registry.errors import InputError
from tests.support.inputs import damaged, file


def test_the_outermost_element_is_returned() -> None:
    root = load_xml(file("<?xml version='1.0'?><a x='1'><b>text</b></a>"))
    assert (root.tag, root.get("x"), root.findtext("b")) == ("a", "1", "text")


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("<a>\n<b></a>", "invalid or truncated XML", 2),
        ("<a>", "invalid or truncated XML", 1),
        ("text", "invalid or truncated XML", 1),
        ("<!DOCTYPE a><a/>", "document types and entities are not allowed", None),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "document types and entities are not allowed", None),
        ("<?xml version='1.0' encoding='nothing'?><a/>", "XML", None),
        ("<a>\0</a>", "binary", 1),
        ("", "empty", None),
    ],
)
def test_other_content_is_refused(text: str, reason: str, line: int | None) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        load_xml(file(text))
    if line is not None:
        assert caught.value.line == line


@given(st.binary(max_size=60) | damaged(b"<?xml version='1.0'?><a x='1'><b>&lt;</b></a>"))
def test_any_bytes_are_an_element_or_an_input_error(data: bytes) -> None:
    with suppress(InputError):
        assert isinstance(load_xml(file(data)).tag, str)
