"""Ingest of bad input, ``almanac generate``, and what is stored is listed and deleted."""

from __future__ import annotations

import gzip
import io
import json
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from almanac.placing_options import read_weights
from tests.almanac.conftest import PROFILE, SCAN, TABLES, Almanac
from tests.support.paths import DATA

Make = Callable[[Path], Path]


def written(name: str, content: bytes | str) -> Make:
    def make(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return make


def without_a_rank(folder: Path) -> Path:
    with tarfile.open(PROFILE) as archive:
        archive.extractall(folder / "all", filter="data")
    files = sorted((folder / "all").rglob("*.prof"))
    files[3].unlink()
    return files[0].parent


BAD: dict[str, tuple[Make, str]] = {
    "empty": (written("x.txt", ""), "empty"),
    "binary": (written("x.bin", bytes(range(256)) * 8), "binary"),
    "unknown format": (written("x.txt", "Lorem ipsum\n"), "--format (docs/reference/formats.md lists them)"),
    "truncated scan": (lambda folder: written("t.txt", SCAN.read_text()[:3000])(folder), "incomplete"),
    "truncated archive": (written("x.csv.gz", gzip.compress(b"src,dst,bytes\n0,1,2\n" * 99)[:-9]), ""),
    "only itself": (lambda _: DATA / "public" / "ndr-dgx-only-local.ibnetdiscover", "only"),
    "negative bytes": (written("n.csv", "src,dst,bytes\n0,1,4\n1,0,-5\n"), "-5"),
    "missing ranks": (without_a_rank, "--allow-missing-ranks"),
    "no such file": (lambda folder: folder / "nowhere.txt", "nowhere.txt"),
}


NODES = ("query", "MATCH (n) WHERE NOT n:IngestRun RETURN count(n) AS nodes", "--csv")


def test_a_bad_file_is_refused_in_one_line_and_nothing_is_written(almanac: Almanac, tmp_path: Path) -> None:
    before = almanac(*NODES).out
    for name, (make, reason) in BAD.items():
        folder = tmp_path / name
        folder.mkdir()
        path = make(folder)
        outcome = almanac("ingest", path, "--cluster", "c")
        assert (outcome.code, outcome.out) == (1, ""), name
        assert len(outcome.err.strip().splitlines()) == 1
        assert outcome.err.startswith(f"almanac: {path}")
        assert reason in outcome.err
        assert almanac.error("ingest", path, "--cluster", "c")["path"].startswith(str(path))
    bad = written("n.csv", "src,dst,bytes\n0,1,4\n1,x,5\n")(tmp_path)
    error = almanac.error("ingest", SCAN, bad, "--cluster", "c")  # a good file beside a bad one
    assert (error["line"], error["text"]) == (3, "1,x,5")
    assert almanac(*NODES).out == before


def test_what_is_left_out_of_a_profile_is_counted(almanac: Almanac, tmp_path: Path) -> None:
    almanac.ok("ingest", without_a_rank(tmp_path), "--name", "part", "--allow-missing-ranks")
    assert len(almanac.json("profile", "show", "part")["missing_ranks"]) == 1
    almanac.ok("ingest", written("s.csv", "src,dst,bytes,messages\n0,0,7,1\n0,1,5,1\n")(tmp_path))
    answer = almanac.json("profile", "show", "s")
    assert (answer["pairs"], answer["bytes"], answer["self_edges"], answer["self_bytes"]) == (1, 5, 1, 7)


HOSTS = "node[0001-0016]"


def test_what_cannot_be_placed_is_reported_with_the_closest(loaded: Almanac) -> None:
    for profile, cluster, hosts, more, kind, closest in (
        ("cg", "ft", "node[0001-0015],nod0016", (), "UnknownName", "node0016"),
        ("cg", "ft", "node[0001-0015]", (), "InfeasibleAllocation", ""),
        ("gc", "ft", HOSTS, (), "UnknownName", "cg"),
        ("cg", "fr", HOSTS, (), "UnknownName", "ft"),
        ("cg", "ft", HOSTS, ("--routing", "tabels"), "UnknownName", "tables"),
        ("cg", "ft", HOSTS, ("--strategy", "gready"), "UnknownName", "greedy"),
    ):
        where = ("--cluster", cluster, "--hosts", hosts)
        error = loaded.error("map", profile, *where, *more, "--steps", 100)
        assert (error["error"], closest in error["reason"]) == (kind, True), error
    assert loaded.json("history") == []


@pytest.fixture
def scanned(almanac: Almanac) -> Almanac:
    almanac.ok("ingest", SCAN, "--cluster", "ft")
    return almanac


def test_a_job_on_hosts_that_a_cluster_lacks_is_saved_unless_strict(scanned: Almanac, tmp_path: Path) -> None:
    jobs = (DATA / "slurm" / "scontrol_show_jobs_d.txt").read_text()
    path = written("jobs.txt", jobs.replace("node[0001-0016]", "node[0901-0916]"))(tmp_path)
    assert "node0901" in scanned.error("ingest", path, "--cluster", "ft", "--strict")["reason"]
    assert scanned.json("job", "list") == []
    for _ in range(2):  # the same file again is not passed over as known
        refused = scanned.refused("ingest", path, "--cluster", "ft", code=5)
        assert "node0901, node0902, node0903, node0904, node0905 and 11 more" in refused
    hosts = {row["job"]: row["hosts"] for row in scanned.json("job", "list")}
    lacking = next(job for job, names in hosts.items() if "node0901" in names)
    assert len(hosts) > 1
    assert scanned.json("job", "show", lacking)["unknown_hosts"] == hosts[lacking]


@pytest.mark.parametrize("kind", ["placement", "counters"])
def test_what_is_known_is_saved_and_the_exit_code_is_5(scanned: Almanac, tmp_path: Path, kind: str) -> None:
    if kind == "placement":
        files = [
            written(f"{host}.txt", f"rank 0={host} slot=0\nrank 1=node0001 slot=0\n")(tmp_path)
            for host in ("node0002", "node0901")
        ]
        key, unknown, saved = "unknown_hosts", "node0901", "placement_ids"
    else:
        rows = "guid,port,xmit_bytes\n0x0002c90000100100,1,5\n0xbad,1,5\n"
        files = [written("counters.csv", rows)(tmp_path)]
        key, unknown, saved = "unknown_devices", "GUID 0x0000000000000bad", "new_counters"
    ingest = ("ingest", *files, "--cluster", "ft")
    assert unknown.split()[-1] in scanned.refused(*ingest, "--strict")
    refused = scanned.refused(*ingest, code=5)
    assert f"{unknown} " in refused or f"{unknown};" in refused
    again = scanned(*ingest, "--json")
    assert (again.code, again.json[key]) == (5, [unknown])
    assert again.json[saved] in (0, again.json["placement_ids"][:1])


def test_another_clusters_scan_needs_replace(scanned: Almanac) -> None:
    other = DATA / "infiniband" / "ndr-dgx-minhop" / "ibnetdiscover.txt"
    refused = scanned.refused("ingest", other, "--cluster", "ft")
    assert refused.startswith(f"almanac: {other}: 0 of the 233 devices of this scan are in the scan")
    scanned.ok("ingest", other, "--cluster", "ft", "--replace")


FABRIC = DATA / "infiniband" / "fattree2-64-ftree"
BROKEN = DATA / "infiniband" / "fattree2-64-broken-link" / "ibnetdiscover.txt"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def filled(almanac: Almanac) -> Almanac:
    for number, path in enumerate((FABRIC / "ibnetdiscover.txt", BROKEN), start=1):
        almanac.ok("ingest", path, "--cluster", "ft", "--observed-at", f"2026-01-0{number}")
    almanac.ok("generate", "profile", "ring", "--ranks", 4, "--save")
    return almanac


def test_observations_are_listed_and_deleted(filled: Almanac) -> None:
    first, second = filled.json("observation", "list", "ft")
    assert (first["cluster"], first["origin"]) == ("ft", "ibnetdiscover")
    assert second["observation"] in filled("observation", "list", "ft").out
    planned = filled.json("observation", "delete", second["observation"], "--dry-run")
    nothing: dict[str, object] = {"dependents": {}, "jobs_without_profile": []}
    assert planned == {"dry_run": True, "deleted": {"observations": 1, "snapshots": 1}} | nothing
    assert filled.json("cluster", "show", "ft")["host_count"] == 63
    assert "deleted: observations: 1" in filled("observation", "delete", second["observation"], "--yes").out
    assert filled.json("cluster", "show", "ft")["host_count"] == 64
    refused = filled.refused("observation", "delete", first["observation"], "--yes")
    assert "only one of the fabric of ft; ingest another scan first, or delete the cluster" in refused
    again = filled.json("ingest", BROKEN, "--cluster", "ft", "--observed-at", "2026-01-02")
    assert again["new_observation"]  # though the same file was read before
    assert "there is no observation 'nothing'" in filled.refused("observation", "delete", "nothing", "--yes")


def test_each_observation_has_its_size_and_files_and_all_are_counted(almanac: Almanac) -> None:
    almanac.ok("ingest", SCAN, "--cluster", "ft", "--observed-at", "2026-01-01")
    almanac.ok("ingest", TABLES, "--cluster", "ft", "--observed-at", "2026-01-02")
    almanac.ok("ingest", SCAN, TABLES, "--cluster", "ft", "--observed-at", "2026-01-03")
    almanac.ok("generate", "fabric", "torus", "--sides", "2x2", "--cluster", "made")
    scan, tables, both = almanac.json("observation", "list", "ft")
    counts = [[row[f"{name}_count"] for name in ("host", "switch", "cable")] for row in (scan, tables, both)]
    shown = almanac.json("cluster", "show", "ft")
    size = [shown[f"{name}_count"] for name in ("host", "switch", "cable")]
    assert counts == [size, [None] * 3, size]
    (made,) = almanac.json("observation", "list", "made")
    files = [[Path(file) for file in row["files"]] for row in (scan, tables, both, made)]
    assert files == [[SCAN], [TABLES], [SCAN, TABLES], []]
    listed = {row["cluster"]: row["observations"] for row in almanac.json("cluster", "list")}
    assert listed == {"ft": 3, "made": 1}
    assert f"{SCAN} and 1 more" in almanac.ok("observation", "list", "ft").out


def test_on_a_terminal_the_user_is_asked(almanac: Almanac, monkeypatch: pytest.MonkeyPatch) -> None:
    almanac.ok("generate", "profile", "ring", "--ranks", 4, "--save")
    delete = ("profile", "delete", "ring-4")
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))  # no terminal
    assert "add --yes" in almanac.refused(*delete, code=2)
    for answer, left, code in (("n\n", 1, 1), ("\n", 1, 1), ("y\n", 0, 0)):
        assert len(almanac.json("profile", "list")) == 1
        monkeypatch.setattr(sys, "stdin", Terminal(answer))
        asked = almanac.refused(*delete, code=code)
        assert "applications: 1, profiles: 1, ranks of profiles: 4" in asked
        assert ("nothing was changed" in asked) == bool(left)
        assert len(almanac.json("profile", "list")) == left


def test_dependents_are_listed_and_deleted_on_demand(filled: Almanac) -> None:
    where = ("--cluster", "ft", "--hosts", "node[0001-0004]")
    placement = filled.json("map", "ring-4", *where, "--steps", 10)["placement"]
    refused = filled.refused("profile", "delete", "ring-4", "--yes")
    assert "profile ring-4 is in use: placements: 1; --dry-run lists them, --with-dep" in refused
    planned = filled("profile", "delete", "ring-4", "--dry-run")
    assert f"depends on it: placement {placement}" in planned.out
    done = filled.json("profile", "delete", "ring-4", "--yes", "--with-dependents")
    assert done["dependents"] == {"placements": [placement]}
    assert filled.json("history") == []
    assert filled("ingest", DATA / "slurm" / "sacct_P.txt", "--cluster", "ft").code in (0, 5)
    jobs = filled.json("job", "list")
    filled.ok("job", "delete", jobs[0]["job"], "--yes")
    assert len(filled.json("job", "list")) == len(jobs) - 1
    filled.refused("job", "delete", jobs[0]["job"], "--yes")


def test_failed_runs_are_listed_without_alarm_for_what_is_no_cluster_and_deleted_if_named(
    almanac: Almanac, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.txt"
    wrong.write_text("nothing that is known\n")
    almanac.ok("ingest", SCAN, "--cluster", "ft")
    assert almanac("ingest", wrong, "--cluster", "ft").code == 1
    assert almanac("ingest", wrong, "--cluster", "typo").code == 1
    states = {row["check"]: (row["state"], row["seen"]) for row in almanac.json("doctor")}
    assert states["source ft of unknown format"][0] == "warning"
    state, seen = states["source typo of unknown format"]
    assert (state, "no such cluster" in seen) == ("ok", True)
    gauges = almanac("metrics").out
    assert 'almanac_source_failing{cluster="ft",source="unknown"} 1.0' in gauges
    assert "typo" not in gauges
    runs = almanac.json("ingest-run", "list")
    outcomes = [("typo", "failed"), ("ft", "failed"), ("ft", "saved")]
    assert [(run["cluster"], run["outcome"]) for run in runs] == outcomes
    assert (runs[1]["files"], str(wrong) in runs[1]["error"]) == ([str(wrong)], True)
    assert almanac.json("ingest-run", "list", "--failed", "--cluster", "ft") == runs[1:2]
    assert len(almanac.json("ingest-run", "list", "--top", 1)) == 1
    assert runs[1]["run"] in almanac("ingest-run", "list").out
    deleted = almanac.json("ingest-run", "delete", "--failed", "--cluster", "typo", "--yes")
    assert deleted["deleted"] == {"ingest runs": 1}
    almanac.ok("ingest-run", "delete", runs[1]["run"], "--yes")
    assert [run["outcome"] for run in almanac.json("ingest-run", "list")] == ["saved"]
    assert "ft of unknown" not in almanac("doctor").out
    for words in ([], ["abc", "--failed"], ["abc", "--cluster", "x"]):
        assert almanac("ingest-run", "delete", *words, "--yes").code == 2
    assert almanac("ingest-run", "delete", "abc", "--yes").code == 1


def test_generators_explain_their_options_and_wrong_calls_are_usage_errors(offline: Almanac) -> None:
    for kind in ("fabric", "profile", "weights"):
        offline.ok("generate", kind, "--help")
    listed = offline("generate", "profile")
    assert "stencil" in listed.out + listed.err
    shown = offline("generate", "profile", "stencil", "--help").out
    assert "--periodic" in shown
    assert "Number of ranks along each of two or three dimensions" in " ".join(shown.split())
    for arguments, message in (
        (("generate", "profile", "stencl"), "closest: stencil"),
        (("generate", "profile", "stencil", "--points", 5), "--sides"),
        (("generate", "profile", "stencil", "--sides", "4xx", "--points", 5), "not a whole number"),
        (("generate", "profile", "stencil", "--sides", "4x4", "--points", 6), "must be one of"),
        (("generate", "profile", "ring", "--ranks", 4, "--format", "xml"), "must be one of edge-csv"),
        (("generate", "profile", "ring", "--ranks", 4, "--json", "--format", "npz"), "give -o FILE"),
    ):
        assert message in offline.refused(*arguments, code=2), arguments


def test_profiles_fabrics_and_weights_go_to_output_or_files_that_others_read(
    offline: Almanac, tmp_path: Path
) -> None:
    stencil = ("generate", "profile", "stencil", "--sides", "4x4", "--points", 5)
    printed = offline(*stencil)
    assert printed.out.startswith("# ranks: 16\nsrc,dst,bytes,messages\n")
    for format, name in (("edge-csv", "a.csv"), ("npz", "a.npz")):
        path = tmp_path / name
        made = offline(*stencil, "-o", path, "--format", format)
        assert "stencil5-4x4: 16 ranks, 48 pairs; written to" in made.err
        assert offline.json("ingest", path, "--dry-run")["profiles"] == ["a"]
    path = tmp_path / "fabric.json"
    answer = offline.json("generate", "fabric", "torus", "--sides", "3x3", "-o", path)
    assert (answer["host_count"], answer["switch_count"], answer["cable_count"]) == (9, 0, 18)
    assert len(json.loads(path.read_text())["nodes"]) == 9
    path = tmp_path / "weights.csv"
    answer = offline.json("generate", "weights", "stream", "--vertices", 30, "--seed", 4, "-o", path)
    assert (answer["ranks"], answer["sum"] >= answer["heaviest"] > 0) == (30, True)
    assert read_weights(str(path), 30).sum() == answer["sum"]
    assert offline("generate", "weights", "stream", "--vertices", 30, "--seed", 4).out == path.read_text()
    assert offline("generate", "weights", "stream", "--vertices", 30, "--save").code == 2
    assert "closest: stream" in offline("generate", "weights", "strem").err


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
