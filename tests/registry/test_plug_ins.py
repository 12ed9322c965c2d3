"""Plug-ins of other packages: found by entry points, used like entries, and broken ones named."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from registry.catalog import Catalog, Entry
from registry.errors import UnknownName
from registry.plug_ins import PlugInError, PlugIns

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
    ("code", "target", "reason"),
    [
        ("import no_such_module", "bad:cut", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("1 / 0", "bad:cut", "ZeroDivisionError: division by zero"),
        ("x = 1", "bad:cut", "AttributeError: module 'bad' has no attribute 'cut'"),
        ("cut = 5", "bad:cut", "TypeError: bad:cut is no function"),
        ("this is no Python", "bad:cut", "SyntaxError: invalid syntax"),
    ],
)
def test_a_broken_plug_in_is_named_and_costs_nothing_else(
    install: Install, code: str, target: str, reason: str
) -> None:
    install("good", "def cut(): pass", saw="good:cut")
    install("bad", code, broken=target)
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
    assert sorted((one.name, one.package) for one in found.broken) == [
        ("a+b", "two 1.2"),
        ("hammer", "one 1.2"),
        ("saw", "two 1.2"),
    ]


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
