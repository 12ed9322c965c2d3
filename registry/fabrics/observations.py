"""Observations: what was seen of a cluster and when; the truth that everything else follows from.

An observation saw a content (the wiring), a routing (the forwarding tables), or both. They are
ordered by time, and those of one moment by arrival. The same thing seen again at another time adds
only an observation; the very same observation adds nothing.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime

from registry.database.driver import Transaction
from registry.errors import PoorerSource, UnknownName
from registry.fabrics import derived
from registry.fabrics.contents import canonical, content_hash, pack_fabric, unpack_fabric
from registry.fabrics.routings import PackedRouting, pack_routing, save_routing
from registry.fabrics.timeline import FOREVER
from registry.model import Fabric, as_utc
from registry.model.intake import Intake

_TAKE_CLUSTER = """
MERGE (c:Cluster {id: $cluster})
SET c.taken = true
WITH c
SET c.seq = coalesce(c.seq, 0) + 1
RETURN c.seq AS seq
"""

_CONTENT_AS_OF = """
MATCH (o:Observation)-[:SAW]->(x:Content)
WHERE o.cluster = $cluster AND o.at <= $at
WITH o, x ORDER BY o.at DESC, o.seq DESC LIMIT 1
RETURN o.at AS at, x.id AS content
"""

_CLUSTER_NAMES = """
MATCH (c:Cluster)
RETURN collect(c.id) AS names
"""

_CONTENT = """
MATCH (x:Content {id: $content})
RETURN x.blob AS blob
"""

_NEXT_CONTENT = """
MATCH (o:Observation)-[:SAW]->(:Content)
WHERE o.cluster = $cluster AND o.at > $at
RETURN min(o.at) AS at
"""

_OBSERVATION = """
MATCH (o:Observation {id: $observation})
RETURN o.seq AS seq
"""

_CREATE_CONTENT = """
MATCH (c:Cluster {id: $cluster})
CREATE (x:Content {id: $content, cluster: $cluster, blob: $blob, hosts: $hosts, switches: $switches,
                   adapters: $adapters, cables: $cables, links: $links})-[:OF]->(c)
"""

_CREATE_OBSERVATION = """
CREATE (o:Observation {id: $observation, cluster: $cluster, at: $at, seq: $seq, source: $source,
                       digest: $digest})
"""

_SAW_CONTENT = """
MATCH (o:Observation {id: $observation})
MATCH (x:Content {id: $content})
CREATE (o)-[:SAW]->(x)
"""

_SAW_ROUTING = """
MATCH (o:Observation {id: $observation})
MATCH (r:Routing {id: $routing})
CREATE (o)-[:SAW]->(r)
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ObservationDraft:
    """What an intake saw, with its ids; made before the transaction.

    Attributes
    ----------
    id : str
        Of the observation.
    fabric : Fabric or None
        Canonical.
    content : str or None
    routing : PackedRouting or None
    """

    id: str
    cluster: str
    at: datetime
    fabric: Fabric | None
    content: str | None
    routing: PackedRouting | None
    source: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationResult:
    """What saving an observation changed; `content` is the one as of its time."""

    observation: str
    content: str
    new_content: bool = False
    new_observation: bool = False
    new_routing: bool = False
    links_opened: int = 0
    links_closed: int = 0


def draft_observation(intake: Intake) -> ObservationDraft | None:
    """The sighting of an intake; None where it holds neither fabric nor tables."""
    cluster, at = intake.cluster, intake.observed_at
    if cluster is None or at is None or (intake.fabric is None and intake.tables is None):
        return None
    fabric = None if intake.fabric is None else canonical(intake.fabric)
    content = None if fabric is None else f"{cluster}/{content_hash(fabric)}"
    routing = None if intake.tables is None else pack_routing(cluster, intake.tables)
    seen = (as_utc(at).isoformat(), content or "", "" if routing is None else routing.id)
    name = hashlib.sha256("\n".join(seen).encode()).hexdigest()[:16]
    return ObservationDraft(
        id=f"{cluster}/{name}",
        cluster=cluster,
        at=as_utc(at),
        fabric=fabric,
        content=content,
        routing=routing,
        source=intake.source,
        digest=intake.digest,
    )


def lock_cluster(transaction: Transaction, cluster: str) -> int:
    """Lock a cluster until the transaction ends, so that its writers go one after the other.

    Returns
    -------
    int
        The number of this writer among all of the cluster.
    """
    return int(transaction.run(_TAKE_CLUSTER, cluster=cluster)[0]["seq"])


def save_observation(transaction: Transaction, seen: ObservationDraft, seq: int) -> ObservationResult:
    """Write a sighting of a cluster that is taken, and what it changes in the derived graph.

    Raises
    ------
    UnknownName
        Tables alone, of a cluster of which no fabric was seen until then.
    PoorerSource
        A fabric without ports, where those of the last one are known.
    """
    before = content_as_of(transaction, seen.cluster, seen.at)
    if before is not None and seen.fabric is not None and not _tells_ports(seen.fabric):
        last = read_content(transaction, before[1])
        if last is not None and _tells_ports(last):
            raise PoorerSource(seen.cluster, seen.source)
    content = seen.content or (None if before is None else before[1])
    if content is None:
        raise no_fabric(transaction, seen.cluster, seen.at)
    if transaction.run(_OBSERVATION, observation=seen.id):
        return ObservationResult(observation=seen.id, content=content)
    new_content = _save_content(transaction, seen)
    new_routing = seen.routing is not None and save_routing(transaction, seen.cluster, seen.routing)
    _create_observation(transaction, seen, seq)
    opened, closed = _derive(transaction, seen, None if before is None else before[1])
    return ObservationResult(
        observation=seen.id,
        content=content,
        new_content=new_content,
        new_observation=True,
        new_routing=new_routing,
        links_opened=opened,
        links_closed=closed,
    )


def _tells_ports(fabric: Fabric) -> bool:
    return bool((fabric.links.source_port >= 0).any())


def content_as_of(transaction: Transaction, cluster: str, at: datetime) -> tuple[datetime, str] | None:
    """Time of the last observation of a fabric at or before a time, and the id of what it saw."""
    found = transaction.run(_CONTENT_AS_OF, cluster=cluster, at=at)
    return (found[0]["at"], found[0]["content"]) if found else None


def read_content(transaction: Transaction, content: str) -> Fabric | None:
    """The canonical fabric of a content; None where there is none of that id."""
    found = transaction.run(_CONTENT, content=content)
    return unpack_fabric(found[0]["blob"]) if found else None


def no_fabric(transaction: Transaction, cluster: str, at: datetime) -> UnknownName:
    """The error for a cluster of which nothing was seen until then."""
    # a writer has taken the cluster, and so made its node, before it finds it empty
    names = [name for name in transaction.run(_CLUSTER_NAMES)[0]["names"] if name != cluster]
    if content_as_of(transaction, cluster, FOREVER) is None:
        return UnknownName("cluster", cluster, names, remedy="a scan of its fabric has to be ingested first")
    return UnknownName("fabric", cluster, remedy=f"none was seen at or before {at.isoformat()}")


def _save_content(transaction: Transaction, seen: ObservationDraft) -> bool:
    if seen.fabric is None or transaction.run(_CONTENT, content=seen.content):
        return False
    transaction.run(
        _CREATE_CONTENT,
        cluster=seen.cluster,
        content=seen.content,
        blob=pack_fabric(seen.fabric),
        hosts=len(seen.fabric.hosts),
        switches=len(seen.fabric.switches),
        adapters=len(seen.fabric.adapters),
        cables=seen.fabric.cable_count,
        links=len(seen.fabric.links),
    )
    return True


def _create_observation(transaction: Transaction, seen: ObservationDraft, seq: int) -> None:
    transaction.run(
        _CREATE_OBSERVATION,
        observation=seen.id,
        cluster=seen.cluster,
        at=seen.at,
        seq=seq,
        source=seen.source,
        digest=seen.digest,
    )
    if seen.content is not None:
        transaction.run(_SAW_CONTENT, observation=seen.id, content=seen.content)
    if seen.routing is not None:
        transaction.run(_SAW_ROUTING, observation=seen.id, routing=seen.routing.id)


def _derive(transaction: Transaction, seen: ObservationDraft, before: str | None) -> tuple[int, int]:
    if seen.fabric is None or seen.content == before:
        return 0, 0
    until = transaction.run(_NEXT_CONTENT, cluster=seen.cluster, at=seen.at)[0]["at"]
    old = None if before is None else read_content(transaction, before)
    return derived.apply(transaction, seen.cluster, old, seen.fabric, seen.at, until or FOREVER)
