"""Are the placements good? Compared with other tools, and our own strategies with each other."""
