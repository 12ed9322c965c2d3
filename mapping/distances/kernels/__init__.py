"""Compiled loops of `mapping.distances`.

Input: plain arrays.
Output: plain arrays.
"""

import mapping.kernels  # noqa: F401  (deletes compiled code that is out of date)
