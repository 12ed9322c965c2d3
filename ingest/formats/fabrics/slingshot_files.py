"""The two files of a Slingshot fabric, each as it stands; see `ingest.formats.fabrics.slingshot`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ingest.formats.fabrics.draft import Place
from ingest.reading.json_text import Spot, load_json
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import NO_PORT

COLUMNS = ("xname", "type", "dst", "port_num", "status", "speed")
"""Columns of the table that are needed."""

_SWITCH = re.compile(r"x\d{1,5}c\d{1,3}r\d{1,3}", re.ASCII)
_PORT = re.compile(r"((x\d{1,5}c\d{1,3}r\d{1,3})j\d{1,4})p\d{1,2}", re.ASCII)
_JACK = re.compile(r"(x\d{1,5}c\d{1,3}r\d{1,3}j\d{1,4})(p\d{1,2})?", re.ASCII)
_CHIP = re.compile(r".*a\d{1,2}l(\d{1,4})", re.ASCII)
_SPEED = re.compile(r"[A-Z]+_(\d{1,5})G", re.ASCII)
_UP = "true"

Ends = tuple[str, str]
"""The two ports of a link, in alphabetical order."""


class Row(NamedTuple):
    """An end of a link in the table.

    Attributes
    ----------
    port : str
        Its xname.
    jack : str
        At the other end.
    number : int
        Of the port.
    up : bool
    rate : float or None
        Bytes/s in each direction.
    place : Place
    """

    port: str
    jack: str
    number: int
    up: bool
    rate: float | None
    place: Place


@dataclass(slots=True, eq=False)
class Template:
    """What the template tells.

    Attributes
    ----------
    switches, edge : dict of str to Place
        Switches, and ports that nodes hang on.
    number : dict of str to int
        Number of each port; `NO_PORT` where its id has none.
    links : dict of Ends to Place
    """

    switches: dict[str, Place] = field(default_factory=dict)
    edge: dict[str, Place] = field(default_factory=dict)
    number: dict[str, int] = field(default_factory=dict)
    links: dict[Ends, Place] = field(default_factory=dict)


def read_template(file: SourceFile) -> Template:
    """Read ``fabric_template.json``.

    Raises
    ------
    InputError
        A key that is missing, a name that is no xname or stands twice, a link to a port that no switch has.
    """
    root = Spot(file.path)
    content = root.object(load_json(file))
    found = Template()
    spot = root.at("switches")
    for index, value in enumerate(spot.list(content.get("switches"))):
        here = spot.at(index)
        switch = here.object(value)
        name = here.at("id").text(switch.get("id"))
        if name in found.switches or _SWITCH.fullmatch(name) is None:
            raise here.error("is no xname of a switch, or stands here a second time", name)
        found.switches[name] = Place(file.path, text=here.way)
        for kind in ("edgePorts", "fabricPorts"):
            for at, port in enumerate(here.at(kind).list(switch.get(kind, []))):
                _template_port(port, here.at(kind).at(at), kind == "edgePorts", name, found)
    spot = root.at("links")
    for index, value in enumerate(spot.list(content.get("links"))):
        here = spot.at(index)
        link = here.object(value)
        ends = sorted(here.at(key).text(link.get(key)) for key in ("conn_a", "conn_b"))
        if len(ends) != 2 or any(end not in found.number for end in ends):
            raise here.error("leads to a port that no switch has", " ".join(ends))
        found.links[(ends[0], ends[1])] = Place(file.path, text=here.way)
    _once(found.links, root)
    return found


def read_table(file: SourceFile) -> dict[str, Row]:
    """The rows of the table by port.

    Raises
    ------
    InputError
        No columns, a row cut off or of another type, a port twice.
    """
    names: list[str] = []
    rows: dict[str, Row] = {}
    for number, line in enumerate(file.lines(), start=1):
        place, found = Place(file.path, number, line), cells(line)
        if not line.strip().startswith("|") or set(line) <= set("|-+ :="):
            continue
        if not names:
            names = found
            if not set(COLUMNS) <= set(names):
                raise place.error(f"the columns {', '.join(COLUMNS)} are needed")
            continue
        if len(found) != len(names):
            raise place.error(f"{len(found)} cells under {len(names)} columns: the file seems cut off")
        row = dict(zip(names, found, strict=True))
        if row["type"] != "fabric":
            raise place.error("a row of another type than fabric: only links between switches are read")
        if row["xname"] in rows:
            raise place.error("the port has a row already")
        rows[row["xname"]] = _row(row, place)
    if not rows:
        raise InputError("the table has no rows", path=file.path)
    return rows


def jack_of(port: str) -> str:
    """The jack of a port: its xname without the last part."""
    return port.rsplit("p", 1)[0]


def switch_of(port: str, place: Place) -> str:
    """The switch of a port.

    Raises
    ------
    InputError
        It is no port.
    """
    match = _PORT.fullmatch(port)
    if match is None:
        raise place.error(f"{port!r} is no port")
    return match[2]


def cells(line: str) -> list[str]:
    """The cells of a row between bars."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _template_port(value: Any, spot: Spot, edge: bool, switch: str, found: Template) -> None:
    port = spot.object(value)
    name = spot.at("conn_port").text(port.get("conn_port"))
    match = _PORT.fullmatch(name)
    if match is None or match[2] != switch or name in found.number:
        raise spot.error(f"is no port of {switch}, or stands here a second time", name)
    chip = _CHIP.fullmatch(str(port.get("id", "")))
    found.number[name] = int(chip[1]) if chip else NO_PORT
    if edge:
        found.edge[name] = Place(spot.path, text=spot.way)


def _once(links: Iterable[Ends], root: Spot) -> None:
    """Each port has one link."""
    seen: set[str] = set()
    for ends in links:
        for end in ends:
            if end in seen or ends[0] == ends[1]:
                raise root.error("a port has two links", end)
            seen.add(end)


def _row(row: Mapping[str, str], place: Place) -> Row:
    if not _PORT.fullmatch(row["xname"]) or not (jack := _JACK.fullmatch(row["dst"])):
        raise place.error("xname is no port, or dst no jack")
    if not re.fullmatch(r"\d{1,4}", row["port_num"], re.ASCII):
        raise place.error("port_num is no whole number")
    speed = _SPEED.fullmatch(row["speed"])
    return Row(
        port=row["xname"],
        jack=jack[1],
        number=int(row["port_num"]),
        up=row["status"].lower() == _UP,
        rate=int(speed[1]) * 1e9 / 8 if speed and int(speed[1]) else None,
        place=place,
    )
