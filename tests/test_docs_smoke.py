"""The blocks of README run as printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.doc_blocks import Shell


@pytest.mark.timeout(900)
def test_the_blocks_of_the_readme_run(sample: Shell, tmp_path: Path) -> None:
    sample.run_page("README.md", tmp_path / "page")
