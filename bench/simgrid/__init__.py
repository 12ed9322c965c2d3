"""The same flows over the same links by SimGrid: what our simulator's times are compared with."""
