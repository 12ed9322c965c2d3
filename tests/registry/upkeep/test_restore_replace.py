"""A damaged database is replaced by its backup; what was there is kept."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from registry.database.embedded_files import damage
from registry.database.embedded_server import ensure_server, stop
from registry.errors import DatabaseError, InputError
from registry.registry import Registry
from registry.upkeep.backup import backup
from registry.upkeep.restore import compact, replace, restore
from registry.upkeep.verify import verify
from tests.support import paths

DUMP = paths.DATA / "dumps" / "schema-5.dump"


@pytest.fixture(scope="module")
def whole(processes: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder of a stopped server."""
    home = tmp_path_factory.mktemp("whole") / "home"
    with ensure_server(home, idle_seconds=300).connect() as database:
        restore(database, DUMP)
    stop(home)
    return home


@pytest.fixture
def home(whole: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of it, whose server is stopped at the end."""
    folder = tmp_path / "home"
    shutil.copytree(whole, folder)
    yield folder
    stop(folder)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """The backup of its content."""
    return Path(shutil.copy(DUMP, tmp_path / "saved"))


def only(home: Path, pattern: str) -> Path:
    (path,) = (home / "graph" / "databases" / "almanac").glob(pattern)
    return path


DAMAGED: dict[str, Callable[[Path], None]] = {
    "schema cut": lambda home: os.truncate(only(home, "schema.json"), 2),
    "dictionary deleted": lambda home: only(home, "dictionary.*").unlink(),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_database_is_replaced_by_its_backup(home: Path, saved: Path, what: str) -> None:
    DAMAGED[what](home)
    done = replace(home, saved)
    assert done.kept == home / "graph.replaced-1"
    assert "databases/almanac/" in done.unsaved
    assert (done.kept / "damage.json").exists()
    assert damage(home) == ()
    with Registry.open(home=home) as registry:
        assert not verify(registry.database).damaged
        assert registry.fabrics.clusters()
    assert sorted(path.name for path in home.iterdir()) == ["graph", "graph.replaced-1", "server"]


def test_damage_is_a_finding_and_no_backup_is_written(home: Path, tmp_path: Path) -> None:
    os.truncate(only(home, "Device_0.*.bucket"), 1000)
    with Registry.open(home=home) as registry:
        found = [one for one in verify(registry.database).findings if one.problem == "file"]
        assert "1,000 bytes instead of" in found[0].reason
        assert found[0].id.startswith("databases/almanac/Device_0.")
        assert found[0].kind == "files of the database"
        with pytest.raises(DatabaseError, match="almanac db restore --replace BACKUP"):
            backup(registry.database, tmp_path / "new")
    with pytest.raises(DatabaseError, match="almanac db restore --replace BACKUP"):
        compact(home)


def test_a_whole_database_is_saved_too_and_nothing_is_overwritten(home: Path, saved: Path) -> None:
    done = replace(home, saved)
    assert (done.unsaved, done.kept) == ("", home / "graph.replaced-1")
    assert saved.with_name("saved.previous").exists()
    with pytest.raises(InputError, match="would be overwritten"):
        replace(home, saved)
    saved.with_name("saved.previous").unlink()
    assert replace(home, saved).kept == home / "graph.replaced-2"
    assert (home / "graph.replaced-1" / "databases").is_dir()


def test_nothing_changes_if_the_new_data_are_not_complete(
    home: Path, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise DatabaseError("no space left")

    monkeypatch.setattr("registry.upkeep.restore.restore", fail)
    with pytest.raises(DatabaseError, match="no space left"):
        replace(home, saved)
    assert sorted(path.name for path in home.iterdir()) == ["graph", "server"]
    assert (home / "graph" / "databases" / "almanac").is_dir()


def test_an_empty_data_folder_is_filled(processes: None, saved: Path, tmp_path: Path) -> None:
    done = replace(tmp_path / "new", saved)
    assert (done.kept, done.unsaved) == (None, "")
    stop(tmp_path / "new")
