"""Compiled loops of `mapping.distances`.

Input: arrays.
Output: arrays.
"""

import mapping.kernels  # noqa: F401  (deletes compiled code that is out of date)
