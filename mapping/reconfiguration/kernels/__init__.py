"""Compiled loops of `mapping.reconfiguration`.

Input: plain arrays.
Output: plain arrays, some changed in place.
"""

import mapping.kernels  # noqa: F401  (deletes compiled code that is out of date)
