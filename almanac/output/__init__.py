"""Printing: tables, JSON documents, notes and progress bars.

Input: results of commands.
Output: text on standard output, on standard error or in files.
"""

from almanac.output.printing import (
    REDRAW_SECONDS as REDRAW_SECONDS,
)
from almanac.output.printing import (
    csv_text as csv_text,
)
from almanac.output.printing import (
    finite as finite,
)
from almanac.output.printing import (
    note as note,
)
from almanac.output.printing import (
    print_json as print_json,
)
from almanac.output.printing import (
    print_table as print_table,
)
from almanac.output.printing import (
    progress_bars as progress_bars,
)
from almanac.output.printing import (
    write_bytes as write_bytes,
)
from almanac.output.printing import (
    write_text as write_text,
)
