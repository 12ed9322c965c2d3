"""Write the records as a page of tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.papers.circuits.record import Cell
from bench.papers.circuits.said import claims


def write_page(records: list[dict[str, Any]], folder: Path) -> Path:
    """Write ``reconfigure.md``."""
    path = folder / "reconfigure.md"
    path.write_text(page(records))
    return path


def page(records: list[dict[str, Any]]) -> str:
    """Return tables of all parts, then the sentences of the paper that they are compared with."""
    lines = [
        "# Topology, partition and routes together: the paper's tables and figures, published and reproduced",
        "",
        "Written by `python -m bench.papers.circuits`. Ajwani, Ali, Hackett, Kirkland and Morrison, 2013. "
        "Columns named *paper* are printed there; an empty cell means that its text gives no value.",
    ]
    for record in records:
        lines += ["", *section(record)]
    keys = dict.fromkeys(key for record in records for key in record["claims"])
    said = claims()
    lines += ["", "## Sentences of the paper", ""]
    lines += dict.fromkeys(f'- {said[key].where}: "{said[key].quote}"' for key in keys)
    return "\n".join(lines) + "\n"


def section(record: dict[str, Any]) -> list[str]:
    """Return the section of one record, as lines."""
    effort, given = record["effort"], record["parameters"]
    lines = [f"## {record['title']}", "", record["setting"], ""]
    lines += [
        f"{record['date']}, {record['machine']['processor']}, {effort['workers']} processes. Parameters that "
        f"the paper does not publish: {', '.join(f'{name} {value}' for name, value in given.items())}.",
        "",
    ]
    if record["panels"]:
        lines += [f"![{record['title']}]({record['name']}.png)", ""]
    for table in record["tables"]:
        lines += [f"**{table['title']}**", "", "| " + " | ".join(table["columns"]) + " |"]
        lines.append("|" + "---|" * len(table["columns"]))
        lines += ["| " + " | ".join(map(cell, row)) + " |" for row in table["rows"]]
        lines += ["", *(f"- {note}" for note in table["notes"])]
        lines += [""] if table["notes"] else []
    return lines[:-1]


def cell(value: Cell) -> str:
    """Format a value for the page."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
