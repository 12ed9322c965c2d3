"""Compiled loops on plain arrays: the only code of this house that numba sees."""
