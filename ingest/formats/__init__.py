"""Parsers of files by kind of data, listed in `ingest.catalog`.

Input: the text of one or several files.
Output: `Parsed`: a fabric, routes, counters, jobs, profiles, placements or host layouts.
"""

import re

DIAGNOSTIC = re.compile(r"(?:\S+: )?ib(?:warn|panic|error)s?: .*|(?:src/)?\w+\.c:\d+; .*")
"""Line that InfiniBand tools print on standard error, which ``2>&1`` mixes with their output."""
DIAGNOSED = "the tool's own diagnostics: parts of the fabric may be missing"
"""End of the warning that counts such lines."""
