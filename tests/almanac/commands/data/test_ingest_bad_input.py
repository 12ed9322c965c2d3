"""What bad input gets: one clear line, exit 1, and nothing written."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.almanac.conftest import Almanac, Outcome
from tests.support import paths

DATA = paths.DATA
SCAN = DATA / "infiniband" / "fattree2-64-traffic" / "ibnetdiscover.txt"
TABLES = DATA / "infiniband" / "fattree2-64-traffic" / "opensm-lfts.dump"
PROFILE = DATA / "openmpi" / "npb_cg_S_16.tar.gz"

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


def nodes(almanac: Almanac) -> Outcome:
    return almanac("query", "MATCH (n) WHERE NOT n:IngestRun RETURN count(n) AS nodes", "--csv")


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_in_one_line_and_nothing_is_written(
    embedded: Almanac, tmp_path: Path, name: str
) -> None:
    make, reason = BAD[name]
    path = make(tmp_path)
    before = nodes(embedded).out
    outcome = embedded("ingest", path, "--cluster", "c")
    assert outcome.code == 1
    assert len(outcome.err.strip().splitlines()) == 1
    assert outcome.err.startswith(f"almanac: {path}")
    assert reason in outcome.err
    assert outcome.out == ""
    assert nodes(embedded).out == before
    assert embedded("ingest", path, "--cluster", "c", "--json").error["path"].startswith(str(path))


def test_a_good_file_beside_a_bad_one_is_not_saved(embedded: Almanac, tmp_path: Path) -> None:
    bad = written("n.csv", "src,dst,bytes\n0,1,4\n1,x,5\n")(tmp_path)
    before = nodes(embedded).out
    outcome = embedded("ingest", SCAN, bad, "--cluster", "c", "--json")
    assert (outcome.code, outcome.error["line"], outcome.error["text"]) == (1, 3, "1,x,5")
    assert nodes(embedded).out == before


def test_missing_ranks_can_be_allowed_and_are_reported(embedded: Almanac, tmp_path: Path) -> None:
    folder = without_a_rank(tmp_path)
    assert embedded("ingest", folder, "--name", "part", "--allow-missing-ranks").code == 0
    assert len(embedded("profile", "show", "part", "--json").json["missing_ranks"]) == 1


def test_a_self_edge_is_counted_and_dropped(embedded: Almanac, tmp_path: Path) -> None:
    path = written("s.csv", "src,dst,bytes,messages\n0,0,7,1\n0,1,5,1\n")(tmp_path)
    assert embedded("ingest", path).code == 0
    answer = embedded("profile", "show", "s", "--json").json
    assert (answer["pairs"], answer["bytes"], answer["self_edges"], answer["self_bytes"]) == (1, 5, 1, 7)


class TestPlacing:
    """Requests that cannot be met."""

    @pytest.fixture
    def loaded(self, embedded: Almanac) -> Almanac:
        assert embedded("ingest", SCAN, TABLES, "--cluster", "ft").code == 0
        assert embedded("ingest", PROFILE, "--name", "cg").code == 0
        return embedded

    def refused(self, almanac: Almanac, *arguments: object) -> dict[str, object]:
        outcome = almanac("map", *arguments, "--steps", 100, "--json")
        assert outcome.code == 1
        assert almanac("history", "--json").json == []
        return outcome.error

    def test_an_unknown_host_is_reported_with_the_closest(self, loaded: Almanac) -> None:
        error = self.refused(loaded, "cg", "--cluster", "ft", "--hosts", "node[0001-0015],nod0016")
        assert error["error"] == "UnknownName"
        assert "node0016" in str(error["reason"])

    def test_more_ranks_than_slots_are_refused(self, loaded: Almanac) -> None:
        error = self.refused(loaded, "cg", "--cluster", "ft", "--hosts", "node[0001-0015]")
        assert error["error"] == "InfeasibleAllocation"

    @pytest.mark.parametrize(
        ("arguments", "closest"),
        [
            (("gc", "--cluster", "ft", "--hosts", "node[0001-0016]"), "cg"),
            (("cg", "--cluster", "fr", "--hosts", "node[0001-0016]"), "ft"),
            (("cg", "--cluster", "ft", "--hosts", "node[0001-0016]", "--routing", "tabels"), "tables"),
            (("cg", "--cluster", "ft", "--hosts", "node[0001-0016]", "--strategy", "gready"), "greedy"),
        ],
        ids=["profile", "cluster", "routing", "strategy"],
    )
    def test_an_unknown_name_is_reported_with_the_closest(
        self, loaded: Almanac, arguments: tuple[str, ...], closest: str
    ) -> None:
        error = self.refused(loaded, *arguments)
        assert error["error"] == "UnknownName"
        assert closest in str(error["reason"])

    def test_a_job_on_hosts_that_the_cluster_lacks_is_saved_unless_strict(
        self, loaded: Almanac, tmp_path: Path
    ) -> None:
        text = (
            (DATA / "slurm" / "scontrol_show_jobs_d.txt")
            .read_text()
            .replace("node[0001-0016]", "node[0901-0916]")
        )
        path = written("jobs.txt", text)(tmp_path)
        outcome = loaded("ingest", path, "--cluster", "ft", "--strict", "--json")
        assert outcome.code == 1
        assert "node0901" in outcome.error["reason"]
        assert loaded("job", "list", "--json").json == []
        for _ in range(2):  # the same file again is not passed over as known
            outcome = loaded("ingest", path, "--cluster", "ft")
            assert outcome.code == 5
            assert "node0901, node0902, node0903, node0904, node0905 and 11 more" in outcome.err
        hosts = {row["job"]: row["hosts"] for row in loaded("job", "list", "--json").json}
        lacking = next(job for job, names in hosts.items() if "node0901" in names)
        assert len(hosts) > 1
        assert loaded("job", "show", lacking, "--json").json["unknown_hosts"] == hosts[lacking]


class TestOtherHosts:
    """Files that name hosts and devices that the fabric lacks, and files of another cluster."""

    @pytest.fixture
    def loaded(self, embedded: Almanac) -> Almanac:
        assert embedded("ingest", SCAN, "--cluster", "ft").code == 0
        return embedded

    @pytest.mark.parametrize("kind", ["placement", "counters"])
    def test_what_is_known_is_saved_and_the_exit_code_is_5(
        self, loaded: Almanac, tmp_path: Path, kind: str
    ) -> None:
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
        strict = loaded("ingest", *files, "--cluster", "ft", "--strict")
        assert (strict.code, unknown.split()[-1] in strict.err) == (1, True)
        outcome = loaded("ingest", *files, "--cluster", "ft")
        assert outcome.code == 5
        assert f"{unknown} " in outcome.err or f"{unknown};" in outcome.err
        again = loaded("ingest", *files, "--cluster", "ft", "--json")
        assert (again.code, again.json[key]) == (5, [unknown])
        assert again.json[saved] in (0, again.json["placement_ids"][:1])

    def test_another_clusters_scan_needs_replace(self, loaded: Almanac) -> None:
        other = DATA / "infiniband" / "ndr-dgx-minhop" / "ibnetdiscover.txt"
        outcome = loaded("ingest", other, "--cluster", "ft")
        assert outcome.code == 1
        assert outcome.err.startswith(f"almanac: {other}: 0 of the 233 devices of this scan are in the scan")
        assert loaded("ingest", other, "--cluster", "ft", "--replace").code == 0
