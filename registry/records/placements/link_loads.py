"""Loads of links as bytes: only the loaded links if that is shorter, otherwise all.

A job on some hosts loads few links of a machine: the loads of all links took half a gigabyte for a thousand
jobs on 10,000 hosts.
"""

from __future__ import annotations

import numpy as np

from registry.database import codec
from registry.errors import DatabaseError, InvalidValue
from registry.model import Floats
from registry.model.loaded_links import LoadedLinks


def pack_loads(link_bytes: Floats) -> bytes:
    """Return the blob of the loads ``float64[m]`` of the links of a fabric, in bytes."""
    loaded = LoadedLinks.of(link_bytes)
    if loaded.link.nbytes + loaded.bytes.nbytes >= link_bytes.nbytes:
        return codec.pack({"link_bytes": link_bytes})
    links = np.array([loaded.links], np.int64)
    return codec.pack({"links": links, "link": loaded.link, "bytes": loaded.bytes})


def unpack_loads(blob: bytes) -> LoadedLinks:
    """Return the loads of a blob of either form.

    Raises
    ------
    DatabaseError
        The blob is damaged or holds other data.
    """
    columns = codec.unpack(blob)
    try:
        if "link_bytes" in columns:
            return LoadedLinks.of(columns["link_bytes"])
        return LoadedLinks(link=columns["link"], bytes=columns["bytes"], links=int(columns["links"][0]))
    except (KeyError, IndexError, InvalidValue) as error:
        raise DatabaseError(f"stored loads of links are damaged: {error}") from error
