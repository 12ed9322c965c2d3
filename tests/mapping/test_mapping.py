"""What the package offers, work in threads, and when compiled kernels are deleted."""

from __future__ import annotations

import pydoc
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core.caching import UserProvidedCacheLocator

import mapping
from mapping.kernels import forget_outdated
from mapping.placement.search.placing import place
from mapping.threads import cores, each


def test_each_name_is_that_of_its_module() -> None:
    assert mapping.place is place
    assert all(getattr(mapping, name).__name__ == name for name in mapping.__all__)
    with pytest.raises(AttributeError, match="'plaice'"):
        mapping.plaice  # noqa: B018


def test_dir_and_help_list_what_is_public() -> None:
    assert dir(mapping) == sorted(mapping.__all__)
    shown = pydoc.plain(pydoc.render_doc(mapping))
    assert all(name in shown for name in mapping.__all__)
    assert "Find a placement of a profile's ranks" in shown


@pytest.mark.usefixtures("processes")
def test_importing_the_package_loads_no_numpy() -> None:
    code = "import mapping, sys; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_results_are_in_the_order_of_the_pieces() -> None:
    assert each(lambda piece: piece * piece, range(5)) == [0, 1, 4, 9, 16]
    assert each(str, [7]) == ["7"]
    assert each(str, []) == []
    assert cores() >= 1


def test_the_error_of_a_piece_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        each(lambda piece: 1 // piece, [2, 1, 0])


@pytest.mark.parametrize("folder", ["", "elsewhere"])
def test_a_change_of_one_module_deletes_the_compiled_code_of_all(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", folder and str(tmp_path / folder))
    for package in ("kernels", "routing/kernels"):
        (tmp_path / package / "__pycache__").mkdir(parents=True)
    module = tmp_path / "routing" / "kernels" / "b.py"
    (tmp_path / "kernels" / "a.py").write_text("x = 1\n")
    module.write_text("from kernels.a import x\n")
    (tmp_path / "routing" / "c.py").write_text("y = 1\n")
    assert forget_outdated(tmp_path)
    cache = module.parent / "__pycache__"
    if folder:
        of_numba = UserProvidedCacheLocator.get_suitable_cache_subpath(str(module))  # type: ignore[no-untyped-call]
        cache = tmp_path / folder / of_numba
        cache.mkdir()
    compiled = [cache / "b.f-1.py311.nbi", cache / "b.f-1.py311.1.nbc"]
    for path in compiled:
        path.write_bytes(b"compiled")
    assert not forget_outdated(tmp_path)
    (tmp_path / "routing" / "c.py").write_text("y = 2\n")
    assert not forget_outdated(tmp_path)
    assert all(path.exists() for path in compiled)
    (tmp_path / "kernels" / "a.py").write_text("x = 2\n")
    assert forget_outdated(tmp_path)
    assert not any(path.exists() for path in compiled)
    assert not forget_outdated(tmp_path)


def test_a_folder_that_is_not_writable_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "a.py").write_text("x = 1\n")
    (tmp_path / "__pycache__").write_text("a file in the cache's place")
    assert not forget_outdated(tmp_path)
