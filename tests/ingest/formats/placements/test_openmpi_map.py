"""Reports of Open MPI 5 and PRRTE, and of old versions."""

from __future__ import annotations

import pytest

from ingest import catalog
from ingest.formats.placements import openmpi_map
from tests.support.inputs import file, hosts_of, read, refusal

MAP = read("placements/openmpi5_display_map.txt").decode()
BIND = read("placements/openmpi5_display_bind.txt").decode()
NAMED = MAP.replace("[59672,1]", "prterun-login1-3333100@1")


@pytest.mark.parametrize("text", [MAP, NAMED, MAP + MAP, f"srun: note\n{MAP}output of a rank\n"])
def test_the_map_of_open_mpi_5_is_recognised_and_read(text: str) -> None:
    assert catalog.recognise(file(text).as_group()).name == "openmpi-map"
    assert hosts_of(openmpi_map, text) == ("n0001", "n0002", "n0001", "n0002")


@pytest.mark.parametrize(
    "text",
    [
        BIND,
        BIND.replace(":3333100]", "]").replace(":118]", "]"),
        BIND.replace("bound to package[0][core:2]", "is not bound (or bound to all available processors)"),
        BIND.replace("Rank", "MCW rank"),
        f"output\n{BIND}Rank 0 bound to win\n",
    ],
)
def test_the_bindings_of_open_mpi_5_are_recognised_and_read(text: str) -> None:
    assert catalog.recognise(file(text).as_group()).name == "openmpi-map"
    assert hosts_of(openmpi_map, text) == ("node701",) * 4 + ("node702",) * 4


def test_the_developers_map_of_prrte_is_read() -> None:
    text = read("placements/openmpi_devel_map.txt").decode()
    named = text.replace("[4227,1]", "prterun-node0001-77@1")
    assert named != text
    assert hosts_of(openmpi_map, named) == hosts_of(openmpi_map, text)


def test_the_map_of_old_versions_is_read() -> None:
    text = (
        " ========================   JOB MAP   ========================\n\n Data for node: a\tNum procs: 1\n"
        " \tProcess OMPI jobid: [87,1] Process rank: 0\n\n Data for node: b\tNum procs: 1\n"
        " \tProcess OMPI jobid: [87,1] Process rank: 1\n"
    )
    assert catalog.recognise(file(text).as_group()).name == "openmpi-map"
    assert hosts_of(openmpi_map, text) == ("a", "b")


def test_maps_of_two_jobs_are_refused() -> None:
    second = NAMED.replace("@1", "@2").replace("rank: ", "rank: 1")
    assert refusal(openmpi_map, NAMED + second).reason == "maps of two jobs"
