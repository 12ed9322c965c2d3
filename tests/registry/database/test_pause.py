"""Writers wait while a backup is written."""

from __future__ import annotations

import threading

import pytest

from registry.database import driver, pause
from registry.model.intake import Intake
from registry.registry import Registry
from tests.support.concurrent_writers import CONTENTS
from tests.support.fat_tree import at
from tests.support.waiting import SteeredClock


def save(registry: Registry, minute: int) -> None:
    fabric = CONTENTS[minute % len(CONTENTS)]
    registry.save(Intake(cluster="toy", observed_at=at(minute), fabric=fabric))


def test_writers_wait_for_a_pause_and_readers_do_not(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(registry, 0)
    refused = threading.Event()
    pauses = SteeredClock(refused.set)  # of the writer, which tries again
    monkeypatch.setattr(driver, "time", pauses)
    writer = threading.Thread(target=save, args=(registry, 1))
    with pause.writers_paused(registry.database):
        writer.start()
        for _ in range(3):
            refused.clear()
            assert refused.wait(60)
        assert len(registry.fabrics.observations("toy")) == 1
    writer.join(60)
    assert not writer.is_alive()
    assert len(registry.fabrics.observations("toy")) == 2


def test_a_pause_that_is_not_renewed_ends(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pause, "PAUSE_SECONDS", 0.2)
    left = pause.writers_paused(registry.database)
    left.__enter__()  # and never left, as in a process that was killed
    save(registry, 0)
    assert len(registry.fabrics.observations("toy")) == 1
