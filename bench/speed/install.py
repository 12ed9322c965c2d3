"""Measure what an installation takes on disk, and how long imports take.

Run ``python -m bench.speed.install`` in the project's folder; it needs the package index. Installs with the
Makefile's own commands into new folders. Writes ``bench/results/install.json``.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from statistics import median

from bench.support.machine import save
from bench.support.paths import RESULTS, ROOT

RECORD = RESULTS / "install.json"
PARTS = {"base": ".installed", "dashboard": ".installed-dashboard"}
"""What is measured, and the target of the Makefile that installs it."""
OF_THE_VENV = {"pip", "setuptools", "pkg_resources", "_distutils_hack"}
"""Packages that every new virtual environment has."""
IMPORTS = {
    "import registry": "import registry",
    "import mapping": "import mapping",
    "import registry.registry": "import registry.registry",
    "from mapping import place": "from mapping import place",
    "almanac --help": "import almanac.cli; almanac.cli.main(['--help'])",
}
REPEATS = 5


def main() -> None:
    """Install each part, and record its size on disk and the processor time of imports."""
    sizes, steps = dict[str, int](), {}
    for part, target in PARTS.items():
        with tempfile.TemporaryDirectory() as folder:
            venv = Path(folder) / "venv"
            run(["make", f"VENV={venv}", str(venv / target)])
            python = venv / "bin" / "python"
            steps[part] = {name: processor_seconds(python, code) for name, code in IMPORTS.items()}
            for name, value in disk_use(venv).items():
                sizes[f"{part}_{name}"] = value
    save(RECORD, sizes, steps)


def run(command: list[str]) -> str:
    """Run a command in the project's folder without settings of Python; return its standard error."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    return done.stderr


def disk_use(venv: Path) -> dict[str, int]:
    """Return the space on disk of installed files, of bytecode among them, and of pip with its tools."""
    found = {"disk_bytes": 0, "bytecode_bytes": 0, "empty_venv_bytes": 0}
    for path in venv.rglob("*"):
        size = path.lstat().st_blocks * 512
        if OF_THE_VENV & set(path.relative_to(venv).parts):
            found["empty_venv_bytes"] += size
        else:
            found["disk_bytes"] += size
            found["bytecode_bytes"] += size * (path.suffix == ".pyc")
    return found


def processor_seconds(python: Path, code: str) -> float:
    """Return the processor time of a new process that runs a statement, start included; median of several."""
    at_exit = "atexit.register(lambda: print(time.process_time(), file=sys.stderr))"
    command = [str(python), "-c", f"import atexit, sys, time; {at_exit}; {code}"]
    return round(median(float(run(command)) for _ in range(REPEATS)), 3)


if __name__ == "__main__":
    main()
