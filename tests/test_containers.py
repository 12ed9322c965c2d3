"""The compose file and the Dockerfile: pinned, loopback only, without a default password, without root.

No container engine is needed: the files are read, and where a compose client is installed it checks them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml

from tests.support import paths

ROOT = paths.ROOT


@pytest.fixture
def services() -> dict[str, Any]:
    loaded = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
    return dict(loaded["services"])


def test_the_database_image_is_pinned_to_the_long_term_release(services: dict[str, Any]) -> None:
    assert re.fullmatch(r"neo4j:5\.26\.\d+-community", services["neo4j"]["image"])
    assert any(volume.endswith(":/data") for volume in services["neo4j"]["volumes"])


def test_both_services_are_checked_and_the_pages_wait_for_the_database(services: dict[str, Any]) -> None:
    assert all(services[name]["healthcheck"]["test"] for name in ("neo4j", "dashboard"))
    assert services["dashboard"]["depends_on"]["neo4j"]["condition"] == "service_healthy"


def test_ports_are_open_on_this_machine_only(services: dict[str, Any]) -> None:
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


def test_the_image_is_pinned_and_runs_without_root() -> None:
    lines = (ROOT / "Dockerfile").read_text("utf-8").splitlines()
    assert re.fullmatch(r"FROM python:3\.\d+\.\d+-slim-\w+", next(x for x in lines if x.startswith("FROM")))
    assert [line for line in lines if line.startswith("USER")] == ["USER almanac"]
    assert lines.index("USER almanac") < lines.index('ENTRYPOINT ["almanac"]')


def test_the_image_copies_every_package_and_what_the_build_reads() -> None:
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
