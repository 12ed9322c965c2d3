"""Compiled loops of `mapping.cost`."""

import mapping.kernels  # noqa: F401  (deletes compiled code that is out of date)
