"""Positions of hosts and switches for drawing a fabric, and cells of its cables. Pure functions.

Input: a fabric.
Output: coordinates of vertices, cables and cells.

A fat tree is drawn in levels, a torus in slices, a dragonfly in groups, any other fabric freely. The kind of
a fabric is found from its graph, never from names. `cables` joins the two directions of each cable.
"""

from dashboard.layouts.cells import Cells, Panel, cells
from dashboard.layouts.drawing import Drawing, draw, layout, redrawn
from dashboard.layouts.free import RULE, free
from dashboard.layouts.groups import groups
from dashboard.layouts.model import FREE, GRID, GROUPS, TREE, Cables, Layout, cables
from dashboard.layouts.order import natural_order
from dashboard.layouts.tree import tiers

__all__ = [
    "FREE",
    "GRID",
    "GROUPS",
    "RULE",
    "TREE",
    "Cables",
    "Cells",
    "Drawing",
    "Layout",
    "Panel",
    "cables",
    "cells",
    "draw",
    "free",
    "groups",
    "layout",
    "natural_order",
    "redrawn",
    "tiers",
]
