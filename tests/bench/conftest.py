"""What all tests of benchmarks need."""

from __future__ import annotations

import platform

platform.platform()  # starts a process once; each record of a benchmark has the answer
