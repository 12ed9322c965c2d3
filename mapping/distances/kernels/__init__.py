"""Compiled loops of `mapping.distances`."""

import mapping.kernels  # noqa: F401  (deletes compiled code that is out of date)
