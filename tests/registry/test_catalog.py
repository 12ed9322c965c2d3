"""Tables of named things, their options, and plug-ins of other packages: used alike, broken ones named."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ingest.formats.profiles.edges import EDGE_CSV
from ingest.parsed import Format
from mapping.placement.catalog import Chain
from registry.catalog import Catalog, Choice, Entry, PlugIns, options_of, read_options, split_options
from registry.errors import InvalidValue, PlugInError, UnknownName


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
        *(("example:starts", "example"), ("example:", "example"), ("example:=3", "example")),
        *(("example:starts=1,starts=2", "example.starts"), ("example:starts=1.5", "example.starts")),
        *(("example:starts=", "example.starts"), ("example:share=much", "example.share")),
        *(("example:share=nan", "example.share"), ("example:both=maybe", "example.both")),
    ],
)
def test_what_makes_no_sense_is_refused_by_field(text: str, field: str) -> None:
    with pytest.raises(InvalidValue) as error:
        read_options(*split_options(text), options_of(example))
    assert error.value.field == field


def test_an_unknown_option_is_an_error_with_the_closest_and_all_options() -> None:
    reason = r"no example option 'start'; closest: starts.*; known: starts, share, near, both"
    with pytest.raises(UnknownName, match=reason) as error:
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
    assert table.names == tuple(one.name for one in table) == ("hammer", "saw")
    assert (len(table), "saw" in table, "nail" in table) == (2, True, False)
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
    one = Entry(name="example", target=f"{__name__}:example", about="")
    choice = Choice(one, (("both", True), ("starts", 3)))
    assert str(choice) == "example:both=true,starts=3"
    assert choice.name == "example"
    assert choice.function().keywords == {"both": True, "starts": 3}  # type: ignore[attr-defined]


Install = Callable[..., None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool(Entry):
    handle: str = ""
    fixed: bool = False


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return a function that installs a package with entry points of the group ``tools``."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(package: str, code: str, **points: str) -> None:
        monkeypatch.delitem(sys.modules, package, raising=False)
        (tmp_path / f"{package}.py").write_text(code)
        folder = tmp_path / f"{package}-1.2.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
        lines = [f"{name.replace('_', '-')} = {target}" for name, target in points.items()]
        (folder / "entry_points.txt").write_text("\n".join(["[fabric_almanac.tools]", *lines, ""]))

    return write


def tools() -> Catalog[Tool]:
    own = Tool(name="hammer", target="operator:add", about="adds")
    return Catalog("tool", [own], PlugIns(group="tools", entry=Tool, values={"fixed": True}))


def test_a_plug_in_is_an_entry_after_the_own_ones(install: Install) -> None:
    code = 'def cut(a, *, deep=2):\n    """Cut\n    it."""\n    return a\ncut.handle = "wood"\n'
    install("saws", code, saw="saws:cut")
    found = tools()
    assert found.names == ("hammer", "saw")
    saw = found.find("saw")
    assert (saw.about, saw.package, saw.handle, saw.fixed) == ("Cut", "saws 1.2", "wood", True)
    assert saw.load()(3) == 3
    assert saw.options() == {"deep": 2}
    assert found.plug_ins == (saw,)
    assert found.broken == ()
    assert "saw" in found


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("x = 1", "AttributeError: module 'bad' has no attribute 'cut'"),
        ("cut = 5", "TypeError: bad:cut is no function"),
        ("this is no Python", "SyntaxError: invalid syntax"),
    ],
)
def test_a_broken_plug_in_is_named_and_costs_nothing_else(install: Install, code: str, reason: str) -> None:
    install("good", "def cut(): pass", saw="good:cut")
    install("bad", code, broken="bad:cut")
    found = tools()
    assert found.names == ("hammer", "saw")
    (one,) = found.broken
    assert (one.name, one.package) == ("broken", "bad 1.2")
    assert one.reason.startswith(reason)
    with pytest.raises(PlugInError, match=r"the tool 'broken' of bad 1\.2 cannot be used") as caught:
        found.find("broken")
    assert caught.value.__cause__ is one.cause
    with pytest.raises(UnknownName, match="closest: saw"):
        found.find("sew")


def test_names_in_use_and_names_with_signs_are_broken(install: Install) -> None:
    install("one", "def cut(): pass", hammer="one:cut", saw="one:cut")
    install("two", "def cut(): pass", saw="two:cut", **{"a+b": "two:cut"})
    found = tools()
    assert found.names == ("hammer", "saw")
    assert found.find("hammer").package == ""
    broken = sorted((one.name, one.package) for one in found.broken)
    assert broken == [("a+b", "two 1.2"), ("hammer", "one 1.2"), ("saw", "two 1.2")]


def test_plug_ins_are_loaded_only_when_they_are_needed(install: Install) -> None:
    install("late", "raise SystemError('loaded')", late="late:cut")
    found = tools()
    assert found.find("hammer").load()(1, 2) == 3
    assert "_found" not in vars(found)
    assert found.names == ("hammer",)
    assert found.broken[0].reason == "SystemError: loaded"


def test_a_method_of_a_class_is_found_and_needed_attributes_are_checked(install: Install) -> None:
    code = "class Kit:\n    @staticmethod\n    def turn():\n        return 7\n"
    install("kits", code, turn="kits:Kit.turn")
    assert tools().find("turn").load()() == 7
    install("module", "recognise = parse = len", half="module")
    formats = Catalog[Entry]("format", [], PlugIns(group="tools", entry=Entry, needs=("recognise", "kind")))
    assert formats.names == ()
    assert [one.reason for one in formats.broken if one.name == "half"] == ["TypeError: module has no kind"]


def test_a_format_is_an_object_or_a_module_and_own_ones_are_imported_on_first_use(install: Install) -> None:
    install("shapes", '"""Lines."""\nkind, recognise, parse = "fabric", len, len\n', lines="shapes")
    places = {"absent": "no_such_module:ABSENT", "edge-csv": "ingest.formats.profiles.edges:EDGE_CSV"}
    formats = Catalog("format", places, PlugIns(group="tools", entry=Format, needs=("recognise", "kind")))
    assert formats.names == ("absent", "edge-csv", "lines")
    assert formats.find("edge-csv") is EDGE_CSV
    lines = formats.find("lines")
    assert (lines.kind, lines.about, lines.package) == ("fabric", "Lines.", "shapes 1.2")
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        formats.find("absent")
