"""The server of the pages."""

from __future__ import annotations

import gc

from dashboard.server import keep_for_good


def test_what_the_pages_keep_is_not_searched_for_garbage_again() -> None:
    """A search of all objects after each run of a page took 0.1 s."""
    before = len(gc.get_objects())
    try:
        keep_for_good()
        assert gc.get_freeze_count() > 0.9 * before
        assert len(gc.get_objects()) < 0.1 * before
    finally:
        gc.unfreeze()
