"""Fabrics: one file a format."""
