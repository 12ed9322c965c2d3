"""Optical switches of clusters, their circuits, and the configurations that were proposed for them."""
