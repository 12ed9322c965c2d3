"""``almanac dashboard``: what it refuses before it starts."""

from __future__ import annotations

import sys

import pytest

from registry.errors import MissingExtra
from registry.installation import install_command
from tests.almanac.conftest import Almanac


@pytest.mark.parametrize("module", ["streamlit", "altair", "pandas", "PIL"])
def test_without_its_libraries_the_remedy_is_named(
    module: str, offline: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    refused = offline("dashboard", "--no-browser")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == f"almanac: {MissingExtra(module, install_command('dashboard'))}\n"
