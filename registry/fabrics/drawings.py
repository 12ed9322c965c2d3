"""Drawings: positions of a fabric's vertices, computed once per snapshot and rule and stored as bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from registry.database import codec
from registry.database.driver import Transaction
from registry.database.record_store import Join, NewRecord, RecordKind, Store
from registry.database.values import reading
from registry.errors import InvalidValue, UnknownName
from registry.model import Floats, Ints
from registry.model.arrays import freeze_all
from registry.model.views import one_line

DRAWING = RecordKind(name="drawing", label="Drawing", owner=Join("OF", "Content"))
_COLUMNS = ("x", "y", "tier")

_READ = """
MATCH (d:Drawing {id: $drawing})
RETURN d.blob AS blob
"""

_CONTENT = """
MATCH (x:Content {id: $content})
RETURN x.hosts + x.switches AS vertices, x.cluster AS cluster
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredDrawing:
    """Positions of the vertices of a fabric in a drawing.

    Attributes
    ----------
    x, y : float64[v]
        Position of each vertex, in the unit of the rule; finite.
    tier : int32[v]
        Level, group or slice of each vertex by the rule.
    """

    x: Floats
    y: Floats
    tier: Ints

    __repr__ = one_line

    def __post_init__(self) -> None:
        n = len(self.x)
        freeze_all(self, n, *_COLUMNS)
        for name in ("x", "y"):
            if not np.isfinite(getattr(self, name)).all():
                raise InvalidValue(f"StoredDrawing.{name}", "must be finite")


class Drawings(Store):
    """Stored drawings."""

    def read(self, content: str, rule: str) -> StoredDrawing | None:
        """Return the drawing of a snapshot by a rule, or None if none is stored.

        Parameters
        ----------
        content : str
            Id of a snapshot.
        rule : str
            Name and version of the layout.
        """
        name = _drawing_id(content, rule)
        rows = self._rows(_READ, drawing=name)
        if not rows:
            return None
        columns = codec.unpack(rows[0]["blob"])
        with reading(f"the stored drawing {name}"):
            return StoredDrawing(**{column: columns[column] for column in _COLUMNS})

    def save(self, content: str, rule: str, x: ArrayLike, y: ArrayLike, tier: ArrayLike) -> None:
        """Save a drawing; one that is stored already is not changed.

        Raises
        ------
        UnknownName
            No such snapshot.
        InvalidValue
            The number of positions differs from that of vertices, or a position is not finite.
        """
        drawing = StoredDrawing(x=np.asarray(x), y=np.asarray(y), tier=np.asarray(tier))
        name = _drawing_id(content, rule)
        blob = codec.pack(codec.columns_of(drawing, _COLUMNS))

        def work(transaction: Transaction) -> None:
            found = transaction.run(_CONTENT, content=content)
            if not found:
                raise UnknownName("snapshot", content)
            if found[0]["vertices"] != len(drawing.x):
                needed = f"has {len(drawing.x)} positions for {found[0]['vertices']} vertices"
                raise InvalidValue("StoredDrawing.x", needed)
            if not DRAWING.known(transaction, [name]):
                properties = {"cluster": found[0]["cluster"], "rule": rule, "blob": blob}
                DRAWING.create(transaction, [NewRecord(name, properties, owner=content)])

        self._database.write(work)


def _drawing_id(content: str, rule: str) -> str:
    return f"{content}/{rule}"
