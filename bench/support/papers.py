"""Reproductions of papers: their records, the pages of their tables, and the command that runs parts."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from bench.support import paths
from bench.support.machine import about
from bench.support.plots import Curve, Panel, draw
from registry.installation import install_command

VALUES = sorted((paths.ROOT / "bench").rglob("values.toml"))
UNIT = re.compile(
    r"(hops|s|seconds.*|iterations|positions|entries|millions.*|[\d.]* ?[GM]B.*|simulated time)?"
)
"""What a row's `baseline` is if its value is no change over one."""
Cell = str | float | int | bool | None
"""Value of a cell; None if the paper does not give it or it was not measured."""


@dataclass(frozen=True, slots=True)
class Row:
    """Our value beside the paper's."""

    what: str
    ours: float | str
    baseline: str = ""
    paper: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Values of all cases, besides the rows; columns named ``... (%)`` are printed as changes in percent."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, title: str, rows: Sequence[Mapping[str, Cell]], *notes: str) -> Table:
        """Return the table of rows that name their columns."""
        cells = tuple(tuple(row.values()) for row in rows)
        return cls(title=title, columns=tuple(rows[0]), rows=cells, notes=notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A reproduced figure, table or section."""

    title: str
    setting: str
    rows: tuple[Row, ...] = ()
    tables: tuple[Table, ...] = ()
    panels: tuple[Panel, ...] = ()
    picture: bytes = b""
    claims: tuple[str, ...] = ()
    data: dict[str, Any] = field(default_factory=dict)


class Claim(NamedTuple):
    """A value of a paper, its section, figure or table, the sentence of the text, and why ours differ."""

    value: float | str
    where: str
    quote: str
    why: str = ""


@cache
def claims(*files: Path) -> dict[str, Claim]:
    """Return the claims of all papers, or of some files, by key."""
    entries = [entry for path in files or VALUES for entry in tomllib.loads(path.read_text()).items()]
    return {key: Claim(**entry) for key, entry in entries}


class PartSkipped(Exception):
    """Raised when a part cannot run here; the message says why."""


def save(name: str, figure: Figure, effort: Any, folder: Path, **more: Any) -> Path:
    """Write a record, and its picture; a key that no paper has is a KeyError."""
    for key in (*figure.claims, *(row.paper for row in figure.rows if row.paper)):
        if key not in claims():
            raise KeyError(f"{name}: {key!r} is not in values.toml")
    folder.mkdir(parents=True, exist_ok=True)
    content = asdict(figure) | {"picture": bool(figure.picture)}
    for row in content["rows"]:
        row["why"] = row["why"] or (claims()[row["paper"]].why if row["paper"] else "")
    begin = {"name": name, **about(), "effort": _fields(effort)}
    path = folder / f"{name}.json"
    more = {key: _fields(value) for key, value in more.items()}
    path.write_text(json.dumps({**begin, **more, **content}, indent=1) + "\n")
    if figure.picture:
        path.with_suffix(".png").write_bytes(figure.picture)
    return path


def _fields(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def load(folder: Path, names: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Return the existing records of these names in their order, or all by name."""
    files = [folder / f"{name}.json" for name in names] or sorted(folder.glob("*.json"))
    return [json.loads(path.read_text()) for path in files if path.exists()]


def page(records: Sequence[dict[str, Any]], head: str) -> str:
    """Return the tables of all records, then the papers' sentences with the compared values."""
    lines = [head]
    for record in records:
        lines += ["", *section(record)]
    keys = {key for record in records for key in _keys(record)}
    quotes = dict.fromkeys(
        f'- {claim.where}: "{claim.quote}"' for key, claim in claims().items() if key in keys
    )
    return "\n".join([*lines, "", "## Sentences of the papers", "", *quotes]) + "\n"


def _keys(record: dict[str, Any]) -> list[str]:
    return [*record.get("claims", ()), *(row["paper"] for row in record.get("rows", ()))]


def section(record: dict[str, Any]) -> list[str]:
    """Return the tables of a record as lines; reasons are notes below."""
    processor = record["machine"]["processor"]
    lines = [f"## {record['title']}", "", record["setting"], "", f"{record['date']}, {processor}.", ""]
    if parameters := record.get("parameters"):
        values = ", ".join(f"{name} {value}" for name, value in parameters.items())
        lines[-1:] = [f"Parameters that the paper does not publish: {values}.", ""]
    if record["panels"] or record.get("picture"):
        lines += [f"![{record['title']}]({record['name']}.png)", ""]
    if record.get("rows"):
        lines += [
            *rows_of_figure([(row["what"], row["baseline"], {"ours": row}) for row in record["rows"]]),
            "",
        ]
    for table in record.get("tables", ()):
        lines += [f"### {table['title']}", "", *markdown(table["columns"], table["rows"]), ""]
        lines += [*(f"- {note}" for note in table["notes"]), ""] if table["notes"] else []
    return lines[:-1]


def rows_of_figure(rows: Sequence[tuple[str, str, Mapping[str, Mapping[str, Any]]]]) -> list[str]:
    """Return rows of a record as a table, with reasons as notes below it."""
    notes: dict[str, int] = {}
    lines, ours = [], list(dict.fromkeys(name for *_, entries in rows for name in entries))
    for case, baseline, entries in rows:
        change = not UNIT.fullmatch(baseline)
        why = next((entry["why"] for entry in entries.values() if entry["why"]), "")
        note = f"note {notes.setdefault(why, len(notes) + 1)}" if why else ""
        values = [_shown(entries[name]["ours"], change) if name in entries else None for name in ours]
        lines.append((case, _theirs(entries, change), *values, baseline, note))
    columns = ["case", "paper", *ours, "baseline", "reason of the difference"]
    table = markdown(columns, lines) if notes else markdown(columns[:-1], [line[:-1] for line in lines])
    return [*table, *([""] if notes else []), *(f"{number}. {why}." for why, number in notes.items())]


def _theirs(entries: Mapping[str, Mapping[str, Any]], change: bool) -> str:
    keys = {name: entry["paper"] for name, entry in entries.items()}
    values = {name: _shown(claims()[key].value, change) for name, key in keys.items() if key}
    places = dict.fromkeys(claims()[key].where for key in keys.values() if key)
    same = len(set(keys.values())) == 1
    shown = dict.fromkeys(str(value) if same else f"{name} {value}" for name, value in values.items())
    return f"{'; '.join(shown)} ({'; '.join(places)})" if values else ""


def _shown(value: float | str, change: bool) -> Cell:
    return f"{value:+.1%}" if change and isinstance(value, float) else value


def markdown(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> list[str]:
    """Return a table as lines."""
    body = [[cell(value, name) for name, value in zip(columns, row, strict=True)] for row in rows]
    return [
        f"| {' | '.join(columns)} |",
        "|---" * len(columns) + "|",
        *(f"| {' | '.join(row)} |" for row in body),
    ]


def cell(value: Cell, column: str = "") -> str:
    """Format a value of a table."""
    if value is None or isinstance(value, str | bool):
        return {None: "", True: "yes", False: "no"}.get(value, value)  # type: ignore[arg-type,return-value]
    if column.endswith("(%)"):
        return f"{value:+.0f}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def write_plots(folder: Path) -> Iterator[Path]:
    """Draw a PNG for each record that has panels."""
    for record in load(folder):
        curves = [tuple(Curve(**curve) for curve in panel["curves"]) for panel in record["panels"]]
        panels = [Panel(**panel | {"curves": of}) for panel, of in zip(record["panels"], curves, strict=True)]
        if panels:
            draw(folder / f"{record['name']}.png", panels)
            yield folder / f"{record['name']}.png"


class Reproduction(NamedTuple):
    """Parts that a command runs, and where their records go."""

    names: tuple[str, ...]
    results: Path
    page: str
    head: str
    run: Callable[[str, argparse.Namespace, Path], Iterator[tuple[Figure, dict[str, Any]]]]

    def main(self, parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> None:
        """Run the chosen parts, record each and print its tables; then write the page and the plots."""
        parser.add_argument(
            "names", nargs="*", metavar="NAME", help=f"of {', '.join(self.names)} [default: all]"
        )
        parser.add_argument("--small", action="store_true", help="few and small cases, to try it out")
        parser.add_argument("--page-only", action="store_true", help="only write page and plots again")
        parser.add_argument("--record", action="store_true", help="write the records of the repository")
        parser.add_argument("--output", type=Path, help="folder of records [default: one below build/bench]")
        options = parser.parse_args(arguments)
        for name in options.names:
            if name not in self.names:
                parser.error(f"there is no {name}; there are {', '.join(self.names)}")
        folder = self._folder(parser, options)
        for name in () if options.page_only else self.names:
            if name in (options.names or self.names):
                self._run(name, options, folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / self.page).write_text(page(load(folder, self.names), self.head))
        print(folder / self.page, *(write_plots(folder) if has_plots() else ()), file=sys.stderr)

    def _run(self, name: str, options: argparse.Namespace, folder: Path) -> None:
        begin = time.perf_counter()
        try:
            for figure, about in self.run(name, options, folder):
                save(name, figure, folder=folder, **about)
        except PartSkipped as reason:
            print(f"{name}: left out, {reason}", file=sys.stderr, flush=True)
            return
        print(f"{name}: {time.perf_counter() - begin:.0f} s", file=sys.stderr, flush=True)
        print("\n".join(section(load(folder, (name,))[0])), flush=True)

    def _folder(self, parser: argparse.ArgumentParser, options: argparse.Namespace) -> Path:
        """Return the folder of the records; the repository's are only written with their plots."""
        if options.record and (options.output or options.small):
            parser.error("--record: not with --output or --small")
        if options.page_only and not (options.record or options.output):
            parser.error("--page-only: needs --record or --output")
        if not has_plots():
            needed = f"plots need matplotlib: {install_command('bench')}"
            if options.record:
                parser.error(f"--record: {needed}")
            print(needed, file=sys.stderr, flush=True)
        own: Path = options.output or build() / (self.results.name + ("-small" if options.small else ""))
        return self.results if options.record else own


def build() -> Path:
    """Return the folder of records that are not kept in the repository."""
    return paths.ROOT / "build" / "bench"


def has_plots() -> bool:
    """Return True if plots can be drawn."""
    return find_spec("matplotlib") is not None


def progress(text: str) -> None:
    """Print a line of progress."""
    print(f"  {text}", file=sys.stderr, flush=True)
