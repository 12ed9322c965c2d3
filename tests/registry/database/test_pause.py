"""Writers wait while a backup is written."""

from __future__ import annotations

import threading

import pytest

from registry.database import pause
from registry.model.intake import Intake
from registry.registry import Registry
from tests.support.concurrent_writers import CONTENTS
from tests.support.fat_tree import at


def save(registry: Registry, minute: int) -> None:
    fabric = CONTENTS[minute % len(CONTENTS)]
    registry.save(Intake(cluster="toy", observed_at=at(minute), fabric=fabric))


def test_writers_wait_for_a_pause_and_readers_do_not(registry: Registry) -> None:
    save(registry, 0)
    writer = threading.Thread(target=save, args=(registry, 1))
    with pause.writers_paused(registry.database):
        writer.start()
        writer.join(1.5)
        assert writer.is_alive()
        assert len(registry.fabrics.observations("toy")) == 1
    writer.join(30)
    assert not writer.is_alive()
    assert len(registry.fabrics.observations("toy")) == 2


def test_a_pause_that_is_not_renewed_ends(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pause, "PAUSE_SECONDS", 1.0)
    left = pause.writers_paused(registry.database)
    left.__enter__()  # and never left, as in a process that was killed
    save(registry, 0)
    assert len(registry.fabrics.observations("toy")) == 1
