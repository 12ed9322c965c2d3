"""Generated fabrics, profiles and weights as files, by the name of a format; its parser reads them back."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np

from ingest.formats.fabrics.ibnetdiscover import IBNETDISCOVER
from ingest.formats.profiles.edge_csv import csv_text
from ingest.options import Options
from ingest.reading.source import SourceFile
from ingest.writers.infiniband import ibnetdiscover_text
from registry.errors import InvalidValue
from registry.exports import catalog as exports
from registry.model import Fabric, Floats, Profile

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def as_fabric(made: Any) -> Fabric:
    """Return the fabric that a generator made; from InfiniBand devices it is that of their scan."""
    if isinstance(made, Fabric):
        return made
    scan = SourceFile(path="generated", data=ibnetdiscover_text(made).encode(), modified_at=_EPOCH)
    fabric = IBNETDISCOVER.parse([scan], Options()).fabric
    assert fabric is not None
    return fabric


def write(made: Any, format: str | None = None) -> bytes:
    """Return the content of a file.

    Parameters
    ----------
    made : Fabric, Profile, float64[ranks] or list of Device
        Result of a generator.
    format : str, optional
        One of `formats_of`; default: the first of them.

    Raises
    ------
    InvalidValue
        The format cannot contain such a result.
    """
    known = formats_of(made)
    name = format or next(iter(known))
    if name not in known:
        raise InvalidValue("format", f"is {name!r}, must be one of {', '.join(known)}")
    content = known[name](made)
    return content.encode() if isinstance(content, str) else content


def formats_of(made: Any) -> Mapping[str, Callable[[Any], str | bytes]]:
    """Return the names and writers of the formats of a result, the default first."""
    if isinstance(made, Profile):
        return {"edge-csv": csv_text, "npz": npz_bytes}
    if isinstance(made, np.ndarray):
        return {"csv": weights_csv}
    fabrics = {name: partial(_fabric_text, name) for name in exports.FORMATS.names}
    return fabrics if isinstance(made, Fabric) else {"ibnetdiscover": ibnetdiscover_text, **fabrics}


def _fabric_text(format: str, made: Any) -> str:
    return exports.write(format, as_fabric(made))


def npz_bytes(profile: Profile) -> bytes:
    """Return a NumPy archive with ``src``, ``dst``, ``bytes``, ``messages`` and ``ranks``."""
    out = io.BytesIO()
    np.savez_compressed(
        out,
        src=profile.sender,
        dst=profile.partner,
        bytes=profile.bytes,
        messages=profile.messages,
        ranks=np.int64(profile.ranks),
    )
    return out.getvalue()


def weights_csv(weights: Floats) -> str:
    """Return rows of a rank and its computation (float64[ranks]), for ``almanac reconfigure --weights``."""
    rows = (f"{rank},{weight!r}\n" for rank, weight in enumerate(weights.tolist()))
    return "rank,weight\n" + "".join(rows)
