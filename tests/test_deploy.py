"""Compose file, Dockerfile, units of systemd, example configuration: valid, safe; how to cite."""

from __future__ import annotations

import datetime
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tomllib
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from almanac.serve.collectors import ALMANAC
from almanac.serve.configuration import read_service
from almanac.settings import load_settings
from tests.support import paths
from tests.support.launchers import executable
from tests.support.paths import DATA, ROOT
from tests.support.waiting import PATIENCE, comes_true

UNITS = ROOT / "deploy" / "systemd"
CONFIG = ROOT / "deploy" / "config.toml"
SCAN = DATA / "infiniband" / "fattree2-64-ftree" / "ibnetdiscover.txt"
NOBODY = "bolt://127.0.0.1:1"


def directives(name: str) -> list[tuple[str, str]]:
    """Return the keys and values of a unit, lines that end with a backslash joined."""
    text = (UNITS / name).read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith(("#", "["))]
    return [(key, value) for key, _, value in (line.partition("=") for line in lines)]


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    """Folders of the specifiers, with a program almanac, and one that the scan unit calls."""
    made = {key: tmp_path / name for key, name in (("%S", "state"), ("%t", "run"), ("bin", "bin"))}
    for folder in made.values():
        (folder / "almanac").mkdir(parents=True, mode=0o700) if folder.name != "bin" else folder.mkdir()
    for name, text in (
        ("almanac", f'exec {shlex.join(ALMANAC)} "$@"'),
        ("ibnetdiscover", f"cat {shlex.quote(str(SCAN))}"),
    ):
        executable(made["bin"] / name, f"#!/bin/sh\n{text}\n")
    return made


def started(name: str, folders: dict[str, Path], config: Path, **environment: str) -> subprocess.Popen[str]:
    """Start the command line of a unit with its environment, as systemd would."""
    values: dict[str, str] = {"PATH": f"{folders['bin']}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    command = ""
    for key, value in directives(name):
        for specifier in ("%S", "%t"):
            value = value.replace(specifier, str(folders[specifier]))
        value = value.replace("/usr/local/bin", str(folders["bin"]))
        if key == "Environment":
            variable, _, text = value.replace("/etc/almanac/config.toml", str(config)).partition("=")
            values[variable] = text
        if key == "ExecStart":
            command = value
    return subprocess.Popen(
        shlex.split(command),
        env=values | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_systemd_accepts_the_units(processes: None, folders: dict[str, Path], tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    units = [tmp_path / unit.name for unit in UNITS.iterdir()]
    for unit in units:
        text = (UNITS / unit.name).read_text("utf-8").replace("/usr/local/bin", str(folders["bin"]))
        unit.write_text(text)
    done = subprocess.run([program, "verify", *map(str, units)], capture_output=True, text=True)
    assert (done.returncode, [line for line in done.stderr.splitlines() if "almanac" in line]) == (0, [])


def test_the_example_configuration_is_valid_and_its_defaults_are_local(tmp_path: Path) -> None:
    settings = load_settings(None, {"ALMANAC_CONFIG": str(CONFIG), "ALMANAC_HOME": str(tmp_path)})
    service = read_service(settings)
    assert service.address == "127.0.0.1"
    assert [task.name for task in service.tasks] == ["scan", "counters", "jobs", "advise", "prune"]


def test_the_unit_of_the_service_starts_answers_and_stops(
    processes: None, folders: dict[str, Path], tmp_path: Path
) -> None:
    config = tmp_path / "config.toml"
    with_free_port = CONFIG.read_text("utf-8").replace("port = 8600", "port = 0").replace("= 60\n", "= 0\n")
    config.write_text(with_free_port.replace('["ibqueryerrors",', '["nosuch-program",'))
    process = started("almanac-serve.service", folders, config, ALMANAC_DB=NOBODY)
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        while "serving on" not in line:
            assert line, "the service ended"
            line = process.stderr.readline()
        address = line.partition("serving on ")[2].partition(";")[0]
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"{address}/healthz", timeout=PATIENCE)
        with caught.value as answer:
            assert json.loads(answer.read())["status"] == "database away"
        spool = folders["%S"] / "almanac" / "spool"
        assert comes_true(lambda: list(spool.glob("0*")), unless=lambda: process.poll() is not None)
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    finally:
        process.kill()
        process.communicate()
    assert dict(directives("almanac-serve.service"))["KillMode"] == "process"


def test_the_unit_of_the_scan_queues_it_if_the_database_is_away(
    processes: None, folders: dict[str, Path], tmp_path: Path
) -> None:
    config = tmp_path / "config.toml"
    config.write_text("")
    process = started("almanac-scan.service", folders, config, ALMANAC_DB=NOBODY)
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    assert out.startswith("queued as ")
    (folders["bin"] / "ibnetdiscover").write_text("#!/bin/sh\nexit 1\n")
    process = started("almanac-scan.service", folders, config, ALMANAC_DB=NOBODY)
    process.communicate()
    assert process.returncode == 1
    assert len(list((folders["%S"] / "almanac" / "spool").glob("0*"))) == 1


@pytest.fixture
def services() -> dict[str, Any]:
    loaded = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
    return dict(loaded["services"])


def test_services_are_pinned_checked_and_open_on_this_machine_only(services: dict[str, Any]) -> None:
    assert re.fullmatch(r"neo4j:5\.26\.\d+-community", services["neo4j"]["image"])
    assert any(volume.endswith(":/data") for volume in services["neo4j"]["volumes"])
    assert all(services[name]["healthcheck"]["test"] for name in ("neo4j", "dashboard"))
    assert services["dashboard"]["depends_on"]["neo4j"]["condition"] == "service_healthy"
    for service in services.values():
        for port in service["ports"]:
            assert port.startswith("127.0.0.1:")


def test_the_password_has_no_default_and_is_in_no_file(services: dict[str, Any]) -> None:
    text = (ROOT / "docker-compose.yml").read_text("utf-8")
    for variable in re.findall(r"(?<!\$)\$\{[^}]*\}", text):
        assert variable.startswith("${ALMANAC_DB_PASSWORD:?"), variable
    # Any other NEO4J_ variable is taken by the image for a setting of the server, which then does not start.
    assert set(services["neo4j"]["environment"]) == {"NEO4J_AUTH"}


def test_the_service_starts_with_its_profile_and_a_configuration_that_exists(
    services: dict[str, Any],
) -> None:
    serve = services["serve"]
    assert serve["profiles"] == ["serve"]
    source, _, _ = serve["volumes"][0].partition(":")
    assert (ROOT / source).is_file()
    assert serve["healthcheck"]["test"]
    assert "ALMANAC_DB_PASSWORD" in serve["environment"]


def test_the_image_is_pinned_runs_without_root_and_has_every_package() -> None:
    lines = (ROOT / "Dockerfile").read_text("utf-8").splitlines()
    assert re.fullmatch(r"FROM python:3\.\d+\.\d+-slim-\w+", next(x for x in lines if x.startswith("FROM")))
    assert [line for line in lines if line.startswith("USER")] == ["USER almanac"]
    assert lines.index("USER almanac") < lines.index('ENTRYPOINT ["almanac"]')
    text = (ROOT / "Dockerfile").read_text("utf-8")
    for package in ("registry", "ingest", "mapping", "dashboard", "almanac"):
        assert f"COPY {package} {package}" in text
    for file in ("pyproject.toml", "constraints.txt", "README.md", "LICENSE"):
        assert file in text


def test_a_compose_client_accepts_the_file(processes: None) -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True).returncode:
        pytest.skip("no docker compose client is installed")
    environment = {**os.environ, "ALMANAC_DB_PASSWORD": "only-for-this-test"}
    done = subprocess.run(
        [docker, "compose", "-f", str(ROOT / "docker-compose.yml"), "config", "--quiet"],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr


CITATION = yaml.safe_load((paths.ROOT / "CITATION.cff").read_text("utf-8"))
PROJECT = tomllib.loads((paths.ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_citation_is_of_this_version_and_complete() -> None:
    for key in ("cff-version", "message", "title", "type", "abstract", "authors", "keywords"):
        assert CITATION[key], key
    assert CITATION["version"] == PROJECT["version"]
    assert CITATION["license"] == PROJECT["license"]
    assert isinstance(CITATION["date-released"], datetime.date)
    assert CITATION["authors"][0]["name"]


def test_every_paper_that_is_reproduced_is_a_reference() -> None:
    years = [one["year"] for one in CITATION["references"]]
    pages = (paths.ROOT / "docs" / "explanation" / "papers").glob("*.md")
    assert years == sorted(int(page.stem.rpartition("-")[2]) for page in pages)
    for one in CITATION["references"]:
        assert one["title"]
        assert all(author["family-names"] for author in one["authors"])


def test_the_readme_says_how_to_cite() -> None:
    section = (paths.ROOT / "README.md").read_text("utf-8").split("\n## Cite\n")[1].split("\n## ")[0]
    assert "CITATION.cff" in section
    assert PROJECT["version"] in section
    assert str(CITATION["date-released"].year) in section
