"""Files in groups, and their way into the registry."""

from __future__ import annotations

import gzip
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest

from ingest.grouping import anchored, folder_of, gather
from ingest.options import Options
from ingest.pipeline import ingest, plan
from ingest.reading.source import SourceGroup, read_paths
from ingest.writers.infiniband import fat_tree, forwarding_tables, ibnetdiscover_text, opensm_lfts_text
from registry.errors import ConfigError, InputError, UnknownFormat, UnknownName
from registry.fabrics.fabrics import Snapshot
from registry.ingest_runs.runs import Attempt, RunInfo
from registry.model.intake import Intake, Receipt
from registry.progress import Progress, silent
from tests.support.inputs import DATA, archive, file

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
    assert intake.cluster == "here"
    assert intake.fabric is not None
    assert intake.tables is not None
    assert np.array_equal(intake.tables.switch_guid, np.sort(intake.fabric.guid[intake.fabric.switches]))
    assert intake.files == (str(tree / "scan.txt"), str(tree / "tables.txt"))
    assert intake.source == "ibnetdiscover, opensm-lfts"
    assert intake.warnings == ()


def test_observed_at_is_the_callers_then_the_scans_then_the_youngest_files(tree: Path) -> None:
    summer = datetime(2025, 7, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    for given, hour in ((summer, 10), (datetime(2025, 7, 1), 0)):
        options = Options(cluster="c", observed_at=given)
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
    assert caught.value.kind == "switch"
    assert caught.value.name == "0x0002c90000100100"
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
    assert saved.key != ""
    assert saved.started_at is not None
    assert report.receipt is not None
    assert report.receipt.new_content
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
    (whole,) = (one.intended for one in [plan([DATA / "formats/fabric.ndt"], HERE)])
    assert joined.intended is not None
    assert whole is not None
    assert joined.intended == replace(whole, declared_at=joined.intended.declared_at)
    assert joined.intended.declared_at == datetime.fromtimestamp(second.stat().st_mtime, UTC)
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


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("a.json", "."),
        ("x/a.json", "x"),
        ("r.tar!a.json", "r.tar"),
        ("r.tar!d/a.json", "r.tar!d"),
        ("/a", "/"),
    ],
)
def test_the_folder_of_a_file_may_be_an_archive(path: str, folder: str) -> None:
    assert folder_of(path) == folder


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
    found = gather(read_paths([tmp_path]))
    assert [(format.name, len(group.files)) for format, group in found] == [
        ("dumpi2ascii", 8),
        ("edge-csv", 1),
        ("edge-csv", 1),
        ("dumpi2ascii", 8),
    ]


def test_the_first_file_of_a_folder_spares_the_others_the_other_formats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ingest import catalog

    recognised: list[str] = []
    whole = catalog.recognise

    def counted(group: SourceGroup) -> catalog.Format:
        recognised.append(group.path)
        return whole(group)

    monkeypatch.setattr(catalog, "recognise", counted)
    ranks = archive("profiles/dumpi2ascii_lulesh_8.tar.xz")
    files = [file(one.data, f"d/{number}.txt") for number, one in enumerate(ranks)]
    files.insert(4, file("src,dst,bytes\n0,1,2\n", "d/edges.csv"))
    found = gather(SourceGroup(path=one.path, files=(one,)) for one in files)
    assert [(format.name, len(group.files)) for format, group in found] == [
        ("dumpi2ascii", 8),
        ("edge-csv", 1),
    ]
    assert recognised == ["d/0.txt", "d/edges.csv", "d/4.txt"]


def test_a_folder_of_two_archives_has_an_anchor_for_each() -> None:
    names = [
        "t/a.otf2",
        "t/a.def",
        "t/a/0.evt",
        "t/a/0.def",
        "t/b.otf2",
        "t/b.def",
        "t/b/0.evt",
        "t/c.def",
        "t/x/0.evt",
    ]
    groups = [SourceGroup(path=name, files=(file(b"x", name),)) for name in reversed(names)]
    found = {group.path: [one.path for one in group.files] for group in anchored(groups)}
    assert found["t/a.otf2"][0] == "t/a.otf2"
    assert sorted(found["t/a.otf2"]) == sorted(names[:4])
    assert sorted(found["t/b.otf2"]) == sorted(names[4:7])
    assert {"t/c.def", "t/x/0.evt"} <= found.keys()
