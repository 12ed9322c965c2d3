"""Compiled loops of `mapping.routing`."""

import mapping.kernels  # noqa: F401  (deletes compiled code that is out of date)
