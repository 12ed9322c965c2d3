"""A list of neighbours, one line per device.

The file begins with ``# neighbours``; each other line is a device, a colon, and the devices cabled to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError, InvalidValue
from registry.model import Fabric

HEAD = "# neighbours"


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of one file; devices with one cable are hosts."""
    (file,) = files
    pairs = set()
    for place in file.places():
        if place.text.startswith("#") or not place.text.strip():
            continue
        name, colon, others = place.text.partition(":")
        if not colon or not name.strip() or not others.split():
            raise place.error("expected DEVICE: NEIGHBOUR ...")
        pairs |= {tuple(sorted((name.strip(), other))) for other in others.split()}
    names = sorted({name for pair in pairs for name in pair})
    index = {name: number for number, name in enumerate(names)}
    one, two = ([index[pair[end]] for pair in sorted(pairs)] for end in (0, 1))
    cables = [(one + two).count(number) for number in range(len(names))]
    slots = [int(count == 1) for count in cables]
    try:
        fabric = Fabric.from_arcs(names, one + two, two + one, options.rate or 1e9, slots=slots)
    except InvalidValue as error:
        raise InputError(f"no fabric: {error}", path=file.path) from error
    return Parsed(fabric=fabric)


NEIGHBOURS = Format(
    "neighbours",
    kind="fabric",
    about="fabric: a list of neighbours, one line per device",
    recognise=lambda head, path: head.startswith(HEAD + "\n"),
    parse=parse,
)
