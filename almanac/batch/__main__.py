"""Run one task of a batch's job array: ``python -m almanac.batch ROWS TASK TASKS``."""

from __future__ import annotations

import sys
from pathlib import Path

from almanac.batch.folder import BatchFolder
from almanac.kernel_cache import choose_kernel_cache


def main(words: list[str]) -> None:
    """Run the rows of a task.

    Parameters
    ----------
    words : list of str
        File with the rows in the folder of the batch, number of the task from 0, number of tasks.
    """
    rows, (task, tasks) = Path(words[0]), map(int, words[1:])
    choose_kernel_cache()
    BatchFolder.open(rows.parent).run(rows.name, task, tasks)


if __name__ == "__main__":
    main(sys.argv[1:])
