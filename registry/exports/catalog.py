"""The formats in which a fabric can be written: one line a format, one file each.

What a format cannot say is left out, and its module says what that is. Every one is read back by
``almanac ingest``.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol, cast

from registry.errors import UnknownName
from registry.model import Fabric


class Writer(Protocol):
    """What the module of a format offers."""

    def write(self, fabric: Fabric) -> str:
        """The file's content.

        Raises
        ------
        InvalidValue
            The format cannot say it: a name, or a network of that kind.
        """


FORMATS: Mapping[str, str] = MappingProxyType(
    {
        "node-link": "registry.exports.node_link",
        "graphml": "registry.exports.graphml",
        "csv": "registry.exports.links_csv",
        "libtopomap": "registry.exports.libtopomap",
        "slurm-topology": "registry.exports.slurm_tree",
        "slurm-block": "registry.exports.slurm_block",
        "slurm-topology-yaml": "registry.exports.slurm_yaml",
    }
)
"""Name of each format and the module that writes it."""


def write(format: str, fabric: Fabric) -> str:
    """A fabric as the content of a file.

    Parameters
    ----------
    format : str
        A name of `FORMATS`.
    fabric : Fabric
        Its forwarding tables are left behind.

    Raises
    ------
    UnknownName
        There is no such format.
    InvalidValue
        The format cannot say it.
    """
    if format not in FORMATS:
        raise UnknownName("fabric format", format, FORMATS, remedy=f"there are {', '.join(FORMATS)}")
    return cast(Writer, importlib.import_module(FORMATS[format])).write(fabric)
