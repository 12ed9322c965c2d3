"""Files in groups, and their way into the registry or, by `ingest.read`, into Python; options, and rates."""

from __future__ import annotations

import gzip
import os
import warnings
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest import read as read_file
from ingest.formats.fabrics.infiniband import LANE_BYTES, WIDTHS, link_rate, printed_rate
from ingest.formats.profiles.edges import csv_text
from ingest.options import Options
from ingest.parsed import Format
from ingest.pipeline import anchored, folder_of, gather, ingest, plan
from ingest.reading.source import SourceGroup, read_paths
from ingest.writers import fat_tree, forwarding_tables, ibnetdiscover_text, opensm_lfts_text
from registry.errors import ConfigError, InputError, InvalidValue, UnknownFormat, UnknownName
from registry.model import Fabric, Profile
from registry.model.intake import Intake, Receipt
from registry.progress import Progress, silent
from registry.store.fabrics import Snapshot
from registry.store.ingest_runs import Attempt, RunInfo
from tests.support.inputs import DATA, archive, bytes_of, edges_of, file, recordings
from tests.support.paths import written
from tests.support.sure import sure
from tests.support.switch_trees import rows_of

HERE = Options(cluster="here")
NDR = DATA / "public/ndr-dgx.ibnetdiscover"
NDR_TABLES = DATA / "infiniband/ndr-dgx-minhop/opensm-lfts.dump.gz"
PROFILE = DATA / "openmpi/npb_cg_S_16.tar.gz"


class Shelf:
    """A registry that only remembers the intakes that it saves."""

    def __init__(self) -> None:
        self.saved: list[Intake] = []
        self.errors: list[tuple[Attempt, BaseException]] = []

    def save(self, intake: Intake, progress: Progress = silent) -> Receipt:
        self.saved.append(intake)
        return Receipt(cluster=intake.cluster, new_content=True, warnings=(*intake.warnings, "from saving"))

    def last_seen(self, cluster: str, at: datetime) -> Snapshot | None:
        return None

    nearest_seen = last_seen

    def largest_seen(self, cluster: str) -> Snapshot | None:
        return None

    def same(self, key: str) -> RunInfo | None:
        return None

    def unchanged(self, attempt: Attempt, known: RunInfo) -> None:
        raise AssertionError("nothing was read before")

    def failed(self, attempt: Attempt, error: BaseException) -> None:
        self.errors.append((attempt, error))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with the scan and the tables of a small fabric, the scan of 2026-01-01, the files of 2020."""
    devices = fat_tree(2, 3, 2)
    (tmp_path / "scan.txt").write_text(ibnetdiscover_text(devices))
    (tmp_path / "tables.txt").write_text(opensm_lfts_text(devices, forwarding_tables(devices)))
    for name in ("scan.txt", "tables.txt"):
        os.utime(tmp_path / name, (1_577_836_800, 1_577_836_800))
    return tmp_path


def test_files_of_one_call_are_one_observation(tree: Path) -> None:
    intake = plan([tree], HERE)
    fabric = sure(intake.fabric)
    assert np.array_equal(sure(intake.tables).switch_guid, np.sort(fabric.guid[fabric.switches]))
    assert intake.files == (str(tree / "scan.txt"), str(tree / "tables.txt"))
    assert (intake.cluster, intake.source) == ("here", "ibnetdiscover, opensm-lfts")
    assert intake.warnings == ()


def test_observed_at_is_the_callers_then_the_scans_then_the_youngest_files(tree: Path) -> None:
    summer = datetime(2025, 7, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    for moment, hour in ((summer, 10), (datetime(2025, 7, 1), 0)):
        options = Options(cluster="c", observed_at=moment)
        assert plan([tree], options).observed_at == datetime(2025, 7, 1, hour, tzinfo=UTC)
    assert plan([tree], HERE).observed_at == datetime(2026, 1, 1, tzinfo=UTC)
    assert plan([tree / "tables.txt"], HERE).observed_at == datetime(2020, 1, 1, tzinfo=UTC)
    scan = tree / "scan.txt"
    scan.write_text(scan.read_text().replace("# Topology", "# Some"))
    os.utime(scan, (1_609_459_200, 1_609_459_200))
    assert plan([tree], HERE).observed_at == datetime(2021, 1, 1, tzinfo=UTC)


def test_a_profile_alone_needs_neither_cluster_nor_time() -> None:
    intake = plan([PROFILE])
    assert (intake.cluster, intake.observed_at, intake.fabric) == (None, None, None)
    assert len(intake.profiles) == 1


def test_the_digest_is_that_of_the_content_not_of_its_packing(tree: Path, tmp_path: Path) -> None:
    plain = plan([tree / "scan.txt", tree / "tables.txt"], HERE)
    packed = tmp_path / "packed.bin"
    packed.write_bytes(gzip.compress((tree / "scan.txt").read_bytes()))
    again = plan([packed, tree / "tables.txt"], HERE)
    assert plain.digest == again.digest
    assert plain.digest != plan([tree / "scan.txt"], HERE).digest
    assert len(plain.digest) == 64


@pytest.mark.parametrize(
    ("changes", "warned"),
    [
        ([("# lid 5 lmc 0", "# lid 500 lmc 0")], "1 adapter port has another LID here than in the scan"),
        (
            [("2c90000f00101", "2c90000f00fff"), ("# lid 5 lmc 0", "# lid 0 lmc 0")],
            "1 adapter port of the scan is not in the tables",
        ),
    ],
)
def test_adapter_ports_that_the_tables_do_not_know_are_counted(
    tree: Path, changes: list[tuple[str, str]], warned: str
) -> None:
    scan = tree / "scan.txt"
    for old, new in changes:
        scan.write_text(scan.read_text().replace(old, new))
    (warning,) = plan([tree], HERE).warnings
    assert warning.endswith(warned)


def test_switches_without_a_table_are_counted(tree: Path) -> None:
    head, _, *others = (tree / "tables.txt").read_text().split("Unicast")
    (tree / "tables.txt").write_text("Unicast".join([head, *others]))
    (warning,) = plan([tree], HERE).warnings
    assert warning.endswith("1 switch of the scan has no table")


def test_tables_of_another_fabric_and_second_fabrics_or_tables_are_refused(tree: Path) -> None:
    with pytest.raises(UnknownName, match="0 of the 4 switches with tables are in the scan: are") as caught:
        plan([NDR, tree / "tables.txt"], HERE)
    assert (caught.value.kind, caught.value.name) == ("switch", "0x0002c90000100100")
    with pytest.raises(InputError, match=r"no host or switch in common with .*scan.txt"):
        plan([tree / "scan.txt", NDR], HERE)
    with pytest.raises(InputError, match="a second set of forwarding tables in one ingest"):
        plan([tree, NDR_TABLES], HERE)


@pytest.mark.parametrize("options", [None, Options(), Options(cluster="")])
def test_a_fabric_needs_the_name_of_its_cluster(tree: Path, options: Options | None) -> None:
    with pytest.raises(ConfigError, match="--cluster NAME"):
        plan([tree], options)


def test_one_name_does_not_fit_two_profiles_or_none(tree: Path) -> None:
    with pytest.raises(ConfigError, match="but the files contain 2"):
        plan([PROFILE, DATA / "edges/npb_cg_S_16.csv.gz"], Options(name="x"))
    with pytest.raises(ConfigError, match="but the files contain 0"):
        plan([tree], Options(cluster="c", name="x"))


def test_no_files_are_an_error_and_an_unrecognised_file_in_a_folder_is_named(tree: Path) -> None:
    with pytest.raises(InputError, match="no files"):
        plan([], HERE)
    (tree / "notes.txt").write_text("Dear diary, the fabric is fine.\n\nToday.\n")
    with pytest.raises(UnknownFormat) as caught:
        plan([tree], HERE)
    assert caught.value.path == str(tree / "notes.txt")


def test_a_named_format_is_not_looked_for_and_reads_prof_files_one_by_one(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not the heading of a switch's table"):
        plan([tree / "scan.txt"], Options(cluster="c", format="opensm-lfts"))
    with pytest.raises(UnknownName, match="there is no format 'nonsense'"):
        plan([tree / "scan.txt"], Options(cluster="c", format="nonsense"))
    (tmp_path / "profs").mkdir()
    for name in ("a.prof", "b.prof"):
        (tmp_path / "profs" / name).write_text("num: 2\n0 a\n1 b\n0 1\n1 0\n")
    reason = r"a second libtopomap of one fabric, the first is .*: ingest them one by one"
    with pytest.raises(InputError, match=reason):
        plan([tmp_path / "profs"], Options(cluster="c", format="libtopomap"))


def test_ingest_saves_once_and_reports_all_warnings() -> None:
    shelf = Shelf()
    report = ingest(shelf, [NDR, PROFILE, NDR_TABLES], Options(cluster="ndr", name="cg"))
    (saved,) = shelf.saved
    assert saved.fabric is report.intake.fabric is not None
    assert [(profile.name, profile.ranks) for profile in saved.profiles] == [("cg", 16)]
    assert (saved.key != "", saved.started_at is None) == (True, False)
    assert sure(report.receipt).new_content
    assert report.intake.warnings[1:] == (
        f"{NDR_TABLES}: 542 adapter ports have another GUID here than in the scan: identified by LID",
    )
    assert report.intake.warnings[0].startswith(f"{PROFILE}: 4 edges from a rank to itself are dropped")
    assert report.warnings == (*report.intake.warnings, "from saving")


def test_a_dry_run_checks_everything_and_saves_nothing(tree: Path) -> None:
    shelf = Shelf()
    report = ingest(shelf, [tree], HERE, dry_run=True)
    assert (shelf.saved, report.receipt) == ([], None)
    assert report.intake.fabric is not None
    assert ingest(None, [tree], HERE, dry_run=True).receipt is None


def test_a_call_that_fails_before_saving_is_recorded_with_the_recognised_formats(tree: Path) -> None:
    (tree / "tables.txt").write_text((tree / "tables.txt").read_text()[:-20])
    shelf = Shelf()
    with pytest.raises(InputError):
        ingest(shelf, [tree], HERE, dry_run=True)
    assert shelf.errors == []
    with pytest.raises(InputError) as caught:
        ingest(shelf, [tree], HERE)
    assert shelf.saved == []
    ((attempt, error),) = shelf.errors
    assert error is caught.value
    assert (attempt.cluster, attempt.files) == ("here", (str(tree),))
    assert attempt.formats == ("ibnetdiscover", "opensm-lfts")


def test_progress_reports_each_source(tree: Path) -> None:
    reports: list[tuple[str, float, float | None]] = []

    def progress(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        reports.append((Path(phase).name, done, total))

    ingest(Shelf(), [tree], HERE, progress=progress)
    assert reports == [("scan.txt", 0, 2), ("tables.txt", 1, 2), ("checking", 2, 2)]


SWEEP = DATA / "counters/sweep1-counters.txt.gz"
ERRORS = DATA / "counters/sweep2-errors-report.txt"


def copied(folder: Path, source: Path, minute: float) -> Path:
    """A copy of a file that was last changed so many minutes after 2020 began."""
    there = folder / source.name
    there.write_bytes(source.read_bytes())
    os.utime(there, (1_577_836_800 + 60 * minute,) * 2)
    return there


def test_sweeps_that_were_read_at_once_are_one_and_others_stay_two(tmp_path: Path) -> None:
    files = [copied(tmp_path, SWEEP, 0), copied(tmp_path, ERRORS, 0.5)]
    (sweep,) = plan(files, HERE).counters
    assert sweep.at == datetime(2020, 1, 1, 0, 0, 30, tzinfo=UTC)
    assert {"xmit_bytes", "xmit_wait", "symbol_errors"} <= set(sweep.names)
    second = DATA / "counters/sweep2-counters.txt.gz"
    files = [copied(tmp_path, second, 0.2), copied(tmp_path, SWEEP, 0)]
    one, other = plan(files, HERE).counters
    assert (one.at.second, other.at.second) == (0, 12)
    late = [copied(tmp_path, SWEEP, 0), copied(tmp_path, ERRORS, 5)]
    assert len(plan(late, HERE).counters) == 2


def test_counters_and_plans_need_the_name_of_their_cluster() -> None:
    for path in (SWEEP, DATA / "formats/fabric.ndt"):
        with pytest.raises(ConfigError, match="--cluster NAME"):
            plan([path])


def test_the_files_of_a_plan_in_one_call_are_one_plan(tmp_path: Path) -> None:
    head, *lines = (DATA / "formats/fabric.ndt").read_text().splitlines()
    first, second = tmp_path / "hosts.ndt", tmp_path / "more" / "switches.ndt.gz"
    second.parent.mkdir()
    first.write_text("\n".join([head, *lines[:60]]) + "\n")
    second.write_bytes(gzip.compress("\n".join([head, *lines[58:]]).encode()))
    joined = plan([first, second], HERE)
    whole = sure(plan([DATA / "formats/fabric.ndt"], HERE).intended)
    changed = datetime.fromtimestamp(second.stat().st_mtime, UTC)
    assert joined.intended == replace(whole, declared_at=changed)
    assert joined.warnings == ("2 cables are in several files of the intended wiring",)
    assert len(joined.files) == 2


def test_ports_with_several_cables_in_a_plan_are_named_and_refused_if_strict(tmp_path: Path) -> None:
    head = (DATA / "formats/fabric.ndt").read_text().splitlines()[0]
    other = tmp_path / "other.ndt"
    other.write_text(f"{head}\nleaf08,Port 1,node9999,mlx5_0,Data\n")
    files = [DATA / "formats/fabric.ndt", other]
    expected = "1 port has several cables in the intended wiring, for example leaf08 Port 1 (2 cables)"
    assert plan(files, HERE).warnings == (expected,)
    with pytest.raises(InputError, match=r"leaf08 Port 1 \(2 cables\)"):
        plan(files, replace(HERE, strict=True))


def test_the_folder_of_a_file_may_be_an_archive() -> None:
    folders = {"a.json": ".", "x/a.json": "x", "r.tar!a.json": "r.tar", "r.tar!d/a.json": "r.tar!d"}
    folders["/a"] = "/"
    assert {path: folder_of(path) for path in folders} == folders


def test_files_of_a_rank_each_are_one_source_however_they_are_given(tmp_path: Path) -> None:
    ranks = archive("profiles/dumpi2ascii_lulesh_8.tar.xz")
    folder = tmp_path / "run"
    folder.mkdir()
    paths = [folder / Path(one.path.rpartition("!")[2]).name for one in ranks]
    for path, one in zip(paths, ranks, strict=True):
        path.write_bytes(one.data)
    by_folder, by_name = (gather(read_paths(given)) for given in ([folder], paths))
    packed = gather(read_paths([DATA / "profiles/dumpi2ascii_lulesh_8.tar.xz"]))
    for sources in (by_folder, by_name, packed):
        ((format, group),) = sources
        assert (format.name, len(group.files)) == ("dumpi2ascii", 8)


def test_files_of_two_folders_are_two_sources_and_other_formats_stay_apart(tmp_path: Path) -> None:
    ranks = archive("profiles/dumpi2ascii_lulesh_8.tar.xz")
    for run in ("one", "two"):
        (tmp_path / run).mkdir()
        for number, one in enumerate(ranks):
            (tmp_path / run / f"{number}.txt").write_bytes(one.data)
    (tmp_path / "one" / "edges.csv").write_text("src,dst,bytes\n0,1,2\n")
    (tmp_path / "one" / "more.csv").write_text("src,dst,bytes\n0,1,2\n")
    found = [(format.name, len(group.files)) for format, group in gather(read_paths([tmp_path]))]
    assert found == [("dumpi2ascii", 8), ("edge-csv", 1), ("edge-csv", 1), ("dumpi2ascii", 8)]


def test_the_first_file_of_a_folder_spares_the_others_the_other_formats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ingest import catalog

    recognised: list[str] = []
    whole = catalog.recognise

    def counted(group: SourceGroup) -> Format:
        recognised.append(group.path)
        return whole(group)

    monkeypatch.setattr(catalog, "recognise", counted)
    ranks = archive("profiles/dumpi2ascii_lulesh_8.tar.xz")
    files = [file(one.data, f"d/{number}.txt") for number, one in enumerate(ranks)]
    files.insert(4, file("src,dst,bytes\n0,1,2\n", "d/edges.csv"))
    found = [(format.name, len(group.files)) for format, group in gather(one.as_group() for one in files)]
    assert found == [("dumpi2ascii", 8), ("edge-csv", 1)]
    assert recognised == ["d/0.txt", "d/edges.csv", "d/4.txt"]


def test_a_folder_of_two_archives_has_an_anchor_for_each() -> None:
    first = ["t/a.otf2", "t/a.def", "t/a/0.evt", "t/a/0.def"]
    second, others = ["t/b.otf2", "t/b.def", "t/b/0.evt"], ["t/c.def", "t/x/0.evt"]
    groups = [file(b"x", name).as_group() for name in reversed(first + second + others)]
    found = {group.path: [one.path for one in group.files] for group in anchored(groups)}
    assert found["t/a.otf2"][0] == "t/a.otf2"
    assert [sorted(found[names[0]]) for names in (first, second)] == [sorted(first), sorted(second)]
    assert set(others) <= found.keys()


WHEN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("divide", {"divide": 0}),
        ("parts", {"parts": 0}),
        ("domain", {"domain": -1}),
        ("collectives", {"collectives": "star"}),
        *(("rate", {"rate": rate}) for rate in (0.0, -1.0, float("nan"), float("inf"))),
        ("hosts", {"hosts": ("a", "a")}),
        *(("slots", {"hosts": ("a", "b", "c"), "slots": slots}) for slots in ((1, 2), (0,), ())),
    ],
)
def test_options_out_of_range_are_refused(field: str, values: dict[str, object]) -> None:
    with pytest.raises(InvalidValue, match=rf"^Options\.{field}"):
        Options(**values)  # type: ignore[arg-type]


def test_the_time_of_an_observation_is_that_of_the_option_or_of_the_file() -> None:
    assert Options().time(WHEN) == WHEN
    assert Options(observed_at=datetime(2025, 1, 1)).time(WHEN) == datetime(2025, 1, 1, tzinfo=UTC)


@given(recordings(), st.integers(2, 3))
def test_a_profile_recorded_several_times_over_is_divided_to_what_it_was(
    tmp_path_factory: pytest.TempPathFactory, once: Profile, times: int
) -> None:
    path = tmp_path_factory.mktemp("doubled") / "p.csv"
    size, count = once.bytes * times, once.messages * times
    repeated = Profile.from_edges(once.sender, once.partner, size, ranks=once.ranks, messages=count)
    path.write_text(csv_text(repeated))
    (found,) = plan([path], Options(divide=times)).profiles
    assert edges_of(found) == edges_of(once)
    assert found.ranks == once.ranks
    if once.pairs:
        assert found.source == f"edge-csv, divided by {times}"


def test_what_is_no_multiple_was_not_recorded_so_often(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("src,dst,bytes,messages\n0,1,8,2\n1,0,8,3\n")
    with pytest.raises(InputError, match="cannot have been recorded 2 times: 1") as caught:
        plan([path], Options(divide=2))
    assert "1 to 0: 3 messages" in (caught.value.text or "")


@pytest.mark.parametrize(
    ("rows", "warned"),
    [
        ("0,1,8,2\n1,0,8,4\n", "even number of messages"),
        ("0,1,8,2\n1,0,8,3\n", ""),
        ("0,1,7,2\n1,0,8,2\n", ""),
        ("0,1,7,1\n1,0,9,3\n0,1,7,1\n1,0,9,3\n", "every row is repeated"),
        ("0,1,7,1\n0,1,7,1\n1,0,9,3\n1,0,9,3\n", "every row is repeated"),
    ],
)
def test_a_profile_that_may_be_doubled_has_a_warning(tmp_path: Path, rows: str, warned: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text(f"src,dst,bytes,messages\n{rows}")
    warnings = " ".join(plan([path]).warnings)
    assert warned in warnings if warned else not warnings


def test_open_mpis_monitoring_has_no_warning_of_doubling() -> None:
    """NAS CG sends every message an even number of times."""
    report = plan([DATA / "openmpi/npb_cg_S_16.tar.gz"], Options(kinds=("E",)))
    assert bool((report.profiles[0].messages % 2 == 0).all())
    assert not any("even number" in warning for warning in report.warnings)


GIGABITS_OF_4X = {
    "SDR": 8, "DDR": 16, "QDR": 32, "FDR10": 40, "FDR": 54.54, "EDR": 100, "HDR": 200, "NDR": 400, "XDR": 800,
}  # fmt: skip
"""What vendors print of a four-lane link's data rate, in Gbit/s."""


def test_four_lanes_carry_what_vendors_print_all_but_fdr_are_round_and_width_multiplies() -> None:
    found = {speed: link_rate(4, speed) * 8 / 1e9 for speed in LANE_BYTES}
    assert found == pytest.approx(GIGABITS_OF_4X, rel=2e-4)
    assert {speed for speed, rate in found.items() if rate != GIGABITS_OF_4X[speed]} == {"FDR"}
    assert [link_rate(width, "EDR") for width in WIDTHS] == [width * 3.125e9 for width in WIDTHS]


@pytest.mark.parametrize(("width", "speed"), [(3, "SDR"), (0, "SDR"), (4, "ABC"), (4, "")])
def test_what_infiniband_does_not_have_is_refused(width: int, speed: str) -> None:
    with pytest.raises(KeyError):
        link_rate(width, speed)


def test_rates_as_tools_print_them() -> None:
    printed = {("4x", "HDR"): 25e9, ("2X", "50"): 12.5e9, ("4X", "FDR10"): 5e9}
    assert {one: printed_rate(*one) for one in printed} == printed
    assert [printed_rate(*one) for one in (("3x", "HDR"), ("??", "HDR"), ("4x", "???"))] == [None] * 3


PATTERN = "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n"
VALUES = "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 8\n2 3 4\n"
METIS = "3 2\n2\n1 3\n2\n"
METIS_WEIGHTS = "3 2 1\n2 7\n1 7 3 5\n2 5\n"
RING: nx.Graph[int] = nx.cycle_graph(4)


def quietly(path: Path, **options: Any) -> Fabric | Profile:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_file(path, **options)


def fabric_of(path: Path, **options: Any) -> Fabric:
    found = quietly(path, **options)
    assert isinstance(found, Fabric)
    return found


def profile_of(path: Path, **options: Any) -> Profile:
    found = quietly(path, **options)
    assert isinstance(found, Profile)
    return found


def rates_of(fabric: Fabric) -> dict[tuple[str, str], float]:
    rows = rows_of(fabric.links, "source", "target", "capacity")
    return {(fabric.names[source], fabric.names[target]): rate for source, target, rate in rows}


def both_ways(*cables: tuple[str, str, float]) -> dict[tuple[str, str], float]:
    return {ends: rate for a, b, rate in cables for ends in ((a, b), (b, a))}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("graph.mtx", PATTERN),
        ("graph.mtx", VALUES),
        ("graph.graph", METIS),
        ("graph.graph", METIS_WEIGHTS),
        ("edges.txt", "# a path\n1 2\n2 3\n"),
        ("edges.csv", "1,2,7\n2,3,5\n"),
    ],
)
def test_a_graph_is_a_fabric_with_the_given_capacity(tmp_path: Path, name: str, text: str) -> None:
    fabric = fabric_of(written(tmp_path, name, text), capacity=12.5e9)
    assert fabric.names == ("1", "2", "3")  # as the file numbers them
    assert rates_of(fabric) == both_ways(("1", "2", 12.5e9), ("2", "3", 12.5e9))
    assert fabric.hosts.tolist() == [0, 2]  # they have one neighbour


@pytest.mark.parametrize(
    ("name", "text", "sizes"),
    [
        ("graph.mtx", VALUES, (8.0, 4.0)),
        ("graph.graph", METIS_WEIGHTS, (7.0, 5.0)),
        ("edges.txt", "1 2 7\n2 3 5.0\n", (7.0, 5.0)),
        ("edges.txt", "1 2 {'cost': 1, 'weight': 7.0}\n2 3 {'weight': 5}\n", (7.0, 5.0)),
    ],
)
def test_weights_are_capacities_on_request(
    tmp_path: Path, name: str, text: str, sizes: tuple[float, float]
) -> None:
    fabric = fabric_of(written(tmp_path, name, text), capacity="weight")
    assert rates_of(fabric) == both_ways(("1", "2", sizes[0]), ("2", "3", sizes[1]))


@pytest.mark.parametrize(
    ("name", "text", "options", "bytes_"),
    [
        ("graph.mtx", VALUES, {}, {(0, 1): 8.0, (1, 2): 4.0}),
        ("graph.mtx", PATTERN, {"weight": 8.0}, {(0, 1): 8.0, (1, 0): 8.0, (1, 2): 8.0, (2, 1): 8.0}),
        ("graph.graph", METIS_WEIGHTS, {}, {(0, 1): 3.5, (1, 0): 3.5, (1, 2): 2.5, (2, 1): 2.5}),
        ("graph.graph", METIS, {"weight": 6.0}, {(0, 1): 3.0, (1, 0): 3.0, (1, 2): 3.0, (2, 1): 3.0}),
        ("edges.txt", "0 1 8\n1 2 4\n", {}, {(0, 1): 8.0, (1, 2): 4.0}),
        ("edges.txt", "0 1\n1 3\n", {"weight": 8.0}, {(0, 1): 8.0, (1, 3): 8.0}),
        ("edges.txt", "a b 8\nb c 4\n", {"weight": "weight"}, {(0, 1): 8.0, (1, 2): 4.0}),
        ("edges.txt", "0 1 {'size': 8}\n", {"weight": "size"}, {(0, 1): 8.0}),
    ],
)
def test_a_graph_is_a_profile_with_its_weights_or_the_given_ones(
    tmp_path: Path, name: str, text: str, options: dict[str, Any], bytes_: dict[tuple[int, int], float]
) -> None:
    assert bytes_of(profile_of(written(tmp_path, name, text), **options)) == bytes_


def test_what_networkx_writes_is_read(tmp_path: Path) -> None:
    nx.set_edge_attributes(RING, dict.fromkeys(RING.edges, 3.0), "weight")
    nx.write_edgelist(RING, tmp_path / "ring.edges")
    nx.write_weighted_edgelist(RING, tmp_path / "ring.txt")
    nx.write_graphml(RING, tmp_path / "ring.graphml")
    for name in ("ring.edges", "ring.txt", "ring.graphml"):
        assert set(bytes_of(profile_of(tmp_path / name, weight="weight")).values()) == {3.0}
        assert fabric_of(tmp_path / name, capacity="weight").cable_count == 4
        fabric = fabric_of(tmp_path / name, capacity=5.0)
        assert (set(fabric.capacity.tolist()), fabric.names) == ({5.0}, ("0", "1", "2", "3"))


def test_vertices_that_are_no_ranks_are_reported(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="there is no vertex 0: rank 0 is vertex 1"):
        found = read_file(written(tmp_path, "edges.txt", "1 2 8\n2 4 4\n"))
    assert isinstance(found, Profile)
    assert (found.ranks, bytes_of(found)) == (4, {(0, 1): 8.0, (1, 3): 4.0})
    nx.write_graphml(nx.relabel_nodes(RING, {at: at + 1 for at in RING}), tmp_path / "one.graphml")
    with pytest.warns(UserWarning, match=r"the ranks 0 \.\. 3 are the nodes '1' \.\. '4', in this order"):
        read_file(tmp_path / "one.graphml", weight=8.0)


def test_a_scan_gets_the_capacity_only_where_it_has_none() -> None:
    scan = DATA / "public/1.topo"
    given = rates_of(fabric_of(scan, capacity=3.0))
    assert given == rates_of(fabric_of(scan)) or set(given.values()) > {3.0}


def test_what_is_not_asked_for_is_refused(tmp_path: Path) -> None:
    scan = DATA / "public/1.topo"
    with pytest.raises(InputError, match="the format ibnetdiscover holds a fabric"):
        profile_of(scan, weight=8.0)
    with pytest.raises(InputError, match="holds a profile"):
        fabric_of(DATA / "edges" / "npb_cg_S_16.csv.gz", capacity=1.0)
    with pytest.raises(InputError, match="holds neither a fabric nor a profile"):
        read_file(next(DATA.glob("slurm/squeue*.txt")))
    with pytest.raises(InvalidValue, match="weight: not with capacity"):
        read_file(scan, capacity=1.0, weight=1.0)
    with pytest.raises(InvalidValue, match=r"^capacity: must be finite"):
        read_file(scan, capacity=-1.0)
    with pytest.raises(InputError, match="edges have no 'cost': the file has no weights"):
        read_file(written(tmp_path, "graph.graph", METIS), capacity="cost")
    with pytest.raises(InputError, match="an edge without bytes: in Python"):
        read_file(written(tmp_path, "edges.txt", "0 1\n1 2\n0 2\n"))
    with pytest.raises(UnknownFormat):
        read_file(written(tmp_path, "names.txt", "a b c d\ne f g h\n"))
    with pytest.raises(InputError, match="expected two vertices"):
        read_file(written(tmp_path, "names.txt", "a b c d\ne f g h\n"), weight=1.0)
    with pytest.raises(InvalidValue, match=r"Options\.weight"):
        Options(weight=0.0)
