"""Write records of figures as a page of tables, and as plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.support.figures import RESULTS, Said, load, said
from bench.support.plots import Curve, Panel, draw


def write_page(folder: Path = RESULTS) -> Path:
    """Write ``papers.md`` from all records of a folder."""
    path = folder / "papers.md"
    path.write_text(page(load(folder)))
    return path


HEAD = (
    "# Figures of the papers: published and reproduced",
    "",
    "Written by `python -m bench.papers.mapping`. A change is our value over the baseline, minus one; "
    "seconds are processor time of this machine. A value of the paper is empty if its text does not give it.",
)


def page(
    records: list[dict[str, Any]], known: Mapping[str, Said] | None = None, head: Sequence[str] = HEAD
) -> str:
    """Return tables of all figures, then the papers' sentences with the compared values.

    Parameters
    ----------
    known : mapping of str to Said, optional
        The papers' claims (default: all of ``values.toml`` of `bench.papers.mapping`).
    head : sequence of str
        First lines of the page.
    """
    known, lines = said() if known is None else known, list(head)
    for record in records:
        lines += ["", *_section(record, known)]
    keys = {row["paper"] for record in records for row in record["rows"] if row["paper"]}
    sentences = dict.fromkeys(f'- {one.where}: "{one.quote}"' for key, one in known.items() if key in keys)
    lines += ["", "## Sentences of the papers", "", *sentences]
    return "\n".join(lines) + "\n"


def section(folder: Path, name: str, values: Mapping[str, Said] | None = None) -> list[str]:
    """Return the section of one record on the page, as lines; `values` as in `page`."""
    known = said() if values is None else values
    return [line for one in load(folder) if one["name"] == name for line in _section(one, known)]


def write_plots(folder: Path = RESULTS) -> list[Path]:
    """Draw a PNG for each record that has panels."""
    written = []
    for record in load(folder):
        panels = [
            Panel(**{**panel, "curves": tuple(Curve(**curve) for curve in panel["curves"])})
            for panel in record["panels"]
        ]
        if panels:
            written.append(folder / f"{record['name']}.png")
            draw(written[-1], panels)
    return written


def _section(record: dict[str, Any], values: Mapping[str, Said]) -> list[str]:
    """Return a figure's table; reasons are notes below it."""
    notes: dict[str, int] = {}
    lines = [f"## {record['title']}", "", record["setting"], ""]
    lines += [f"{record['date']}, {record['machine']['processor']}.", ""]
    if record["panels"] or record.get("picture"):
        lines += [f"![{record['title']}]({record['name']}.png)", ""]
    lines += ["| case | paper | ours | baseline | reason of the difference |", "|---|---|---|---|---|"]
    for row in record["rows"]:
        known = values.get(row["paper"])
        theirs = "" if known is None else f"{_cell(known.value)} ({known.where})"
        note = f"note {notes.setdefault(row['why'], len(notes) + 1)}" if row["why"] else ""
        lines.append(f"| {row['what']} | {theirs} | {_cell(row['ours'])} | {row['baseline']} | {note} |")
    if notes:
        lines += ["", *(f"{number}. {why}." for why, number in notes.items())]
    for table in record.get("tables", ()):
        lines += ["", *_table(table)]
    return lines


def _table(table: dict[str, Any]) -> list[str]:
    head = table["head"]
    lines = [f"### {table['title']}", "", _line(head), "|---" * len(head) + "|"]
    for cells in table["cells"]:
        shown = [
            f"{cell:+.0f}" if name.endswith("(%)") and not isinstance(cell, str) else _cell(cell)
            for name, cell in zip(head, cells, strict=True)
        ]
        lines.append(_line(shown))
    return lines


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"
