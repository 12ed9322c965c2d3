"""The server of the pages, which reads what the first page shows before a browser asks for it."""

from __future__ import annotations


def main() -> None:
    """Run the server with the arguments of this process."""
    from dashboard.server import serve

    serve(_prepare)


def _prepare() -> None:
    from almanac.dashboard_page import connect, limits
    from dashboard.app import prepare

    prepare(connect, limits)


if __name__ == "__main__":
    main()
