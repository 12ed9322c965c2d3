"""Derived graph for queries: devices, their states and the links between them, each valid for a time.

It is computed from the observations and can be rebuilt from them; `timeline` gives the changes by one more
observation. At any time it contains the same as the last snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from registry.database.driver import BATCH, Transaction
from registry.fabrics.facts import DeviceFact, LinkFact, device_facts, host_key, link_facts
from registry.fabrics.timeline import FOREVER, Edits, Interval, edits, intervals, without_repeats
from registry.model import Fabric

Fact = TypeVar("Fact", DeviceFact, LinkFact)

_EVER = datetime.min.replace(tzinfo=UTC)
"""A time before all observations."""
_STATE_FIELDS, _LINK_FIELDS = DeviceFact._fields[1:], LinkFact._fields[2:]
"""Fields that are properties of a state (all but the key of its device), and of a link (all but its ends)."""
_STATE = f"[d.key, {', '.join(f's.{name}' for name in _STATE_FIELDS)}]"
_LINK = ", ".join(
    (
        "collect(a.key) AS source, collect(b.key) AS target",
        *(f"collect(l.{name}) AS {name}" for name in _LINK_FIELDS),
    )
)
_SPAN = "valid_from: $moments[$start[i]], valid_to: $moments[$end[i]]"
_LISTED = DeviceFact._fields.index("listed_adapters")


def _assigned(names: Iterable[str]) -> str:
    """Return the properties of row ``i`` from the columns with their names."""
    return ", ".join(f"{name}: ${name}[i]" for name in names)


_STATES_TOUCHING = f"""
MATCH (d:Device)-[:HAS_STATE]->(s:DeviceState)
WHERE d.id IN $devices AND s.valid_from <= $until AND s.valid_to >= $at
RETURN s.valid_from AS valid_from, s.valid_to AS valid_to, collect({_STATE}) AS states
"""

_LINKS_TOUCHING = f"""
MATCH (a:Device)-[l:LINK]->(b:Device)
WHERE a.id IN $devices AND l.valid_from <= $until AND l.valid_to >= $at
RETURN l.valid_from AS valid_from, l.valid_to AS valid_to, {_LINK}
"""

_STATES_AS_OF = f"""
MATCH (d:Device)-[:HAS_STATE]->(s:DeviceState)
WHERE d.cluster = $cluster AND s.valid_from <= $at AND s.valid_to > $at
  AND (s.forwards OR d.key IN $hosts)
RETURN collect({_STATE}) AS states
"""

_LINKS_AS_OF = f"""
MATCH (a:Device)-[l:LINK]->(b:Device)
WHERE a.id IN $devices AND l.valid_from <= $at AND l.valid_to > $at
RETURN {_LINK}
"""

_MERGE_DEVICES = """
UNWIND range(0, size($id) - 1) AS i
MERGE (d:Device {id: $id[i]})
ON CREATE SET d.cluster = $cluster, d.key = $key[i], d.kind = $kind[i], d.name = $name[i]
"""

_LATEST_NAMES = """
UNWIND $devices AS id
MATCH (d:Device {id: id})
WITH d
MATCH (d)-[:HAS_STATE]->(s:DeviceState)
WITH d, s ORDER BY s.valid_from
WITH d, collect(s.name) AS names
SET d.name = names[size(names) - 1]
"""

_IS_UNSEEN = "NOT (d)-[:HAS_STATE]->(:DeviceState) AND NOT (d)<-[:LOADS]-(:Placement)"

_MARK_HOSTS = f"""
UNWIND $devices AS id
MATCH (d:Device {{id: id}})
WHERE {_IS_UNSEEN}
MATCH (d)<-[:ON]-(a:Allocation)
WITH a, collect(d.name) AS names
SET a.unknown_hosts = coalesce(a.unknown_hosts, []) + names
"""
"""See `registry.jobs.allocations.save_allocations`."""

_DELETE_UNSEEN = f"""
UNWIND $devices AS id
MATCH (d:Device {{id: id}})
WHERE {_IS_UNSEEN}
DETACH DELETE d
"""

_DEVICES = """
MATCH (d:Device)
WHERE d.cluster = $cluster
RETURN collect(d.id) AS ids
"""

_REMOVE_STATES = """
UNWIND range(0, size($id) - 1) AS i
MATCH (s:DeviceState {id: $id[i]})
DETACH DELETE s
"""

_MOVE_STATES = """
UNWIND range(0, size($id) - 1) AS i
MATCH (s:DeviceState {id: $id[i]})
SET s.valid_to = $moments[$end[i]]
"""

_OPEN_STATES = f"""
UNWIND range(0, size($id) - 1) AS i
MATCH (d:Device {{id: $device[i]}})
CREATE (d)-[:HAS_STATE]->(:DeviceState {{{_assigned(("id", *_STATE_FIELDS))}, {_SPAN}}})
"""

_REMOVE_LINKS = """
UNWIND range(0, size($source) - 1) AS i
MATCH (a:Device {id: $source[i]})-[l:LINK {key: $key[i]}]->(:Device)
WHERE l.valid_from = $moments[$start[i]]
WITH collect(l) AS links
UNWIND links AS l
DELETE l
"""
"""All are found before the first is deleted: ArcadeDB 26.10 cannot go on from a deleted relationship."""

_MOVE_LINKS = """
UNWIND range(0, size($source) - 1) AS i
MATCH (a:Device {id: $source[i]})-[l:LINK {key: $key[i]}]->(:Device)
WHERE l.valid_from = $moments[$start[i]]
SET l.valid_to = $moments[$end[i]]
"""

_OPEN_LINKS = f"""
UNWIND range(0, size($source) - 1) AS i
MATCH (a:Device {{id: $source[i]}})
MATCH (b:Device {{id: $target[i]}})
CREATE (a)-[:LINK {{{_assigned(("key", *_LINK_FIELDS))}, {_SPAN}}}]->(b)
"""

_DROP_STATES = """
MATCH (d:Device)-[:HAS_STATE]->(s:DeviceState)
WHERE d.cluster = $cluster
WITH collect(s) AS states
UNWIND states AS s
DETACH DELETE s
"""
"""All are found before the first is deleted: ArcadeDB 26.10 leaves some out otherwise."""

_DROP_LINKS = """
MATCH (d:Device)-[l:LINK]->(:Device)
WHERE d.cluster = $cluster
WITH collect(l) AS links
UNWIND links AS l
DELETE l
"""


def apply(
    transaction: Transaction,
    cluster: str,
    before: Fabric | None,
    after: Fabric | None,
    at: datetime,
    until: datetime,
) -> tuple[int, int]:
    """Update the graph by one observation, or by the deletion of one.

    Parameters
    ----------
    before : Fabric or None
        Canonical fabric of the last observation at or before `at`; if one is deleted, its own fabric.
    after : Fabric or None
        Canonical fabric of the observation at `at`; if one is deleted, that of the one before, if any.
    until : datetime
        Time of the next observation of a fabric, or `FOREVER`.

    Returns
    -------
    opened, closed : int
        Number of directed links only in `after`, and only in `before`.
    """
    only = before is None and until == FOREVER
    old = [] if before is None else list(device_facts(before).values())
    new = [] if after is None else list(device_facts(after).values())
    devices = {fact.key for fact in set(old) ^ set(new)}
    ids = _ids(cluster, sorted(devices))
    states = {} if only else _touching(transaction, _STATES_TOUCHING, _device_facts, ids, (at, until))
    _enter_states(transaction, cluster, edits(old, new, at, until, states), [*old, *new])

    were = [] if before is None else link_facts(before)
    are = [] if after is None else link_facts(after)
    differing = set(were) ^ set(are)
    sources = {fact.source for fact in differing}
    ids = _ids(cluster, sorted(sources))
    links = {} if only else _touching(transaction, _LINKS_TOUCHING, _link_facts, ids, (at, until))
    _enter_links(transaction, cluster, edits(were, are, at, until, links))
    _delete_unseen(transaction, _ids(cluster, sorted({fact.key for fact in old} & devices)))
    closed = len(differing.intersection(were))
    return len(differing) - closed, closed


def rebuild(
    transaction: Transaction,
    cluster: str,
    observations: Sequence[tuple[datetime, str]],
    fabric_of: Callable[[str], Fabric],
) -> None:
    """Rebuild the graph of a cluster from all its observations.

    Parameters
    ----------
    observations : sequence of (datetime, str)
        Time and snapshot id of each, in order of time and arrival.
    fabric_of : callable
        Returns the canonical fabric of a snapshot; all fabrics at once may exceed the memory.
    """
    drop(transaction, cluster)
    graph = derive(observations, fabric_of)
    _enter_states(transaction, cluster, _all_opened(graph.states), graph.states)
    _enter_links(transaction, cluster, _all_opened(graph.links))
    _delete_unseen(transaction, transaction.run(_DEVICES, cluster=cluster)[0]["ids"])


def drop(transaction: Transaction, cluster: str) -> None:
    """Delete the links and the states of the devices of a cluster."""
    transaction.run(_DROP_LINKS, cluster=cluster)
    transaction.run(_DROP_STATES, cluster=cluster)


class Graph(NamedTuple):
    """Derived graph of a cluster: the intervals of each state of a device and of each link."""

    states: dict[DeviceFact, list[Interval]]
    links: dict[LinkFact, list[Interval]]


def derive(observations: Sequence[tuple[datetime, str]], fabric_of: Callable[[str], Fabric]) -> Graph:
    """Return the graph of observations; see `rebuild`."""
    changes = without_repeats(observations)
    return Graph(
        intervals((at, device_facts(fabric_of(content)).values()) for at, content in changes),
        intervals((at, link_facts(fabric_of(content))) for at, content in changes),
    )


def stored_graph(transaction: Transaction, cluster: str) -> Graph:
    """Return the graph of a cluster as it is stored."""
    devices = transaction.run(_DEVICES, cluster=cluster)[0]["ids"]
    always = (_EVER, FOREVER)
    return Graph(
        _touching(transaction, _STATES_TOUCHING, _device_facts, devices, always),
        _touching(transaction, _LINKS_TOUCHING, _link_facts, devices, always),
    )


def read(
    transaction: Transaction, cluster: str, hosts: Iterable[str], at: datetime
) -> tuple[list[DeviceFact], list[LinkFact]]:
    """Return the forwarding devices and the named hosts at a time, and the links that leave them."""
    moment = min(at, FOREVER - timedelta(microseconds=1))  # open intervals hold for ever
    keys = [host_key(name) for name in hosts]
    found = transaction.run(_STATES_AS_OF, cluster=cluster, hosts=keys, at=moment)[0]
    devices = _device_facts(found)
    ids = _ids(cluster, [fact.key for fact in devices])
    columns = transaction.run(_LINKS_AS_OF, devices=ids, at=moment)[0]
    return devices, _link_facts(columns)


def _delete_unseen(transaction: Transaction, devices: Sequence[str]) -> None:
    """Delete those of the devices that no observation shows any more."""
    for start in range(0, len(devices), BATCH):
        some = devices[start : start + BATCH]
        transaction.run(_MARK_HOSTS, devices=some)
        transaction.run(_DELETE_UNSEEN, devices=some)


def device_id(cluster: str, key: str) -> str:
    """Return the id of the device with this key."""
    return f"{cluster}/{key}"


def _ids(cluster: str, keys: Iterable[str]) -> list[str]:
    return [device_id(cluster, key) for key in keys]


def _touching(
    transaction: Transaction,
    statement: str,
    facts_of: Callable[[dict[str, Any]], list[Fact]],
    devices: list[str],
    between: tuple[datetime, datetime],
) -> dict[Fact, list[Interval]]:
    """Return the stored intervals that overlap or touch a period, by fact."""
    spans: dict[Fact, list[Interval]] = {}
    for row in transaction.run(statement, devices=devices, at=between[0], until=between[1]):
        for fact in facts_of(row):
            spans.setdefault(fact, []).append(Interval(row["valid_from"], row["valid_to"]))
    return spans


def _device_facts(row: dict[str, Any]) -> list[DeviceFact]:
    # states of before ports were listed have nothing there
    return [
        DeviceFact._make(
            tuple(value) if isinstance(value, list) else () if value is None and at >= _LISTED else value
            for at, value in enumerate(state)
        )
        for state in row["states"]
    ]


def _link_facts(columns: dict[str, Any]) -> list[LinkFact]:
    return [LinkFact._make(row) for row in zip(*(columns[name] for name in LinkFact._fields), strict=True)]


def _all_opened(spans: dict[Fact, list[Interval]]) -> Edits[Fact]:
    opened = [(fact, span) for fact, found in spans.items() for span in found]
    return Edits(removed=[], moved=[], opened=opened)


def _enter_states(
    transaction: Transaction, cluster: str, change: Edits[DeviceFact], known: Iterable[DeviceFact]
) -> None:
    """Write edits of states; `known` are facts of all devices concerned, the latest last."""
    named = {fact.key: fact for fact in known}
    touched = {fact.key for fact, _ in (*change.opened, *change.removed, *change.moved)}
    made = [named[key] for key in sorted(named.keys() & touched)]
    transaction.run_columns(
        _MERGE_DEVICES,
        {
            "id": _ids(cluster, [fact.key for fact in made]),
            "key": [fact.key for fact in made],
            "kind": [fact.kind for fact in made],
            "name": [fact.name for fact in made],
        },
        cluster=cluster,
    )
    for statement, changed in ((_REMOVE_STATES, change.removed), (_MOVE_STATES, change.moved)):
        moments, columns = _spans(changed)
        columns["id"] = _state_ids(cluster, changed)
        transaction.run_columns(statement, columns, moments=moments)
    moments, columns = _spans(change.opened)
    columns |= _columns(DeviceFact._fields, change.opened)
    columns |= {"id": _state_ids(cluster, change.opened), "device": _ids(cluster, columns["key"])}
    transaction.run_columns(_OPEN_STATES, columns, moments=moments)
    transaction.run(_LATEST_NAMES, devices=_ids(cluster, sorted(touched)))


def _enter_links(transaction: Transaction, cluster: str, change: Edits[LinkFact]) -> None:
    for statement, changed in ((_REMOVE_LINKS, change.removed), (_MOVE_LINKS, change.moved)):
        moments, columns = _spans(changed)
        columns["source"] = _ids(cluster, [fact.source for fact, _ in changed])
        columns["key"] = [fact.key for fact, _ in changed]
        transaction.run_columns(statement, columns, moments=moments)
    moments, columns = _spans(change.opened)
    columns |= _columns(LinkFact._fields, change.opened)
    columns["key"] = [fact.key for fact, _ in change.opened]
    columns |= {end: _ids(cluster, columns[end]) for end in ("source", "target")}
    transaction.run_columns(_OPEN_LINKS, columns, moments=moments)


def _state_ids(cluster: str, changed: Iterable[tuple[DeviceFact, Interval]]) -> list[str]:
    return [f"{cluster}/{fact.key}@{span.start.isoformat()}" for fact, span in changed]


def _columns(fields: Sequence[str], changed: Sequence[tuple[Fact, Interval]]) -> dict[str, list[Any]]:
    values = zip(*(fact for fact, _ in changed), strict=True) if changed else ((),) * len(fields)
    return {name: list(column) for name, column in zip(fields, values, strict=True)}


def _spans(changed: Sequence[tuple[Fact, Interval]]) -> tuple[list[datetime], dict[str, list[Any]]]:
    """Distinct times, and columns that point into them: a time costs a hundred times a number."""
    moments = sorted({moment for _, span in changed for moment in span})
    index = {moment: number for number, moment in enumerate(moments)}
    return moments, {
        "start": [index[span.start] for _, span in changed],
        "end": [index[span.end] for _, span in changed],
    }
