"""InfiniBand link rates: width times lane rate without line encoding.

Speeds are signalling rates of a lane. The data rate is lower due to the line code: 8b/10b up to QDR, 64b/66b
from FDR10 to EDR, and 256b/257b with forward error correction (544/514) from HDR on. Source: InfiniBand
Architecture Specification, volume 2 (the link and its speeds). Table: docs/reference/formats/infiniband.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_8B10B = 8 / 10
_64B66B = 64 / 66
_RS544 = 514 / 544 * 256 / 257

LANE_BYTES: Mapping[str, float] = MappingProxyType(
    {
        speed: gigabaud * bits * code * 1e9 / 8
        for speed, (gigabaud, bits, code) in {
            "SDR": (2.5, 1, _8B10B),
            "DDR": (5.0, 1, _8B10B),
            "QDR": (10.0, 1, _8B10B),
            "FDR10": (10.3125, 1, _64B66B),
            "FDR": (14.0625, 1, _64B66B),
            "EDR": (25.78125, 1, _64B66B),
            "HDR": (26.5625, 2, _RS544),
            "NDR": (53.125, 2, _RS544),
            "XDR": (106.25, 2, _RS544),
        }.items()
    }
)
"""Data bytes/s of one lane in one direction by name of the speed."""
WIDTHS = (1, 2, 4, 8, 12)
"""Possible numbers of lanes of a link."""

SPEED_OF_LANE: Mapping[str, str] = MappingProxyType(
    {
        "2.5": "SDR",
        **dict.fromkeys(("5", "5.0"), "DDR"),
        **dict.fromkeys(("10", "10.0"), "QDR"),
        **dict.fromkeys(("14", "14.0625"), "FDR"),
        **dict.fromkeys(("25", "25.78125"), "EDR"),
        **dict.fromkeys(("50", "53.125"), "HDR"),
        **dict.fromkeys(("100", "106.25"), "NDR"),
        **dict.fromkeys(("200", "212.5"), "XDR"),
    }
)
"""Name of a speed by the number that tools print for a lane: Gbit/s of data, or of the signal."""


def printed_rate(lanes: str, speed: str) -> float | None:
    """Return the data bytes/s of a link from printed values; None if speed or width is unknown.

    Parameters
    ----------
    lanes : str
        Number of lanes, such as ``4x``.
    speed : str
        A key of `SPEED_OF_LANE` or a name such as ``HDR``.
    """
    digits = lanes.rstrip("xX")
    name = SPEED_OF_LANE.get(speed, speed)
    if not (digits.isascii() and digits.isdigit()) or name not in LANE_BYTES:
        return None
    return link_rate(int(digits), name) if int(digits) in WIDTHS else None


def link_rate(width: int, speed: str) -> float:
    """Return the data bytes/s of a link in each direction.

    Parameters
    ----------
    width : int
        Number of lanes, one of `WIDTHS`.
    speed : str
        Name of the speed, such as ``HDR``.

    Raises
    ------
    KeyError
        A width or speed that InfiniBand does not have.
    """
    if width not in WIDTHS:
        raise KeyError(width)
    return width * LANE_BYTES[speed]
