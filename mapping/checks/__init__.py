"""Checks of a fabric, listed in `mapping.checks.checks`."""
