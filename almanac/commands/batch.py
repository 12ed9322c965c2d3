"""``almanac batch``: find many placements, here, on a Dask cluster or as a job array of Slurm."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from almanac.batch import BatchFolder, Row, read_rows
from almanac.commands.ingest import EXIT_PARTIAL
from almanac.options import json_option, open_registry, optional_cluster, scheduler_option
from almanac.output.placements import placement_to_json
from almanac.output.printing import kernel_progress_bars, note, print_json, print_table
from registry import units

if TYPE_CHECKING:
    from mapping.cluster import Cluster
    from mapping.cost.report import PlacementReport
    from mapping.placement.case import PlacementCase
    from registry.model import Fabric
    from registry.progress import Progress
    from registry.registry import Registry

COLUMNS = ("line", "profile", "worst link", "in order", "strategy", "placement")
EXIT_FAILED, EXIT_INTERRUPTED = 1, 130


@click.command("batch")
@click.argument("path", type=click.Path(exists=True, dir_okay=False), metavar="FILE")
@click.option("--results", type=click.Path(), help="Folder of the results [default: FILE.results].")
@click.option("--slurm", is_flag=True, help="Write a job array for sbatch that searches the placements.")
@click.option("--collect", is_flag=True, help="Save what tasks of Slurm have found; start nothing.")
@scheduler_option("the searches of all rows")
@json_option
def command(
    path: str, results: str | None, slurm: bool, collect: bool, scheduler: str | None, as_json: bool
) -> None:
    """Find a placement for each row of FILE, as `map` does, and save them.

    FILE is CSV text: its first line names options of `map`, such as profile,job,seconds. Rows that are done
    are skipped, so that the command can be repeated. Exits with 5 if rows failed or are not done, with 1 if
    all of them.
    """
    if sum((slurm, collect, scheduler is not None)) > 1:
        raise click.UsageError("give only one of --slurm, --collect and --scheduler")
    rows = dict[str, Row]()
    for row in read_rows(path):
        rows.setdefault(row.id, row)
    batch = Batch(rows, BatchFolder.open(Path(results or f"{path}.results")))
    with open_registry() as registry, kernel_progress_bars() as progress:
        batch.collect(registry)
        if slurm:
            batch.write_job(registry)
        elif not collect:
            with optional_cluster(scheduler) as cluster:
                batch.run(registry, cluster, progress)
    report = batch.to_json()
    for one in report["failed"]:
        note(f"{path}:{one['line']}: {one['reason']}")
    if as_json:
        print_json(report)
    else:
        _show(report["placements"])
    missing = 0 if slurm else report["waiting"]
    if missing:
        note(f"{missing} rows are not done")
    if batch.is_interrupted:
        click.get_current_context().exit(EXIT_INTERRUPTED)
    if report["failed"] or missing:
        nothing = len(report["failed"]) + missing == len(batch.rows)
        click.get_current_context().exit(EXIT_FAILED if nothing else EXIT_PARTIAL)


@dataclass(slots=True)
class Batch:
    """Rows by their ids, the folder of their results, and the reasons why rows failed."""

    rows: dict[str, Row]
    folder: BatchFolder
    failed: dict[str, str] = field(default_factory=dict)
    is_interrupted: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the documents of the rows that are done, what failed, and how many rows are left."""
        lines = {row: given.line for row, given in self.rows.items()}
        found = ((row, self.folder.document(row)) for row in self.rows if row not in self.failed)
        done = [{"line": lines[row], **document} for row, document in found if document is not None]
        failed = [{"line": lines[row], "reason": reason} for row, reason in self.failed.items()]
        waiting = len(self.rows) - len(done) - len(failed)
        return {"placements": done, "failed": failed, "waiting": waiting}

    def collect(self, registry: Registry) -> None:
        """Save what tasks of Slurm have found."""
        from registry.errors import AlmanacError

        for row, outcome in self.folder.outcomes():
            if isinstance(outcome, AlmanacError):
                self.failed[row] = outcome.reason
                self.folder.forget(row)  # tried again by the next call
            else:
                self._keep(registry, row, outcome)
        self.failed = {row: reason for row, reason in self.failed.items() if row in self.rows}

    def write_job(self, registry: Registry) -> None:
        """Write the job array for the rows that are not done."""
        cases = dict(self._cases(registry))
        if cases:
            script = self.folder.prepare(cases)
            note(
                f"{len(cases)} rows: submit them with `sbatch {shlex.quote(str(script))}`, then use --collect"
            )

    def run(self, registry: Registry, cluster: Cluster | None, progress: Progress) -> None:
        """Search the placements of the rows that are not done, and save each as it is found."""
        try:
            for row, report in self._reports(registry, cluster, progress):
                self._keep(registry, row, report)
                if not report.placement.complete:
                    self.is_interrupted = True
        except KeyboardInterrupt:
            self.is_interrupted = True

    def _cases(self, registry: Registry) -> Iterator[tuple[str, PlacementCase]]:
        """Yield the cases of the rows that are not done; cases on the same fabric share it."""
        from mapping.questions.place import placement_case
        from registry.errors import AlmanacError, DatabaseError

        context = click.get_current_context()
        fabrics: dict[tuple[str, str | None], Fabric] = {}
        for row, given in self.rows.items():
            if self.folder.document(row) is not None or row in self.failed:
                continue
            try:
                case = placement_case(registry, given.request(context))
            except DatabaseError:
                raise
            except AlmanacError as error:
                self.failed[row] = error.reason
                continue
            yield row, replace(case, fabric=fabrics.setdefault((case.snapshot, case.tables), case.fabric))

    def _reports(
        self, registry: Registry, cluster: Cluster | None, progress: Progress
    ) -> Iterator[tuple[str, PlacementReport]]:
        """Yield the reports of rows as they are found; an error of a row costs only this row."""
        from mapping.cost.report import report_elsewhere, report_placement
        from registry.errors import AlmanacError, ClusterError

        if cluster is None:
            for row, case in self._cases(registry):
                try:
                    report = report_placement(case, progress)
                except AlmanacError as error:
                    self.failed[row] = error.reason
                    continue
                yield row, report
                if not report.placement.complete:
                    return
            return
        cases = dict(self._cases(registry))
        for case in cases.values():
            cluster.share(case.fabric)
        ids = list(cases)
        tasks = [
            (case.fabric, replace(case, options=case.options.for_task(cluster, len(ids))))
            for case in cases.values()
        ]
        for number, result in cluster.run(report_elsewhere, tasks, "placements", progress):
            try:
                yield ids[number], replace(result.result(), case=cases[ids[number]])
            except ClusterError:
                raise
            except AlmanacError as error:
                self.failed[ids[number]] = error.reason

    def _keep(self, registry: Registry, row: str, report: PlacementReport) -> None:
        """Save the placement of a row and its document; not an incomplete one, which is searched again."""
        from mapping.questions.place import keep_report

        kept = keep_report(registry, report)
        if kept.unsaved:
            self.failed[row] = f"not saved: {kept.unsaved}"
        elif kept.placement.complete:
            self.folder.finish(row, placement_to_json(kept))


def _show(documents: list[dict[str, Any]]) -> None:
    """Print a row per placement."""
    rows = [
        [
            one["line"],
            one["profile"],
            units.text(one["placed"]["congestion_seconds"], units.SECONDS),
            units.text(one["in_order"]["congestion_seconds"], units.SECONDS),
            one["strategy"],
            one["placement"],
        ]
        for one in documents
    ]
    if rows:
        print_table("placements", COLUMNS, rows, least=("line", "worst link", "placement"))
