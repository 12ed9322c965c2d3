"""The page of `almanac.dashboard_page` that refreshes every few seconds: an hour passes in minutes."""

from __future__ import annotations

import os

from dashboard.shared import bar, caching

VARIABLE = "BENCH_REFRESH_SECONDS"
"""Environment variable with the seconds between two refreshes."""


def main() -> None:
    """Draw the page."""
    seconds = int(os.environ[VARIABLE])
    share = caching.SHARED / bar.REFRESH_SECONDS
    caching.SHARED, bar.REFRESH_SECONDS = share * seconds, seconds  # before what takes them is imported
    from almanac.dashboard_page import access, connect
    from dashboard.app import run

    run(connect, access)


if __name__ == "__main__":
    main()
