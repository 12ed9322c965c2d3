"""What bad input gets: one clear line, exit 1, and nothing written."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.almanac.conftest import PROFILE, SCAN, TABLES, Almanac
from tests.support import paths

DATA = paths.DATA

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


def lines_of(path: Path, change: Callable[[list[str]], list[str]]) -> str:
    return "\n".join(change(path.read_text().split("\n")))


BAD: dict[str, tuple[Make, str]] = {
    "empty": (written("x.txt", ""), "empty"),
    "binary": (written("x.bin", bytes(range(256)) * 8), "binary"),
    "wrong encoding": (written("x.csv", b"src,dst,bytes\n0,1,5\n\xff\xfe,1,2\n"), "UTF-8"),
    "unknown format": (written("x.txt", "Lorem ipsum\ndolor sit amet\n"), "--format; known formats: "),
    "truncated scan": (
        lambda folder: written("t.txt", lines_of(SCAN, lambda x: x[: len(x) // 2]))(folder),
        "",
    ),
    "truncated tables": (
        lambda folder: written("t.dump", lines_of(TABLES, lambda x: x[: len(x) // 2 - 9]))(folder),
        "",
    ),
    "truncated archive": (written("x.csv.gz", gzip.compress(b"src,dst,bytes\n0,1,2\n" * 99)[:-9]), ""),
    "only itself": (lambda _: DATA / "public" / "ndr-dgx-only-local.ibnetdiscover", "only"),
    "NaN bytes": (written("n.csv", "src,dst,bytes\n0,1,nan\n"), "nan"),
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


def test_a_job_on_hosts_that_the_cluster_lacks_is_saved_unless_strict(
    scanned: Almanac, tmp_path: Path
) -> None:
    jobs = (DATA / "slurm" / "scontrol_show_jobs_d.txt").read_text()
    path = written("jobs.txt", jobs.replace("node[0001-0016]", "node[0901-0916]"))(tmp_path)
    error = scanned.error("ingest", path, "--cluster", "ft", "--strict")
    assert "node0901" in error["reason"]
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
