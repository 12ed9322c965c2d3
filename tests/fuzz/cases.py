"""A case: the files and options that a parser is given, and what it must keep to."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import traceback
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from ingest import catalog
from ingest.merging.merge import Source, merge
from ingest.options import Options
from ingest.reading.source import SourceGroup
from registry.errors import ConfigError, InputError, MissingExtra, UnknownName
from tests.fuzz import mutations
from tests.fuzz.samples import Item, Sample, as_files, everything, of_format
from tests.support.inputs import file, read

LONGEST_MESSAGE = 4_000
"""Characters of an error: a message quotes a file, it does not repeat it."""

HOSTS: dict[str, Any] = {"hosts": ("node1", "node2", "node3"), "slots": (2,)}
"""Options of placements that name no hosts."""
NAMES = ("x", "", "-", "../up", "/abs", "a.7.prof", "a!b", "0")
"""Other names of files."""
CHOICES: tuple[dict[str, Any], ...] = (
    {}, {}, {}, {"rate": 12.5e9}, HOSTS, {"allow_missing_ranks": True}, {"transposed": True, "divide": 2},
    {"parts": 3}, {"collectives": "tree"}, {"collectives": "hierarchical", "domain": 2},
    {"collectives": "recursive-doubling", "allow_missing_ranks": True}, {"kinds": ("S", "R")},
)  # fmt: skip
"""Options that a case may have; parsers that a choice does not concern ignore it."""


class Case(NamedTuple):
    """What a parser is given; the options are fields of `Options`."""

    format: str
    files: Sample
    options: dict[str, Any]


class Broken(Exception):
    """A parser did what it must not; the message says what."""


def beginnings(format: str) -> list[Case]:
    """The samples of a format as they are; placements with and without hosts."""
    choices = [{}, HOSTS] if catalog.FORMATS.find(format).kind == "placement" else [{}]
    return [Case(format, sample, choice) for sample in of_format(format) for choice in choices]


def check(case: Case, *, everybody: bool = False) -> bool:
    """Recognise, read and merge the files of a case; return whether they could be read.

    With `everybody` all formats are asked whether the files are theirs, not only that of the case. `Broken`
    is raised if anything else than an `InputError` came out, or something that no database can hold.
    """
    files = as_files(case.files)
    format = catalog.FORMATS.find(case.format)
    for asked in catalog.FORMATS if everybody else (format,):
        for one in files:
            if asked.recognise(one.head(), one.path) not in (True, False):
                raise Broken(f"{asked.name} neither recognises a file nor not")
    options = Options(cluster="fuzz", **case.options)
    try:
        parsed = format.parse(files, options)
    except InputError as error:
        _check_error(error)
        return False
    except MissingExtra:
        return False
    _check_storable(parsed, case.format)
    source = Source(
        group=SourceGroup(path=files[0].path, files=tuple(files)), format=format.name, parsed=parsed
    )
    together = [[source]] if parsed.fabric is None else [[source], [scan(), source], [source, scan()]]
    for sources in together:
        try:
            merge(sources, options)
        except (InputError, UnknownName, ConfigError) as error:
            _check_error(error)
    return True


@cache
def scan() -> Source:
    """A whole scan of the machine that many samples are of: what a damaged one is merged with."""
    path = "infiniband/fattree2-64-ftree/ibnetdiscover.txt"
    scanned = file(read(path), path)
    parsed = catalog.FORMATS.find("ibnetdiscover").parse([scanned], Options())
    return Source(group=SourceGroup(path=path, files=(scanned,)), format="scan", parsed=parsed)


def _check_error(error: InputError | UnknownName | ConfigError) -> None:
    text = str(error)
    if not error.reason or "\n" in text:
        raise Broken(f"an error that is no line of text: {text[:300]!r}")
    if len(text) > LONGEST_MESSAGE:
        raise Broken(f"an error of {len(text)} characters: {text[:100]!r}...")
    text.encode()


def _check_storable(value: Any, where: str) -> None:
    """Raise where a text is not UTF-8 or a number not of 64 bits: no database could hold it."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise Broken(f"{where} holds text that is not UTF-8: {value[:100]!r}") from error
    elif isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise Broken(f"{where} holds a number of more than 64 bits")
    elif isinstance(value, np.ndarray):
        if value.dtype == object:
            raise Broken(f"{where} is an array of objects")
        if value.flags.writeable:
            raise Broken(f"{where} can be written")
    elif isinstance(value, (tuple, list)):
        for item in value:
            _check_storable(item, where)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            _check_storable(getattr(value, field.name), f"{where}.{field.name}")


def damage(random: Random, case: Case, samples: Sequence[Sample]) -> Case:
    """A case with one file, or the set of files, damaged once or several times."""
    files, grouped = list(case.files), catalog.FORMATS.find(case.format).grouped
    for _ in range(random.choice((1, 1, 1, 2, 3, 6))):
        if random.random() < (0.25 if len(files) > 1 else 0.03):
            files = _other_files(random, files, samples, grouped)
            continue
        at = random.randrange(len(files))
        change = random.choice(mutations.for_content(files[at].data))
        files[at] = Item(files[at].path, change(random, files[at].data)[: 1 << 20])
    options = random.choice(CHOICES) if random.random() < 0.3 else case.options
    return Case(case.format, tuple(files), options)


def _other_files(random: Random, files: list[Item], samples: Sequence[Sample], grouped: bool) -> list[Item]:
    """Files lost, given twice, renamed, exchanged, emptied, or joined by one of another sample."""
    at, other = random.randrange(len(files)), random.randrange(len(files))
    how = random.randrange(7)
    changed = list(files)
    if how == 0 and len(files) > 1:
        del changed[at]
    elif how == 1:
        changed.insert(other, files[at])
    elif how == 2:
        names = (*NAMES, files[other].path, f"{files[at].path}.1")
        changed[at] = Item(random.choice(names), files[at].data)
    elif how == 3:
        changed[at] = Item(files[at].path, files[other].data)
        changed[other] = Item(files[other].path, files[at].data)
    elif how == 4:
        changed[at] = Item(files[at].path, random.choice((b"", b"\n", b"\0")))
    elif how == 5:
        changed.append(random.choice(random.choice(samples)))
    else:
        changed.append(random.choice(everything()))
    return changed if grouped else changed[:1]


def extreme(random: Random, format: str, samples: Sequence[Sample]) -> Case:
    """What is too costly to be drawn often: ten million bytes in a line, behind a beginning or alone."""
    sample = random.choice(samples)
    at = random.randrange(len(sample))
    path, data = sample[at]
    if random.random() < 0.5:
        change = random.choice((mutations.huge, mutations.huge, mutations.deep, mutations.entities))
        data = change(random, data)
    else:
        piece = random.choice(mutations.RUNS)
        data = data[: random.choice((0, 0, 10, 64, 300))] + piece * (mutations.HUGE // len(piece))
    alone = random.random() < 0.2
    files = (Item(path, data),) if alone else (*sample[:at], Item(path, data), *sample[at + 1 :])
    return Case(format, files, random.choice(CHOICES))


def name_of(case: Case) -> str:
    """A name for the folder of a case: its format, and a hash of all that it is."""
    return f"{case.format}-{hashlib.sha256(repr(case).encode()).hexdigest()[:12]}"


def keep(case: Case, place: Path, why: str) -> None:
    """Write a case to a folder, over what it held, with what is wrong with the case."""
    place.mkdir(parents=True, exist_ok=True)
    for index, item in enumerate(case.files):
        (place / f"file{index}").write_bytes(item.data)
    paths = [item.path for item in case.files]
    about = {"format": case.format, "paths": paths, "options": case.options, "why": why}
    (place / "case.json").write_text(json.dumps(about, indent=1))


def load(place: Path) -> Case:
    """The case that a folder holds."""
    about = json.loads((place / "case.json").read_text())
    files = [Item(path, (place / f"file{at}").read_bytes()) for at, path in enumerate(about["paths"])]
    given = about["options"].items()
    options = {key: tuple(value) if isinstance(value, list) else value for key, value in given}
    return Case(about["format"], tuple(files), options)


def where(error: BaseException) -> str:
    """The place in the program that a failure comes from: what tells one failure from another."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/ingest/" in frame.filename or "/registry/" in frame.filename]
    frame = (own or frames)[-1]
    return f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}"
