"""Imports every parser and the samples, once for all workers."""

from __future__ import annotations

import tests.fuzz.worker  # noqa: F401
from ingest.catalog import FORMATS
from tests.fuzz.cases import scan
from tests.fuzz.samples import everything

list(FORMATS)
everything()
scan()
