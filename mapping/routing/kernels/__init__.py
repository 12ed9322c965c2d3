"""Compiled loops of `mapping.routing`.

Input: arrays.
Output: arrays, some changed in place.
"""

import mapping.kernels  # noqa: F401  (deletes compiled code that is out of date)
