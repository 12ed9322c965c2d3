"""Put recorded figures into README and docs: ``python -m bench.figures`` after a benchmark has recorded.

A figure is between two comments, of which the first names record, expression and format::

    took <!-- = loop.json: max programs/*/orders/*/median_seconds times 1000, .0f -->1812<!-- / --> ms

Without a record it is that of the figure before. An expression is ``[FUNCTION] PATH`` and then any of
``over PATH``, ``less PATH`` and ``times NUMBER``, which apply to each value before the function (min, max,
median, mean, sum or count) does. Steps of a path, separated by ``/``, are a key, an index, ``*`` (all),
``KEY=TEXT`` (what has this value; ``*`` in it stands for any text) or ``#N`` (the Nth number in a text).

A table is between ``<!-- rows of RECORD: CASE; ... -->``, which has the rows of a paper's figure whose case
matches, or ``<!-- table of RECORD: TITLE: COLUMN; ... -->``, and the same second comment. The site is built
with the figures of the records, and a test compares the files with them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from statistics import fmean, median
from typing import Any

from bench.support import paths
from bench.support.papers import markdown, rows_of_figure

END = "<!-- / -->"
_CODE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(rf"<!-- = (?:([\w./-]+\.json): )?([^\n>]*?), (\S*) -->[^\n<]*{END}")
_BLOCK = re.compile(rf"(<!-- (rows|table) of ([\w./-]+\.json): ([^\n>]*) -->\n).*?({END})", re.DOTALL)
_FUNCTIONS: Mapping[str, Callable[[list[Any]], Any]] = {
    "min": min,
    "max": max,
    "median": median,
    "mean": fmean,
    "sum": sum,
    "count": len,
}


@cache
def record(name: str) -> Any:
    """Return a parsed record below ``bench/results``."""
    return json.loads((paths.RESULTS / name).read_text("utf-8"))


def pages() -> list[Path]:
    """Return the files with figures."""
    return [paths.ROOT / "README.md", *sorted((paths.ROOT / "docs").rglob("*.md"))]


def renewed(text: str, records: Callable[[str], Any] = record) -> str:
    """Return the text of a page with the figures and tables of the records."""
    last = ""

    def figure(mark: re.Match[str]) -> str:
        nonlocal last
        last = mark[1] or last
        try:
            shown = format(value(records(last), mark[2]), mark[3])
        except (LookupError, TypeError, ValueError) as error:
            raise ValueError(f"{last}: {mark[2]}, {mark[3]}: {error!r}") from error
        return f"{mark[0].partition('-->')[0]}-->{shown}{END}"

    def table(mark: re.Match[str]) -> str:
        of = _rows if mark[2] == "rows" else _table
        return mark[1] + "\n".join(of(records(mark[3]), mark[4])) + "\n" + mark[5]

    parts = _CODE.split(text)
    return "".join(
        part if n % 2 else _BLOCK.sub(table, _INLINE.sub(figure, part)) for n, part in enumerate(parts)
    )


def without_figures(text: str) -> str:
    """Return the text of a page without its recorded figures and tables."""
    return _BLOCK.sub("", _INLINE.sub("", text))


def value(content: Any, expression: str) -> Any:
    """Return the value of an expression.

    Raises:
        LookupError: If it has no value, or several and no function.
    """
    name, _, rest = expression.partition(" ")
    function, rest = (_FUNCTIONS[name], rest) if name in _FUNCTIONS else (None, expression)
    path, operations = _split(rest)
    values = _values(content, path)
    for operation, operand in operations:
        others = [float(operand)] if operation == "times" else _values(content, operand)
        others *= len(values) if len(others) == 1 else 1
        pairs = list(zip(values, others, strict=True))
        if operation == "over":
            values = [one / other for one, other in pairs]
        else:
            values = [one * other if operation == "times" else one - other for one, other in pairs]
    if function:
        return function(values)
    if len(values) != 1:
        raise LookupError(f"{len(values)} values")
    return values[0]


def _split(expression: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the first path, and the operations with their operands."""
    parts = re.split(r" (over|less|times(?= [-\d.e]+(?: |$))) ", expression)
    return parts[0], list(zip(parts[1::2], parts[2::2], strict=True))


def _values(content: Any, path: str) -> list[Any]:
    nodes = [content]
    for step in re.split(r"(?<! )/(?! )", path):
        nodes = [below for node in nodes for below in _step(node, step)]
    return nodes


def _step(node: Any, step: str) -> Iterator[Any]:
    """Yield what a step of a path leads to from a node."""
    key, equals, text = step.partition("=")
    if isinstance(node, str):
        yield float(re.findall(r"[-+]?\d+(?:\.\d+)?(?:e-?\d+)?", node)[int(step[1:])])
    elif isinstance(node, dict) and step in node:
        yield node[step]
    elif equals:
        several = isinstance(node, list) and isinstance(node[0], dict | list)
        yield from (entry for entry in (node if several else [node]) if fnmatchcase(_text(entry, key), text))
    elif "*" in step:
        entries = node.items() if isinstance(node, dict) else enumerate(node)
        yield from (entry for name, entry in entries if fnmatchcase(str(name), step))
    else:
        yield node[int(step) if isinstance(node, list) else step]


def _text(entry: Any, key: str) -> str:
    return str(entry[int(key) if isinstance(entry, list) else key])


def _rows(content: Any, cases: str) -> list[str]:
    """Return the rows whose case matches; ``{A or B}`` in a case makes a column for each of these names."""
    braces = re.search(r"\{(.*?)\}", cases)
    names = braces[1].split(" or ") if braces else [""]
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for case in cases.split("; "):
        before, _, after = re.sub(r"\{.*?\}", "{}", case).partition("{}")
        for name in names:
            column = name.replace("*", "").strip() or "ours"
            pattern = re.compile("".join(f"({_any(part)})" for part in (before, name, after)))
            for row in content["rows"]:
                if match := pattern.fullmatch(row["what"]):
                    of = (
                        re.sub(rf"\b{re.escape(match[2])}\b", "", row["baseline"])
                        if match[2]
                        else row["baseline"]
                    )
                    label = re.sub(r"[ ,]+:", ":", match[1] + match[3]).strip(" ,:")
                    rows.setdefault((label, re.sub(", +", ", ", of)), {})[column] = row
    if not rows:
        raise LookupError(f"{content['name']} has no row {cases!r}")
    return rows_of_figure([(*key, entries) for key, entries in rows.items()])


def _any(pattern: str) -> str:
    return re.escape(pattern).replace(r"\*", ".*")


def _table(content: Any, selection: str) -> list[str]:
    title, _, columns = selection.partition(": ")
    (table,) = (one for one in content["tables"] if one["title"].startswith(title))
    head: Sequence[str] = table["columns"]
    patterns = columns.split("; ") if columns else ["*"]
    chosen = [n for pattern in patterns for n, name in enumerate(head) if fnmatchcase(name, pattern)]
    return markdown([head[n] for n in chosen], [[row[n] for n in chosen] for row in table["rows"]])


def stale() -> list[Path]:
    """Return the pages that differ from their records."""
    return [page for page in pages() if (text := page.read_text("utf-8")) != renewed(text)]


def main() -> int:
    """Renew all pages; print those that changed."""
    for page in stale():
        page.write_text(renewed(page.read_text("utf-8")), "utf-8")
        print(page.relative_to(paths.ROOT), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
