"""The folder with the results of a batch, and what tasks of Slurm read from it and write to it.

``ID.json`` is the document of a row that is done. For Slurm, ``ID.case`` is what a task reads (with its
fabric, which several rows may share, in ``NAME.fabric``) and ``ID.outcome`` what it writes; all are pickled,
so that the folder must belong to the user and nobody else may write to it. Tasks need no database.

Run one task of a batch's job array: ``python -m almanac.batch ROWS TASK TASKS``.

Rows of a CSV file whose columns are options of ``almanac map``: one placement each.
"""

from __future__ import annotations

import csv
import json
import os
import pickle
import shlex
import stat
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from almanac.kernel_cache import choose_kernel_cache
from almanac.options import read_lines
from almanac.placing_options import DataOptions, placement_options, search_options
from registry.csv_text import without_guard
from registry.errors import AlmanacError, InputError

if TYPE_CHECKING:
    from mapping.cost.report import PlacementReport
    from mapping.placement.case import PlacementCase
    from mapping.questions.place import PlacementRequest
    from registry.model import Fabric


SCRIPT = "job.sh"
MOST_TASKS = 1000
"""Most tasks of a job array: Slurm's MaxArraySize is 1001 by default. With more rows a task runs several."""
JOB = """\
#!/bin/sh
#SBATCH --job-name=almanac-batch
#SBATCH --array=0-{last}
#SBATCH --ntasks=1
#SBATCH --output={log}
exec {program} {list} "$SLURM_ARRAY_TASK_ID" {tasks}
"""


@dataclass(frozen=True, slots=True)
class BatchFolder:
    """Results of a batch, by the ids of rows."""

    path: Path

    @classmethod
    def open(cls, path: Path) -> BatchFolder:
        """Return a folder, which is created if it does not exist.

        Raises:
            InputError: It belongs to another user, or others may write to it: its files are run as programs.
        """
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.stat()
        if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            reason = "belongs to another user, or others may write to it: its files are run as programs"
            raise InputError(f"{reason}; chmod 700, or name another folder with --results", path=path)
        return cls(path.resolve())

    def document(self, row: str) -> dict[str, Any] | None:
        """Return the document of a row that is done, or None."""
        path = self.path / f"{row}.json"
        return dict(json.loads(path.read_text())) if path.exists() else None

    def finish(self, row: str, document: Mapping[str, Any]) -> None:
        """Save the document of a row, and remove what tasks read and wrote."""
        self._write(f"{row}.json", json.dumps(document, indent=1).encode())
        self.forget(row)

    def forget(self, row: str) -> None:
        """Remove what the task of a row read and wrote."""
        for kind in ("case", "outcome"):
            (self.path / f"{row}.{kind}").unlink(missing_ok=True)

    def prepare(self, cases: Mapping[str, PlacementCase]) -> Path:
        """Write what tasks need for the cases of rows, and return the script for ``sbatch``."""
        for row, case in cases.items():
            name = f"{sha256(f'{case.snapshot} {case.tables}'.encode()).hexdigest()[:12]}.fabric"
            if not (self.path / name).exists():
                self._write(name, pickle.dumps(case.fabric))
            alone = replace(case, fabric=cast("Fabric", None))
            self._write(f"{row}.case", pickle.dumps((name, alone)))
        rows = json.dumps(list(cases)).encode()
        # a name of its own: an earlier job may still run
        name, tasks = f"{sha256(rows).hexdigest()[:12]}.rows", min(len(cases), MOST_TASKS)
        self._write(name, rows)
        text = JOB.format(
            last=tasks - 1,
            tasks=tasks,
            log=self.path / "slurm-%a.log",
            program=shlex.join([sys.executable, "-m", "almanac.batch"]),
            list=shlex.quote(str(self.path / name)),
        )
        self._write(SCRIPT, text.encode())
        return self.path / SCRIPT

    def run(self, rows: str, task: int, tasks: int) -> None:
        """Search the placements of the rows of one task, one after another, and write the outcome of each.

        Args:
            rows: Name of the file with the rows of all tasks.
        """
        from mapping.cost.report import report_elsewhere

        for row in json.loads((self.path / rows).read_text())[task::tasks]:
            if (self.path / f"{row}.outcome").exists() or self.document(row) is not None:
                continue  # the job was started again
            name, case = _load(self.path / f"{row}.case")
            outcome: PlacementReport | AlmanacError
            try:
                outcome = report_elsewhere(_load(self.path / name), case)
            except AlmanacError as error:
                outcome = error
            self._write(f"{row}.outcome", pickle.dumps(outcome))

    def outcomes(self) -> Iterator[tuple[str, PlacementReport | AlmanacError]]:
        """Yield the rows that tasks have ended, and the report or the error of each."""
        for path in sorted(self.path.glob("*.outcome")):
            name, case = _load(path.with_suffix(".case"))
            outcome = _load(path)
            if not isinstance(outcome, AlmanacError):
                fabric = _load(self.path / name)
                outcome = replace(outcome, case=replace(case, fabric=fabric))
            yield path.stem, outcome

    def _write(self, name: str, content: bytes) -> None:
        """Write a file that is there whole or not at all."""
        draft = self.path / f".{name}.{os.getpid()}"
        draft.write_bytes(content)
        draft.replace(self.path / name)


def _load(path: Path) -> Any:
    """Return what was pickled in a file of the user's own folder."""
    return pickle.loads(path.read_bytes())  # noqa: S301


def main(words: list[str]) -> None:
    """Run the rows of a task.

    Args:
        words: File with the rows in the folder of the batch, number of the task from 0, number of tasks.
    """
    rows, (task, tasks) = Path(words[0]), map(int, words[1:])
    choose_kernel_cache()
    BatchFolder.open(rows.parent).run(rows.name, task, tasks)


if __name__ == "__main__":
    main(sys.argv[1:])


NOT_IN_FILES = ("here", "fabric")
"""Options of the allocation of a process, and of files instead of the database."""
YES = "yes"
"""Value of a column for an option that takes none."""
SHORT = 12
"""Digits of a row's id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of a file."""

    path: str
    line: int
    """From 1."""
    cells: Mapping[str, str]
    """Value by column, without empty ones."""

    @property
    def id(self) -> str:
        """Digest of the cells: the same for rows that ask for the same."""
        text = json.dumps(dict(sorted(self.cells.items())))
        return sha256(text.encode()).hexdigest()[:SHORT]

    def request(self, context: click.Context) -> PlacementRequest:
        """Return the request of the row.

        Raises:
            InputError: A value that its option does not accept, or options that exclude each other.
        """
        from registry.errors import AlmanacError, InputError, InvalidValue

        try:
            with _row.make_context("row", self._words(), parent=context) as own:
                request: PlacementRequest = _row.invoke(own)
        except click.ClickException as error:
            raise InputError(error.format_message(), path=self.path, line=self.line) from error
        except AlmanacError as error:
            reason = error.named() if isinstance(error, InvalidValue) else str(error)
            raise InputError(reason, path=self.path, line=self.line) from error
        return request

    def _words(self) -> list[str]:
        """Return the row as words of the command line."""
        words: list[str] = []
        options = columns()
        for name, cell in self.cells.items():
            option = options[name]
            if isinstance(option, click.Argument):
                continue
            if isinstance(option, click.Option) and option.is_flag:
                if cell != YES:
                    raise click.UsageError(f"{name}: write {YES}, or nothing")
                words.append(f"--{name}")
            else:
                words += [f"--{name}={part}" for part in (cell.split() if option.multiple else [cell])]
        return [*words, "--", self.cells.get("profile", "")] if "profile" in self.cells else words


@click.command("row", add_help_option=False)
@placement_options
@search_options
def _row(request: PlacementRequest, strategies: tuple[str, ...], **source: Any) -> PlacementRequest:
    """Return the request of options as `map` has them."""
    data = DataOptions(**source)
    data.check()
    return data.complete(request, strategies, ())


def columns() -> dict[str, click.Parameter]:
    """Return the options that a file may have as columns, by name."""
    named = {max(one.opts, key=len).lstrip("-"): one for one in _row.params}
    return {name: one for name, one in named.items() if name not in NOT_IN_FILES}


def read_rows(path: str) -> tuple[Row, ...]:
    """Read the rows of a file; empty lines and lines that begin with ``#`` are left out.

    Raises:
        InputError: No header, an unknown or repeated column, or a row with more cells than columns.
    """
    from registry.errors import InputError, UnknownName

    known, parsed = columns(), []
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip() and not line.startswith("#"):
            parsed.append((number, [without_guard(cell.strip()) for cell in next(csv.reader([line]))]))
    if not parsed:
        raise InputError("is empty: the first line names columns, such as profile,job,seconds", path=path)
    (first, header), *rest = parsed
    for name in header:
        if name not in known:
            raise UnknownName("column", name, known, path=path, line=first)
    if len(set(header)) < len(header):
        raise InputError("a column is repeated", path=path, line=first)
    found = []
    for number, cells in rest:
        if len(cells) > len(header):
            raise InputError(f"has {len(cells)} cells for {len(header)} columns", path=path, line=number)
        given = {name: cell for name, cell in zip(header, cells, strict=False) if cell}
        found.append(Row(path=path, line=number, cells=given))
    return tuple(found)
