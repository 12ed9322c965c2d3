"""HPE Slingshot: the fabric manager's ``fabric_template.json`` and STT's ``show fabric``, alone or together.

The template lists switches with their edge and fabric ports, and links between ports. It does not tell
which node hangs on an edge port: each becomes a host that is called after the port
(``x1000c0r1j100p0``). The table has a row an end of a link, with port number, status and speed, but of
the far end only the jack: the ends of links between two jacks are joined in the order of their ports.
Given together, the table adds speeds and status to the template's links. Links that are not up, that
only one of the files knows, or that lead elsewhere in the table are left out and counted.

Names of places are xnames: switch ``x1000c0r1``, jack ``x1000c0r1j101``, port ``x1000c0r1j101p0``. A
port's number is that of its link on the chip, the last number of its ``id`` ``x1000c0r1a0l3``. Source:
HPE's documentation tells the top-level keys, xnames and STT's columns; the keys inside of a port and a
link (``conn_port``, ``conn_a``, ``conn_b``) are from one unconfirmed sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ingest.formats.fabrics.draft import Draft, Place, unknown_rates
from ingest.formats.fabrics.slingshot_files import (
    COLUMNS,
    Ends,
    Row,
    Template,
    cells,
    jack_of,
    read_table,
    read_template,
    switch_of,
)
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import NO_PORT

DEFAULT_RATE = 25e9
"""Bytes/s of a port of a Slingshot switch, 200 Gbit/s."""


def recognise(head: str, path: str) -> bool:
    """Whether it is a JSON object with edge and fabric ports, or a table with STT's columns."""
    if head.lstrip().startswith("{"):
        return '"switches"' in head and ('"fabricPorts"' in head or '"edgePorts"' in head)
    first = next((line for line in head.split("\n") if line.strip().startswith("|")), "")
    return set(COLUMNS) <= set(cells(first))


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """The fabric of one machine.

    Raises
    ------
    InputError
        A template or a table twice, keys or columns that are missing, a port that is no xname or has two
        links, rows whose other end is missing.
    """
    template: Template | None = None
    rows: dict[str, Row] | None = None
    for file in files:
        is_json = file.head(4096).lstrip().startswith("{")
        if (template if is_json else rows) is not None:
            raise InputError("a second file of its kind", path=file.path)
        if is_json:
            template = read_template(file)
        else:
            rows = read_table(file)
    path, said = files[0].path, []
    if template is None:
        template = Template(links=dict(_pairs(rows or {})))
        said.append("the table tells no hosts: give the template in the same call")
    elif rows is not None:
        said += _matched(template, rows)
    draft = Draft()
    told, down = _cables(template, rows or {}, draft)
    rate = options.rate or DEFAULT_RATE
    fabric, odd, assumed = draft.fabric(path, default_rate=rate)
    if down:
        said.append(f"{down} link(s) are not up and left out")
    if template.edge:
        said.append(
            f"{len(template.edge)} edge port(s): the template tells no nodes, each is taken as a host"
        )
    if options.rate is None:
        said += unknown_rates(len(draft.cables) - told, rate, None)
    return Parsed(fabric=fabric, assumed=assumed, warnings=(*said, *odd))


def _matched(template: Template, rows: Mapping[str, Row]) -> list[str]:
    """Take the links out of the template that the table does not know; warnings that count them."""
    lacking = elsewhere = 0
    for a, b in list(template.links):
        if a not in rows or b not in rows:
            lacking += 1
        elif rows[a].jack != jack_of(b) or rows[b].jack != jack_of(a):
            elsewhere += 1
        else:
            continue
        del template.links[(a, b)]
    listed = {end for ends in template.links for end in ends}
    counts = (
        (lacking, "link(s) of the template are not in the table and left out"),
        (elsewhere, "link(s) lead elsewhere in the table and are left out"),
        (len(rows.keys() - listed), "port(s) of the table have no such link in the template"),
    )
    return [f"{count} {what}" for count, what in counts if count]


def _cables(template: Template, rows: Mapping[str, Row], draft: Draft) -> tuple[int, int]:
    """Put all devices and cables into the draft; how many have a rate, and how many links are not up."""
    told = down = 0
    for name, place in template.switches.items():
        draft.switch(name, place)
    for (a, b), place in template.links.items():
        for end in (a, b):
            draft.switch(switch_of(end, place), place)
        ends = [rows[end] for end in (a, b) if end in rows]
        if not all(row.up for row in ends):
            down += 1
            continue
        rate = min((row.rate for row in ends if row.rate), default=None)
        told += rate is not None
        numbers = [rows[end].number if end in rows else template.number.get(end, NO_PORT) for end in (a, b)]
        switches = switch_of(a, place), switch_of(b, place)
        draft.cable(*switches, rate=rate, a_port=numbers[0], b_port=numbers[1])
    for port, place in template.edge.items():
        draft.host(port, place)
        draft.cable(switch_of(port, place), port, a_port=template.number.get(port, NO_PORT))
    return told, down


def _pairs(rows: Mapping[str, Row]) -> Iterator[tuple[Ends, Place]]:
    """The links of the table: the ends between two jacks are joined in the order of their ports."""
    between: dict[tuple[str, str], list[Row]] = {}
    for port in sorted(rows):
        between.setdefault((jack_of(port), rows[port].jack), []).append(rows[port])
    for (here, there), ends in between.items():
        others = between.get((there, here), [])
        if len(others) != len(ends) or here == there:
            raise ends[0].place.error(f"the rows of jack {there} do not lead back: the file seems cut off")
        if here < there:
            for one, two in zip(ends, others, strict=True):
                yield (one.port, two.port), one.place
