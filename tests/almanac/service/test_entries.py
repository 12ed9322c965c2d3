"""Entries of the spool: copies of files with their times, and the options of the ingest."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from almanac.service.entries import read_entry
from almanac.service.spool import Spool
from ingest.options import Options
from tests.support import paths

LINKS = "source,source_port,target,target_port,rate\nn{0},1,s1,{0},4xHDR\n"
JANUARY, MARCH = datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 3, 5, tzinfo=UTC)


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool", 1_000_000)


def scan(folder: Path, name: str = "links.csv", port: int = 1, when: datetime | None = None) -> Path:
    path = folder / name
    path.write_text(LINKS.format(port))
    if when is not None:
        os.utime(path, (when.timestamp(), when.timestamp()))
    return path


def test_options_times_and_folders_are_kept(spool: Spool, tmp_path: Path) -> None:
    options = Options(cluster="c", hosts=("a", "b"), slots=(2, 3), observed_at=MARCH, rate=1e9, strict=True)
    deep = tmp_path / "in" / "deep"
    deep.mkdir(parents=True)
    scan(deep, "x.csv", 3, JANUARY)
    name = spool.queue([str(tmp_path / "in") + "/", str(scan(tmp_path, "top.csv"))], options)
    entry = read_entry(spool.folder / name)
    entry.check()
    assert entry.options == options
    copied, top = map(Path, entry.paths)
    assert (copied / "deep" / "x.csv").stat().st_mtime == JANUARY.timestamp()
    assert top.read_text() == LINKS.format(1)
    assert entry.size == len(LINKS.format(3)) + len(LINKS.format(1))


def test_recordings_of_one_folder_stay_one_recording(spool: Spool) -> None:
    given = sorted((paths.DATA / "openmpi").rglob("*.prof"))
    if not given:
        pytest.skip("no recording is shipped unpacked")
    entry = read_entry(spool.folder / spool.queue([str(one) for one in given], Options()))
    assert len({Path(path).parent for path in entry.paths}) == len({one.parent for one in given})
