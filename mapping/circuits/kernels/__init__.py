"""Compiled loops of `mapping.circuits`."""

import mapping.kernels  # noqa: F401  (deletes compiled code that is out of date)
