"""Measure the dashboard in Chromium without a GPU: 2,300 hosts; 10,000 hosts, 1,000 jobs, 20,000 placements.

Run ``python -m bench.dashboard`` in the project's folder; the machine should do nothing else meanwhile, and
how busy it was is recorded. The databases of `bench.dashboard.data` are written first (some minutes), or are
those of ``--home`` and ``--small-home``. Every page is opened cold, that is by the first browser after a
start of the server, and warm; pages of Streamlit alone stand beside them. The fabric is panned and zoomed, a
link is clicked, all pages are walked ten times, and pages stay open for the refreshes of an hour. Writes
``bench/results/dashboard.json``, with the limits aimed for beside what was measured.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page

from bench.dashboard import floor_page, open_pages
from bench.dashboard.data import Sizes, write
from bench.dashboard.placements import CLUSTER
from bench.dashboard.visits import MAP, PATIENCE_MS, SIZE, View, opened, returned, settle
from bench.support.machine import about, write_record
from bench.support.paths import RESULTS
from bench.support.served_dashboard import Served, Watch, chromium, serve
from registry.database.embedded_server import ensure_server, stop
from registry.progress import silent
from registry.registry import Registry

RECORD = RESULTS / "dashboard.json"
LIMITS = {
    "cold_seconds": 3.0,
    "warm_seconds": 2.0,
    "first_drawing_seconds": 4.0,
    "payload_bytes": 1e6,
    "frame_p95_ms": 150.0,
    "click_seconds": 1.0,
    "statements": 10,
    "server_memory_gb": 1.0,
}
"""Upper limits."""
SMALL = Sizes(pods=23, leaves=10, jobs=300, placements=4600)
"""2,300 hosts."""
WARM, WALKS = 3, 10
FLOOR = (
    View(name="Streamlit: an empty page", path=""),
    View(name="Streamlit: a table and a chart", path="", address={floor_page.PARTS: "1"}),
)
"""Pages that show what Streamlit and the browser take on this machine, whatever the dashboard does."""
FRAMES = """
seconds => new Promise(done => {
  const gaps = []; let last = performance.now(); const end = last + 1000 * seconds;
  const frame = at => {
    gaps.push(at - last); last = at;
    at < end ? requestAnimationFrame(frame) : done(gaps);
  };
  requestAnimationFrame(frame);
})
"""


def main() -> None:
    """Measure all pages at both sizes and record the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, help="database that bench.dashboard.data wrote")
    parser.add_argument("--small-home", type=Path, help="the same with 2,300 hosts")
    parser.add_argument(
        "--only", choices=("large", "small"), help="measure this, keep the rest of the record"
    )
    parser.add_argument("--output", type=Path, default=RECORD)
    parser.add_argument("--walks", type=int, default=WALKS, help="fewer only to try this program")
    for name in ("pods", "leaves", "jobs", "placements"):
        parser.add_argument(f"--{name}", type=int, default=getattr(Sizes(), name))
    given = parser.parse_args()
    large = Sizes(pods=given.pods, leaves=given.leaves, jobs=given.jobs, placements=given.placements)
    record = json.loads(given.output.read_text()) if given.only and given.output.exists() else {}
    if given.only != "large":
        record["small"] = _measured(given.small_home, SMALL, given.walks)
    if given.only != "small":
        record |= _measured(given.home, large, given.walks)
    write_record(given.output, record)
    json.dump(record, sys.stdout, indent=1)


def _measured(given: Path | None, sizes: Sizes, walks: int) -> dict[str, Any]:
    """Return the record of one database, which is written first if none is given."""
    with tempfile.TemporaryDirectory() as folder:
        home = given or Path(folder) / "home"
        ensure_server(home, idle_seconds=1800.0, progress=silent)
        try:
            filled = None if given else _fill(home, sizes)
            start = {**about(), "load_average": round(os.getloadavg()[1], 1)}
            record = start | measure(home, Path(folder), walks)
        finally:
            stop(home)
    return record | {"filled": filled, "over": over(record)}


def measure(home: Path, folder: Path, walks: int) -> dict[str, Any]:
    """Measure everything on one database."""
    watch = Watch()
    with closing(Registry.open(home=home)) as registry:
        sizes, chosen = _sizes(registry), views(registry)
        reads = {view.name: open_pages.reads(registry.database, view) for view in chosen}
    settings = {"ALMANAC_HOME": str(home)}
    floor = _floor(folder, watch)
    pages = {view.name: _cold(settings, folder, view, watch) for view in chosen}
    with serve(settings, folder) as served, chromium() as browser:
        for view in chosen:
            pages[view.name] |= _warm(browser, served, view, watch) | reads[view.name]
        moved = _moved(browser, served, next(view for view in chosen if view.name == "fabric"), watch)
        memory = _walked(browser, served, chosen, watch, walks)
    with open_pages.serve_hastily(settings, folder) as served, chromium() as browser:
        for view in chosen:
            pages[view.name] |= open_pages.refreshed(browser, view.url(served.url), served.pid, settle)
        urls = [view.url(served.url) for view in chosen[:2]]
        hour = open_pages.hour(browser, urls, served.pid, settle)
    return {
        "sizes": sizes,
        "limits": LIMITS,
        "floor": floor,
        "pages": pages,
        "fabric": moved,
        "server_memory_gb": memory,
        "hour": hour,
        "console_errors": watch.complaints,
        "requests_to_other_hosts": watch.strangers,
    }


def views(registry: Registry) -> tuple[View, ...]:
    """Return all pages, with the newest running job and placement for the pages that need them."""
    running = next(
        (stored for stored in registry.jobs.list(CLUSTER) if stored.job.ended_at is None and stored.profile),
        None,
    )
    placements = registry.placements.history(CLUSTER, job=None if running is None else running.job.id)
    here = {"cluster": CLUSTER}
    job = {} if running is None else {"job": f"{CLUSTER}/{running.job.id}"}
    placement = {"placement": placements[0].id} if placements else {}
    return (
        View(name="overview", path="", address=here, draws_map=True),
        View(name="fabric", path="fabric", address=here, draws_map=True),
        View(name="errors", path="fabric", address={**here, "colour": "errors"}, draws_map=True),
        View(name="changes", path="fabric", address={**here, "colour": "changes"}, draws_map=True),
        View(name="jobs", path="jobs", address=here),
        View(name="job", path="jobs", address={**job, **placement}, draws_map=True),
        View(name="shared links", path="jobs", address={**here, "tab": "shared"}),
        View(name="planner", path="planner", address=here),
        View(name="planner, a switch is gone", path="planner", address={**here, "down": "p00-up00"}),
        View(name="circuits", path="planner", address={**here, "tab": "circuits"}),
        View(name="trends", path="trends", address=here),
        View(name="simulations", path="trends", address={**here, "tab": "simulations"}, draws_map=True),
        View(name="data", path="data", address=here),
    )


def over(record: dict[str, Any]) -> list[str]:
    """Return the values that exceed their limit."""
    found = []

    def look(name: str, limit: str, value: float | None) -> None:
        if value is None or value > LIMITS[limit]:
            found.append(f"{name}: {limit} is {value}, not at most {LIMITS[limit]:g}")

    for name, page in record["pages"].items():
        look(name, "cold_seconds", page["cold_seconds"])
        look(name, "warm_seconds", page["warm_seconds"])
        look(name, "statements", page["statements"])
        look(name, "payload_bytes", page["payload_bytes"])
    fabric = record["fabric"]
    for limit in ("first_drawing_seconds", "frame_p95_ms", "click_seconds"):
        look("fabric", limit, fabric[limit])
    look("server", "server_memory_gb", record["server_memory_gb"]["after_walks"])
    return found


def _fill(home: Path, sizes: Sizes) -> dict[str, float]:
    """Write the database and return the seconds of each step."""
    steps: dict[str, float] = {}

    def on_step(step: str, seconds: float) -> None:
        steps[step] = round(seconds, 1)
        print(f"{seconds:8.1f} s  {step}", file=sys.stderr, flush=True)

    with Registry.open(home=home) as registry:
        write(registry, sizes, on_step=on_step)
    return steps


def _sizes(registry: Registry) -> dict[str, int]:
    fabric = registry.fabrics.read(CLUSTER).fabric
    jobs = registry.jobs.list(CLUSTER)
    return {
        "hosts": len(fabric.hosts),
        "switches": len(fabric.switches),
        "cables": fabric.cable_count,
        "jobs": len(jobs),
        "running": sum(stored.job.state == "RUNNING" for stored in jobs),
        "placements": len(registry.placements.history(CLUSTER)),
        "profiles": len(registry.profiles.list()),
        "simulated runs": len(registry.simulations.list(CLUSTER)),
        "plans of circuits": len(registry.circuit_plans.list(CLUSTER)),
    }


def _cold(settings: dict[str, str], folder: Path, view: View, watch: Watch) -> dict[str, Any]:
    """Time the first page of the first browser after a start of the server."""
    with serve(settings, folder) as served, chromium() as browser:
        seconds, _ = opened(browser, served, view, watch)
    return {"cold_seconds": round(seconds, 3)}


def _floor(folder: Path, watch: Watch) -> dict[str, Any]:
    """Time pages of Streamlit alone."""
    with serve({}, folder, open_pages.streamlit(floor_page.__file__)) as served, chromium() as browser:
        return {view.name: _warm(browser, served, view, watch) for view in FLOOR}


def _warm(browser: Browser, served: Served, view: View, watch: Watch) -> dict[str, Any]:
    """Time a page once others had it, as for another user, and for a user who had it before."""
    _, payload = opened(browser, served, view, watch)
    before = open_pages.processor_seconds(served.pid)
    warm = [opened(browser, served, view, watch)[0] for _ in range(WARM)]
    processor = open_pages.processor_seconds(served.pid) - before
    again = returned(browser, served, view, watch, WARM)
    print(f"{statistics.median(warm):8.2f} s  {view.name}", file=sys.stderr, flush=True)
    return {
        "warm_seconds": round(statistics.median(warm), 3),
        "warm_worst_seconds": round(max(warm), 3),
        "returning_seconds": round(statistics.median(again), 3),
        "warm_server_cpu_seconds": round(processor / WARM, 3),
        "payload_bytes": payload,
    }


def _moved(browser: Browser, served: Served, view: View, watch: Watch) -> dict[str, Any]:
    """Measure drawing, panning and zooming the fabric, and a click on a link."""
    page = browser.new_page(viewport=SIZE)
    watch.on(page, urlsplit(served.url).netloc)
    start = time.perf_counter()
    page.goto(view.url(served.url))
    page.wait_for_selector(f"{MAP}[data-state='drawn']", timeout=PATIENCE_MS)
    drawn = time.perf_counter() - start
    settle(page)
    before = _painted(page)
    gaps = _gaps(page)
    painted = _painted(page) - before
    page.goto(view.url(served.url))  # the link may have left the window
    settle(page, draws_map=True)
    click = _click(page)
    page.close()
    return {
        "first_drawing_seconds": round(drawn, 3),
        "frame_median_ms": round(statistics.median(gaps), 1),
        "frame_p95_ms": round(statistics.quantiles(gaps, n=20)[-1], 1),
        "frames": len(gaps),
        "painted": painted,
        "click_seconds": round(click, 3),
    }


def _gaps(page: Page, seconds: float = 4.0) -> list[float]:
    """Return the milliseconds between frames while the wheel zooms and a drag pans."""
    box = page.locator(f"{MAP} canvas").first.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + min(box["height"], SIZE["height"] - box["y"]) / 2
    page.mouse.move(x, y)
    page.evaluate(f"seconds => {{ window.gaps = ({FRAMES})(seconds) }}", seconds)
    end = time.perf_counter() + seconds
    page.mouse.down()
    step = 0
    while time.perf_counter() < end - seconds / 2:
        step += 1
        page.mouse.move(x + 60 * (step % 5 - 2), y + 40 * (step % 7 - 3))
    page.mouse.up()
    while time.perf_counter() < end:
        step += 1
        page.mouse.wheel(0, -120 if step % 20 < 10 else 120)
    gaps: list[float] = page.evaluate("() => window.gaps")
    return gaps


def _painted(page: Page) -> int:
    """Return how often the map has been painted."""
    return int(page.locator(MAP).first.get_attribute("data-frames") or 0)


def _click(page: Page) -> float:
    """Return the seconds from a click on the busiest link to the list of jobs that load it."""
    place = page.locator(MAP).first.evaluate("map => map.placeOf()")
    start = time.perf_counter()
    page.mouse.click(place["x"], place["y"])
    page.wait_for_url("**link=**", timeout=PATIENCE_MS)
    settle(page)
    return time.perf_counter() - start


def _walked(
    browser: Browser, served: Served, chosen: tuple[View, ...], watch: Watch, walks: int
) -> dict[str, float]:
    """Return the server's resident memory after walking all pages once, and several times."""
    after: list[float] = []
    for _ in range(walks):
        for view in chosen:
            opened(browser, served, view, watch)
        after.append(_status(served.pid, "VmRSS"))
    return {"after_one_walk": after[0], "after_walks": after[-1], "peak": _status(served.pid, "VmHWM")}


def _status(pid: int, name: str) -> float:
    """Read a memory value of a process in gigabytes (Linux only)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    status = dict(line.split(":", 1) for line in lines)
    return round(int(status[name].split()[0]) * 1024 / 1e9, 3)


if __name__ == "__main__":
    main()
