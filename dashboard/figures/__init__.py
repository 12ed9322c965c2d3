"""Charts and maps. Pure functions, one for each figure.

Input: tables and arrays.
Output: charts, and pictures for the fabric map.

Text from the database is always data of a chart, never an expression.
"""

from dashboard.figures.placement import communication_matrix, comparison
from dashboard.figures.style import DARK, HEAT, INK, LIGHT, SERIES_COLOURS, layers, theme_of

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
