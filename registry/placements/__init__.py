"""Placements with their cost and provenance, as they are saved and read."""
