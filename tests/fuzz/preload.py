"""Imports every parser and the samples, once for all workers."""

from __future__ import annotations

from ingest.catalog import FORMATS
from tests.fuzz.samples import everything

for _format in FORMATS:
    _format.parser()
everything()
