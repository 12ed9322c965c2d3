"""Compiled loops of `mapping.evaluation`.

Input: arrays.
Output: arrays.
"""

import mapping.kernels  # noqa: F401  (deletes compiled code that is out of date)
