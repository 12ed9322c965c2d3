"""``almanac generate``: files, standard output, and straight into the registry."""

from __future__ import annotations

import json
from pathlib import Path

from almanac.options.circuits import read_weights
from tests.almanac.conftest import Almanac


def test_generators_are_listed_and_explain_their_options(offline: Almanac) -> None:
    for kind in ("fabric", "profile", "weights"):
        offline.ok("generate", kind, "--help")
    listed = offline("generate", "profile")
    assert "stencil" in listed.out + listed.err
    shown = offline("generate", "profile", "stencil", "--help").out
    assert "--periodic" in shown
    assert "Number of ranks along each of two or three dimensions" in " ".join(shown.split())


def test_a_profile_goes_to_standard_output_or_a_file_that_ingest_reads(
    offline: Almanac, tmp_path: Path
) -> None:
    printed = offline("generate", "profile", "stencil", "--sides", "4x4", "--points", 5)
    assert printed.out.startswith("# ranks: 16\nsrc,dst,bytes,messages\n")
    for format, name in (("edge-csv", "a.csv"), ("npz", "a.npz")):
        path = tmp_path / name
        made = offline(
            "generate", "profile", "stencil", "--sides", "4x4", "--points", 5, "-o", path, "--format", format
        )
        assert "stencil5-4x4: 16 ranks, 48 pairs; written to" in made.err
        answer = offline.json("ingest", path, "--dry-run")
        assert answer["profiles"] == ["a"]


def test_a_fabric_goes_to_a_file(offline: Almanac, tmp_path: Path) -> None:
    path = tmp_path / "fabric.json"
    answer = offline.json("generate", "fabric", "torus", "--sides", "3x3", "-o", path)
    assert (answer["host_count"], answer["switch_count"], answer["cable_count"]) == (9, 0, 18)
    assert len(json.loads(path.read_text())["nodes"]) == 9


def test_wrong_calls_are_usage_errors(offline: Almanac) -> None:
    for arguments, message in (
        (("generate", "profile", "stencl"), "closest: stencil"),
        (("generate", "profile", "stencil", "--points", 5), "--sides"),
        (("generate", "profile", "stencil", "--sides", "4xx", "--points", 5), "not a whole number"),
        (("generate", "profile", "stencil", "--sides", "4x4", "--points", 6), "must be one of"),
        (("generate", "profile", "ring", "--ranks", 4, "--format", "xml"), "must be one of edge-csv"),
        (("generate", "profile", "ring", "--ranks", 4, "--json", "--format", "npz"), "give -o FILE"),
    ):
        assert message in offline.refused(*arguments, code=2), arguments


def test_a_profile_and_a_fabric_are_saved(almanac: Almanac) -> None:
    saved = almanac.json("generate", "profile", "ring", "--ranks", 8, "--save", "--name", "mine")
    assert len(saved["profile_ids"]) == 1
    assert almanac.json("profile", "show", "mine")["ranks"] == 8
    answer = almanac("generate", "fabric", "mesh", "--sides", "2x3", "--cluster", "toy")
    assert "6 hosts, 0 switches, 7 cables; saved as cluster toy" in answer.err
    assert almanac.json("cluster", "list")[0]["cluster"] == "toy"


def test_options_of_profiles_reach_their_readers(offline: Almanac, tmp_path: Path) -> None:
    matrix = tmp_path / "m.csv"
    matrix.write_text("0,4,0\n0,0,6\n0,0,0\n")
    answer = offline.json("ingest", matrix, "--dry-run", "--parts", 2)
    assert "METIS cut the 3 rows into 2 parts" in " ".join(answer["warnings"])
    assert answer["profiles"] == ["m-2"]
    answer = offline.json("ingest", matrix, "--dry-run", "--divide", 2, "--transposed")
    assert "divided by 2" in " ".join(answer["warnings"])
    assert offline("ingest", matrix, "--dry-run", "--divide", 4).code == 1
    assert offline("ingest", matrix, "--dry-run", "--collectives", "star").code == 2


def test_weights_go_to_a_file_that_reconfigure_reads(offline: Almanac, tmp_path: Path) -> None:
    path = tmp_path / "weights.csv"
    answer = offline.json("generate", "weights", "stream", "--vertices", 30, "--seed", 4, "-o", path)
    assert answer["ranks"] == 30
    assert answer["sum"] >= answer["heaviest"] > 0
    assert read_weights(str(path), 30).sum() == answer["sum"]
    printed = offline("generate", "weights", "stream", "--vertices", 30, "--seed", 4)
    assert printed.out == path.read_text()
    assert offline("generate", "weights", "stream", "--vertices", 30, "--save").code == 2
    assert "closest: stream" in offline("generate", "weights", "strem").err
