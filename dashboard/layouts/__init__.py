"""Positions of hosts and switches for drawing a fabric, and cells of its cables. Pure functions.

Input: a fabric.
Output: coordinates of vertices, cables and cells.

A fat tree is drawn in levels, a torus in slices, a dragonfly in groups, any other fabric freely. The kind of
a fabric is found from its graph, never from names. `cables` joins the two directions of each cable.
"""
