"""The whole way by commands, on both servers: ingest, look, place, evaluate, export, remember."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import pytest

from registry.maintenance import sizes
from tests.almanac.conftest import Almanac
from tests.support import paths

DATA = paths.DATA
FABRIC = DATA / "infiniband" / "fattree2-64-traffic"
PROFILE = DATA / "openmpi" / "npb_cg_S_16.tar.gz"
PLACED = ("congestion_seconds", "network_congestion_seconds", "hop_bytes", "average_dilation")


@pytest.fixture
def loaded(almanac: Almanac) -> Almanac:
    """A fabric with tables and a profile."""
    outcome = almanac("ingest", FABRIC / "ibnetdiscover.txt", FABRIC / "opensm-lfts.dump", "--cluster", "ft")
    assert outcome.code == 0, outcome.err
    assert almanac("ingest", PROFILE, "--name", "cg").code == 0
    return almanac


def test_a_placement_is_found_saved_exported_and_evaluated_again(loaded: Almanac, tmp_path: Path) -> None:
    show = loaded("cluster", "show", "ft", "--json").json
    assert tuple(show[f"{name}_count"] for name in ("host", "adapter", "switch", "cable")) == (64, 64, 12, 96)
    assert loaded("profile", "show", "cg", "--json").json["missing_ranks"] == []

    rankfile = tmp_path / "rf"
    call = ["map", "cg", "--cluster", "ft", "--hosts", "node[0001-0004,0033-0036]", "--slots", 2]
    found = loaded(*call, "--steps", 20000, "--export", f"openmpi-rankfile={rankfile}", "--json")
    assert found.code == 0, found.err
    answer = found.json
    assert (answer["ranks"], answer["host_count"], answer["routing"], answer["complete"]) == (
        16,
        8,
        "tables",
        True,
    )
    for rival in ("in_order", "random"):
        assert answer["placed"]["congestion_seconds"] <= answer[rival]["congestion_seconds"] * (1 + 1e-9)
    for name in PLACED[:3]:
        assert answer["lower_bound"][name] <= answer["placed"][name] * (1 + 1e-9)

    again = loaded(*call, "--steps", 20000, "--json").json
    assert again["placement"] == answer["placement"]
    history = loaded("history", "--json").json
    assert [row["placement"] for row in history] == [answer["placement"]]

    links = tmp_path / "links.csv"
    for given in (rankfile, answer["placement"]):
        judged = loaded(
            "evaluate", "cg", "--cluster", "ft", "--placement", given, "--export", f"links={links}", "--json"
        ).json
        for name in PLACED:
            assert judged[name] == pytest.approx(answer["placed"][name], rel=1e-12)
    rows = list(csv.DictReader(io.StringIO(links.read_text())))
    assert max(float(row["seconds"]) for row in rows) == pytest.approx(answer["placed"]["congestion_seconds"])
    assert sum(float(row["bytes"]) for row in rows) == pytest.approx(answer["placed"]["hop_bytes"])
    assert all(row["source_guid"].startswith("0x") and row["source_port"].isdigit() for row in rows)

    table = loaded("export", answer["placement"], "csv").out
    assert len(table.splitlines()) == 17
    assert table.splitlines()[0] == "rank,host,slot"


def test_the_same_files_again_add_nothing_but_runs(loaded: Almanac) -> None:
    counts = "MATCH (n) WHERE NOT n:IngestRun RETURN count(n) AS nodes"
    before = loaded("query", counts, "--json").json
    again = loaded(
        "ingest", FABRIC / "ibnetdiscover.txt", FABRIC / "opensm-lfts.dump", "--cluster", "ft", "--json"
    ).json
    assert (again["new_observation"], again["new_snapshot"], again["new_routing"]) == (False, False, False)
    loaded("ingest", PROFILE, "--name", "cg")
    assert loaded("query", counts, "--json").json == before


def test_the_hosts_and_slots_of_a_job_are_used(loaded: Almanac) -> None:
    assert loaded("ingest", DATA / "slurm" / "scontrol_show_jobs_d.txt", "--cluster", "ft").code == 0
    listed = loaded("job", "list", "--json").json
    assert len(listed) > 1
    assert loaded("job", "attach", "1", "cg").code == 0
    shown = loaded("job", "show", "1", "--json").json
    assert shown["profile_id"] == loaded("profile", "show", "cg", "--json").json["profile_id"]
    assert (len(shown["hosts"]), set(shown["slots"])) == (16, {4})
    answer = loaded("map", "cg", "--job", "1", "--steps", 2000, "--json").json
    assert answer["host_count"] == 16
    assert loaded("history", "--job", "1", "--json").json[0]["job"] == "1"


def test_the_byte_counts_of_the_simulated_fabric_come_out_per_link(loaded: Almanac, tmp_path: Path) -> None:
    import json

    truth = json.loads((FABRIC / "truth.json").read_text())
    edges = tmp_path / "stencil.csv.gz"
    with gzip.open(edges, "wt") as file:
        file.write("src,dst,bytes\n" + "".join(f"{s},{t},{b}\n" for s, t, b in truth["traffic"]))
    hosts = tmp_path / "hostfile"
    hosts.write_text("".join(f"{name.split()[0]}\n" for name in truth["hosts"]))
    assert loaded("ingest", edges).code == 0
    links = tmp_path / "links.csv"
    answer = loaded(
        "evaluate", "stencil", "--cluster", "ft", "--placement", hosts, "--export", f"links={links}", "--json"
    ).json
    assert answer["hop_bytes"] == truth["hop_bytes"]
    assert answer["average_dilation"] == truth["avg_dilation"]
    rows = csv.DictReader(io.StringIO(links.read_text()))
    found = {f"{row['source_guid'][2:]}/{row['source_port']}": int(row["bytes"]) for row in rows}
    assert found == truth["link_bytes"]


def test_a_broken_cable_is_reported_as_a_change(almanac: Almanac) -> None:
    folder = DATA / "infiniband" / "fattree2-64-broken-link"
    for name, at in (("before.ibnetdiscover", "2026-01-01"), ("ibnetdiscover.txt", "2026-01-02")):
        call = almanac("ingest", folder / name, "--cluster", "ft", "--observed-at", f"{at}T00:00:00Z")
        assert call.code == 0, call.err
    answer = almanac("cluster", "changes", "ft", "--json").json
    assert answer["hosts_vanished"] == ["node0042"]
    words = almanac("cluster", "changes", "ft").out
    assert "host node0042 vanished" in words
    assert len(answer["cables_vanished"]) == words.count("vanished") - 1 == 2
    earlier = almanac("cluster", "show", "ft", "--at", "2026-01-01T12:00:00Z", "--json").json
    assert earlier["host_count"] == 64


def test_a_query_reads_and_never_writes(loaded: Almanac) -> None:
    outcome = loaded(
        "query", "--csv", "-p", "kind=host", "MATCH (s:DeviceState {kind: $kind}) RETURN count(s) AS hosts"
    )
    assert outcome.out == "hosts\n64\n"
    (row,) = loaded("query", "MATCH (c:Content) RETURN c, [c] AS list LIMIT 1", "--json").json
    assert row["list"] == [row["c"]]
    assert any(str(value).endswith(" bytes>") for value in row["c"].values())
    refused = loaded("query", "MATCH (n) DETACH DELETE n", "--json")
    assert (refused.code, refused.error["error"]) == (1, "WriteRefused")
    assert loaded("cluster", "show", "ft", "--json").json["host_count"] == 64


def test_a_dump_loads_into_an_empty_registry_only(
    loaded: Almanac, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    from registry.database.driver import Database
    from tests.conftest import empty

    before = loaded("cluster", "show", "ft", "--json").json
    backup = tmp_path / "backup.almanac"
    assert loaded("db", "backup", backup).code == 0
    assert loaded("db", "restore", backup).code == 1
    database = request.getfixturevalue("database")
    assert isinstance(database, Database)
    empty(database)
    assert loaded("db", "restore", backup).code == 0
    assert loaded("cluster", "show", "ft", "--json").json == before


def test_the_doctor_finds_all_well(loaded: Almanac) -> None:
    outcome = loaded("doctor", "--json")
    assert outcome.code == 0
    assert "failed" not in {finding["state"] for finding in outcome.json}


def test_without_a_database_the_doctor_reports_the_rest(offline: Almanac) -> None:
    outcome = offline("doctor", "--json")
    assert outcome.code == 3
    states = {finding["check"]: finding["state"] for finding in outcome.json}
    assert (states["python"], states["database"]) == ("ok", "failed")


def test_profiles_are_exported_as_they_came_in(loaded: Almanac, tmp_path: Path) -> None:
    path = tmp_path / "cg.csv"
    assert loaded("profile", "export", "cg", f"csv={path}").code == 0
    assert loaded("ingest", path, "--name", "again").code == 0
    first, second = (loaded("profile", "show", name, "--json").json for name in ("cg", "again"))
    for key in ("ranks", "pairs", "bytes", "messages"):
        assert first[key] == second[key]


def test_an_interrupted_search_keeps_its_best_so_far_marked_incomplete(
    loaded: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
    import contextlib
    from collections.abc import Iterator

    from registry.progress import Progress

    @contextlib.contextmanager
    def impatient() -> Iterator[Progress]:
        def stop(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
            if best is not None and done > 0:
                raise KeyboardInterrupt

        yield stop

    monkeypatch.setattr("almanac.commands.placing.map.kernel_progress_bars", impatient)
    outcome = loaded("map", "cg", "--cluster", "ft", "--hosts", "node[0001-0016]", "--seconds", 60, "--json")
    assert outcome.code == 130
    assert outcome.json["complete"] is False
    assert outcome.json["wall_seconds"] < 60
    history = loaded("history", "--json").json
    assert [(row["placement"], row["complete"]) for row in history] == [(outcome.json["placement"], False)]


@pytest.mark.parametrize(
    ("size", "state", "seen"),
    [
        (900_000_000, "ok", "900 MB"),
        (9_000_000_000, "warning", "9 GB, most of it of deleted data: run almanac db compact"),
    ],
)
def test_the_doctor_tells_when_most_of_the_files_is_space_of_deleted_data(
    embedded: Almanac, monkeypatch: pytest.MonkeyPatch, size: int, state: str, seen: str
) -> None:
    assert "files" not in {check["check"] for check in embedded("doctor", "--json").json}
    monkeypatch.setattr(sizes, "file_bytes", lambda database: size)  # as of the server that almanac starts
    files = next(check for check in embedded("doctor", "--json").json if check["check"] == "files")
    assert (files["state"], files["seen"]) == (state, seen)
