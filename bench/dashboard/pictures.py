"""Take pictures of the dashboard with the data of ``almanac demo``, for the documentation.

Run ``python -m bench.dashboard.pictures [FOLDER]`` in the project's folder, with Chromium installed. Writes
``docs/images/dashboard-*.png``, each of at most `LARGEST` bytes.
"""

from __future__ import annotations

import argparse
import io
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize

from almanac.demo.demo import CLUSTER, OPTICAL, fill
from bench.dashboard.visits import MAP, settle
from bench.support.paths import ROOT
from bench.support.served_dashboard import Served, chromium, serve
from registry.database.embedded_server import stop
from registry.registry import Registry

FOLDER = ROOT / "docs" / "images"
SIZE = ViewportSize(width=1280, height=860)
LARGEST = 200_000
HERE = f"cluster={CLUSTER}"
PICTURES = {
    "overview": f"?{HERE}",
    "fabric": f"fabric?{HERE}",
    "planner": f"planner?{HERE}&down=MF0%3BA10-P1-IBSPINE-04%3AMQM9701%2FU1",
    "jobs": f"jobs?{HERE}",
    "job": f"jobs?job={CLUSTER}/4712",
    "shared-links": f"jobs?tab=shared&{HERE}",
    "trends": f"trends?{HERE}",
    "simulations": f"trends?tab=simulations&{HERE}",
    "circuits": f"planner?tab=circuits&cluster={OPTICAL}",
    "changes": f"changes?{HERE}",
    "data": "data",
}
"""Address of each."""
DARK = ("fabric",)
"""Of which there is a second one on a dark page."""


def main(folder: Path = FOLDER) -> None:
    """Fill a registry, serve it, and take all pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch) / "home"
        try:
            with Registry.open(home=home, idle_seconds=600) as registry:
                fill(registry)
            with serve({"ALMANAC_HOME": str(home)}, Path(scratch)) as served, chromium() as browser:
                for name in PICTURES:
                    _take(browser, served, name, "light", folder / f"dashboard-{name}.png")
                for name in DARK:
                    _take(browser, served, name, "dark", folder / f"dashboard-{name}-dark.png")
        finally:
            stop(home)


def _take(browser: Browser, served: Served, name: str, scheme: str, path: Path) -> None:
    dark = scheme == "dark"
    page = browser.new_page(viewport=SIZE, color_scheme="dark" if dark else "light")
    page.goto(f"{served.url}/{PICTURES[name]}")
    settle(page)
    _wait_for_maps(page)
    path.write_bytes(_small(page.screenshot()))
    page.close()


def _wait_for_maps(page: Page) -> None:
    for drawn in page.locator(MAP).all():
        drawn.and_(page.locator("[data-state='drawn']")).wait_for()
    page.wait_for_timeout(500)  # charts fade in


def _small(png: bytes) -> bytes:
    """Return the picture with as many colours as fit into `LARGEST` bytes."""
    whole = Image.open(io.BytesIO(png)).convert("RGB")
    for colours in (256, 128, 64, 32, 16):
        out = io.BytesIO()
        whole.quantize(colours, dither=Image.Dither.NONE).save(out, "png", optimize=True)
        if len(out.getvalue()) <= LARGEST:
            return out.getvalue()
    raise ValueError(f"a picture does not fit into {LARGEST} bytes")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.dashboard.pictures", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    main(parser.parse_args().folder)
