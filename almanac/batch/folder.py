"""The folder with the results of a batch, and what tasks of Slurm read from it and write to it.

``ID.json`` is the document of a row that is done. For Slurm, ``ID.case`` is what a task reads (with its
fabric, which several rows may share, in ``NAME.fabric``) and ``ID.outcome`` what it writes; all are pickled,
so that the folder must belong to the user and nobody else may write to it. Tasks need no database.
"""

from __future__ import annotations

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

from registry.errors import AlmanacError, InputError

if TYPE_CHECKING:
    from mapping.cost.report import PlacementReport
    from mapping.placement.case import PlacementCase
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

        Raises
        ------
        InputError
            It belongs to another user, or others may write to it: its files are run as programs.
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

        Parameters
        ----------
        rows : str
            Name of the file with the rows of all tasks.
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
