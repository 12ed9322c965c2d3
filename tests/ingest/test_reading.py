"""Files as they are read: compressed, in archives, of limited size; text; JSON item by item; faults."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import math
import os
import sys
import tarfile
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ingest.reading import source
from ingest.reading.source import decompress, members, read_paths
from ingest.reading.text import MAX_DEPTH, Spot, items, load_json, load_xml, load_yaml
from registry.errors import InputError
from tests.support.inputs import damaged, file, tar, tar_of


@pytest.mark.parametrize("squeeze", [bytes, gzip.compress, lzma.compress])
def test_compression_is_recognised_by_content_not_by_name(tmp_path: Path, squeeze: type[bytes]) -> None:
    path = tmp_path / "scan.txt"
    path.write_bytes(squeeze(b"hello\n"))
    os.utime(path, (1_600_000_000, 1_600_000_000))
    (group,) = read_paths([path])
    assert group.path == str(path)
    assert [read.data for read in group.files] == [b"hello\n"]
    assert group.files[0].modified_at == datetime.fromtimestamp(1_600_000_000, UTC)


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_members_of_an_archive_are_sources_of_their_own(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(tar({"x/one.txt": b"1", "two.txt.gz": gzip.compress(b"2")}, mode=mode))
    groups = read_paths([path])
    assert [group.path for group in groups] == [f"{path}!x/one.txt", f"{path}!two.txt.gz"]
    assert [group.files[0].data for group in groups] == [b"1", b"2"]
    assert groups[0].files[0].modified_at == datetime.fromtimestamp(1_700_000_000, UTC)


def test_prof_files_of_a_folder_or_archive_are_one_source_also_named_one_by_one(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a/x.0.prof", "a/x.1.prof", "b/y.0.prof")]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(path.name.encode())
    for named in (paths, [tmp_path / "a", tmp_path / "b"]):
        found = [(group.path, [read.data for read in group.files]) for group in read_paths(named)]
        a, b = (str(tmp_path / name) for name in "ab")
        assert found == [(a, [b"x.0.prof", b"x.1.prof"]), (b, [b"y.0.prof"])]
    path = tmp_path / "profile.tgz"
    path.write_bytes(tar({"d/app.0.prof": b"0", "d/app.1.prof": b"1"}, mode="w:gz"))
    (group,) = read_paths([path])
    assert [read.path for read in group.files] == [f"{path}!d/app.0.prof", f"{path}!d/app.1.prof"]


def test_a_mixed_folder_gives_every_file_and_walks_folders_in_name_order(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("b.txt", "a.prof", "sub/c.txt"):
        (tmp_path / name).write_bytes(name.encode())
    groups = read_paths([tmp_path])
    assert [Path(group.path).name for group in groups] == ["a.prof", "b.txt", "c.txt"]
    assert all(len(group.files) == 1 for group in groups)


def test_standard_input_is_read_by_the_name_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b"piped"))))
    (group,) = read_paths(["-"])
    assert group.files[0].data == b"piped"


def test_missing_files_and_empty_or_large_folders_are_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="No such file") as caught:
        read_paths([tmp_path / "nowhere"])
    assert caught.value.path == str(tmp_path / "nowhere")
    with pytest.raises(InputError, match="folder is empty"):
        read_paths([tmp_path])
    (tmp_path / "a.tar").write_bytes(tar_of(directory("d")))
    with pytest.raises(InputError, match="the archive contains no files"):
        read_paths([tmp_path / "a.tar"])
    monkeypatch.setattr(source, "MAX_MEMBERS", 1)
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(InputError, match="more than 1 files"):
        read_paths([tmp_path])


def directory(name: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = tarfile.DIRTYPE
    return info


def test_a_link_to_a_folder_and_a_pipe_in_a_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "loop").symlink_to(tmp_path)
    with pytest.raises(InputError, match="links to folders are not followed"):
        read_paths([tmp_path / "d"])
    (tmp_path / "e").mkdir()
    os.mkfifo(tmp_path / "e" / "pipe")
    with pytest.raises(InputError, match="neither a file nor a folder"):
        read_paths([tmp_path / "e"])


@pytest.mark.parametrize(
    ("data", "reason", "line", "text"),
    [
        (b"", "empty", None, None),
        (b" \n\t\r\n", "empty", None, None),
        (b"one\ntwo\n\0\n", "binary", 3, None),
        (b"one\ncaf\xe9 here\nthree", "0xe9 is not UTF-8", 2, "caf\\xe9 here"),
    ],
)
def test_text_that_is_none_is_an_error_with_its_line(
    data: bytes, reason: str, line: int | None, text: str | None
) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        file(data).text()
    assert (caught.value.line, text in (None, caught.value.text)) == (line, True)


def test_only_line_feeds_end_lines_so_that_line_numbers_agree_with_editors() -> None:
    assert file(b"\xef\xbb\xbfa\r\nb\n\nc").lines() == ["a", "b", "", "c"]
    assert file("a\x0bb\x85c\u2028d\ne\n".encode()).lines() == ["a\x0bb\x85c\u2028d", "e"]


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_text_or_an_input_error(data: bytes) -> None:
    read = file(data)
    assert isinstance(read.head(), str)
    with suppress(InputError):
        assert len(read.lines()) <= data.count(b"\n") + 1


@pytest.mark.parametrize("name", ["/etc/passwd", "../up.txt", "a/../../up.txt"])
def test_archive_members_that_leave_the_archive_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="leads out of the archive"):
        list(members(tar({name: b"x"}), "a.tar"))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_archive_members_that_are_links_or_devices_are_refused(kind: bytes) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.linkname = kind, "/etc/passwd"
    with pytest.raises(InputError, match="a link or a device"):
        list(members(tar_of(info), "a.tar"))


@pytest.mark.parametrize("squeeze", [gzip.compress, lzma.compress])
def test_a_bomb_is_stopped_at_the_limit_with_little_more_memory_than_that(
    squeeze: type[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingest.reading.source._CHUNK", 1 << 16)
    bomb = squeeze(bytes(20_000_000))
    assert len(bomb) < 40_000
    tracemalloc.start()
    with pytest.raises(InputError, match=r"unpacks to more than 1 MB.*unpack it first"):
        decompress(bomb, "bomb", 1_000_000)
    assert tracemalloc.get_traced_memory()[1] < 13_000_000  # an xz stream has a dictionary of 8 MiB
    tracemalloc.stop()
    assert len(decompress(bomb, "bomb", 20_000_000)) == 20_000_000


def test_content_does_not_depend_on_the_size_of_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    content = np.random.default_rng(0).integers(0, 99, 1000).astype(np.uint8).tobytes()
    packed = gzip.compress(content) + gzip.compress(b"b"), lzma.compress(content) + lzma.compress(b"b")
    for size in (1, 7, 500, 1001):
        monkeypatch.setattr("ingest.reading.source._CHUNK", size)
        assert [decompress(one, "f") for one in packed] == [content + b"b"] * 2


def test_an_archive_is_limited_in_the_sum_and_number_of_members(monkeypatch: pytest.MonkeyPatch) -> None:
    data = tar({"a": bytes(600), "b": gzip.compress(bytes(600))})
    with pytest.raises(InputError, match="unpacks to more than"):
        list(members(data, "a.tar", 1000))
    monkeypatch.setattr("ingest.reading.source.MAX_MEMBERS", 2)
    with pytest.raises(InputError, match="more than 2 members"):
        list(members(tar({"a": b"", "b": b"", "c": b""}), "a.tar"))


@pytest.mark.parametrize("squeeze", [gzip.compress, lzma.compress])
def test_cut_off_compressed_data_are_an_error(squeeze: type[bytes]) -> None:
    whole = squeeze(b"some text that is long enough to cut" * 3)
    with pytest.raises(InputError, match=r"too early|damaged"):
        decompress(whole[:-9], "f")


def test_a_cut_archive_and_an_xz_stream_of_much_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="damaged"):
        list(members(tar({"a": bytes(5000)})[:2000], "a.tar"))
    monkeypatch.setattr("ingest.reading.source.XZ_MEMORY", 1 << 16)
    with pytest.raises(InputError, match="damaged"):
        decompress(lzma.compress(b"x"), "f.xz")


@given(st.binary(max_size=2000), st.sampled_from([b"", b"\x1f\x8b\x08", b"\xfd7zXZ\x00"]))
def test_arbitrary_bytes_decompress_or_are_an_input_error(data: bytes, magic: bytes) -> None:
    with suppress(InputError):
        assert len(decompress(magic + data, "f", 100_000)) <= 100_000


@given(st.data())
def test_damaged_archives_are_read_or_are_an_input_error(data: st.DataObject) -> None:
    whole = bytearray(tar({"a.txt": b"hello" * 50, "b/c.txt": b"x"}))
    for _ in range(data.draw(st.integers(1, 8))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with suppress(InputError):
        assert sum(len(member.data) for member in members(bytes(whole), "a.tar", 100_000)) <= 100_000


Load = Callable[..., Any]
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)


def values(text: st.SearchStrategy[str], leaves: int) -> st.SearchStrategy[Any]:
    numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    return st.recursive(
        st.none() | st.booleans() | numbers | text,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
        max_leaves=leaves,
    )


VALUES, ITEMS = values(TEXT, 20), values(st.text(max_size=6), 8)
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


def of(content: str | bytes) -> list[Any]:
    return list(items(file(content), "jobs"))


@given(
    before=st.dictionaries(st.text(max_size=3), ITEMS, max_size=2),
    after=st.dictionaries(st.text(max_size=3), ITEMS, max_size=2),
    jobs=st.lists(ITEMS, max_size=5),
    indent=st.none() | st.integers(0, 2),
    chunk=st.integers(1, 40),
)
def test_items_are_those_that_a_plain_reader_finds(
    before: dict[str, Any], after: dict[str, Any], jobs: list[Any], indent: int | None, chunk: int
) -> None:
    content = before | {"jobs": jobs} | after | {"jobs": jobs}
    text = json.dumps(content, indent=indent, ensure_ascii=bool(indent))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ingest.reading.text.CHUNK", chunk)
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


WHOLE = b'{"meta": {"v": [1, 2]}, "jobs": [{"a": "\\u00e4", "b": [1.5, null]}, {"a": "x"}], "last": true}'


@given(damaged(WHOLE))
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
    monkeypatch.setattr("ingest.reading.text.CHUNK", 10)
    monkeypatch.setattr("ingest.reading.text.MAX_VALUE", 100)
    assert of('{"jobs": [' + ",".join(["123456789"] * 100) + "]}") == [123456789] * 100
    with pytest.raises(InputError, match="a value of more than 100 characters"):
        of('{"jobs": ["' + "a" * 200)
