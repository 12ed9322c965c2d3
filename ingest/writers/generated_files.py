"""Generated fabrics, profiles and weights as files: by name of a format, each read back by its parser."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import numpy as np

from ingest.formats.fabrics import ibnetdiscover
from ingest.formats.profiles.edge_csv import csv_text
from ingest.options import Options
from ingest.reading.source import SourceFile
from ingest.writers.infiniband import ibnetdiscover_text
from registry.errors import InvalidValue
from registry.exports import catalog as exports
from registry.model import Fabric, Floats, Profile

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def as_fabric(made: Any) -> Fabric:
    """Return the fabric that a generator made; for InfiniBand devices that of their scan."""
    if isinstance(made, Fabric):
        return made
    scan = SourceFile(path="generated", data=ibnetdiscover_text(made).encode(), modified_at=_EPOCH)
    fabric = ibnetdiscover.parse([scan], Options()).fabric
    assert fabric is not None
    return fabric


def write(made: Any, format: str | None = None) -> bytes:
    """Return the content of a file.

    Parameters
    ----------
    made : Fabric, Profile, float64[ranks] or list of Device
        What a generator returned.
    format : str, optional
        One of `formats_of`; the first of them by default.

    Raises
    ------
    InvalidValue
        No format that this kind of thing can be written as.
    """
    known = formats_of(made)
    name = format or next(iter(known))
    if name not in known:
        raise InvalidValue("format", f"is {name!r}, must be one of {', '.join(known)}")
    content = known[name](made)
    return content.encode() if isinstance(content, str) else content


def formats_of(made: Any) -> Mapping[str, Callable[[Any], str | bytes]]:
    """Return names of formats and their writers, the default first."""
    if isinstance(made, Profile):
        return PROFILE_FORMATS
    if isinstance(made, np.ndarray):
        return WEIGHT_FORMATS
    return FABRIC_FORMATS if isinstance(made, Fabric) else DEVICE_FORMATS


def npz_bytes(profile: Profile) -> bytes:
    """Return A NumPy archive with ``src``, ``dst``, ``bytes``, ``messages`` and ``ranks``."""
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
    """Return rows of a rank and what it computes (float64[ranks]), for ``almanac reconfigure --weights``."""
    rows = (f"{rank},{weight!r}\n" for rank, weight in enumerate(weights.tolist()))
    return "rank,weight\n" + "".join(rows)


def _fabric_writer(name: str) -> Callable[[Any], str]:
    return lambda made: exports.write(name, as_fabric(made))


PROFILE_FORMATS: Mapping[str, Callable[[Any], str | bytes]] = MappingProxyType(
    {"edge-csv": csv_text, "npz": npz_bytes}
)
WEIGHT_FORMATS: Mapping[str, Callable[[Any], str | bytes]] = MappingProxyType({"csv": weights_csv})
FABRIC_FORMATS: Mapping[str, Callable[[Any], str | bytes]] = MappingProxyType(
    {name: _fabric_writer(name) for name in exports.FORMATS.names}
)
DEVICE_FORMATS: Mapping[str, Callable[[Any], str | bytes]] = MappingProxyType(
    {"ibnetdiscover": ibnetdiscover_text, **FABRIC_FORMATS}
)
