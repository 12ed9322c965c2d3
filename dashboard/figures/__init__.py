"""Figures made from small tables: pure functions, one for each figure.

Input: tables and arrays.
Output: charts.

Text from the database is data of a chart, never an expression.
"""

from dashboard.figures.colours import DARK, HEAT, INK, LIGHT, SERIES_COLOURS, theme_of
from dashboard.figures.communication import communication_matrix
from dashboard.figures.layers import layers
from dashboard.figures.series import comparison

__all__ = [
    "DARK",
    "HEAT",
    "INK",
    "LIGHT",
    "SERIES_COLOURS",
    "communication_matrix",
    "comparison",
    "layers",
    "theme_of",
]
