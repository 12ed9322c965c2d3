"""Fabrics made by formula: one file a family."""
