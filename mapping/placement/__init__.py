"""The search for placements."""
