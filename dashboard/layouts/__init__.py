"""Where to draw the machines of a fabric, and which cell of a matrix is which cable: pure functions.

Input: a fabric.
Output: coordinates of vertices, cables and cells.

A fat tree is drawn in levels, a torus in slices, a dragonfly group by group, anything else freely. What a
fabric is, is found from its graph, never from names. `cables` joins the two directions of each cable, which
is what a person sees as one link.
"""

from dashboard.layouts.cables import Cables, cables
from dashboard.layouts.cells import Cells, Panel, cells
from dashboard.layouts.drawing import Drawing, draw, layout, redrawn
from dashboard.layouts.free import RULE, free
from dashboard.layouts.groups import groups
from dashboard.layouts.order import natural_order
from dashboard.layouts.places import FREE, GRID, GROUPS, TREE, Layout
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
