"""The functions that the package offers, loaded on first use."""

from __future__ import annotations

import pydoc
import subprocess
import sys

import pytest

import mapping
from mapping.placement.search.placing import place


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


def test_importing_the_package_loads_no_numpy() -> None:
    code = "import mapping, sys; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
