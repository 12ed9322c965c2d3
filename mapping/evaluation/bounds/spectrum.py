"""Eigenvalues of the Laplacian of a guest's traffic, each certified from below.

Sources: Fiedler, "Algebraic connectivity of graphs", 1973; that a Cholesky factorisation which runs to its
end proves a matrix to be positive definite but for rounding: Rump, "Verification of positive
definiteness", BIT 46, 2006.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigvalsh
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from mapping.evaluation.kernels.nearest_flows import GuestArrays
from registry.model import Floats

MAX_EIGEN_RANKS = 512
"""Most ranks all of whose eigenvalues are computed whatever the density of traffic."""
MAX_DENSE_RANKS = 1024
"""The same where ranks talk to `DENSE` others on average: there flows are poor."""
MAX_FIEDLER_RANKS = 3072
"""Most ranks of which, where they are dense, the second eigenvalue is bounded: 75 MB."""
DENSE = 32
MARGINS = (0.002, 0.02, 0.1, 0.3)
"""Parts by which the second eigenvalue is tried lower than Lanczos' estimate, which lies above it."""


def spectrum(guest: GuestArrays) -> Floats:
    """Lower bounds, rising, of the first eigenvalues of the Laplacian; the last holds for all others too.

    Returns
    -------
    float64[k]
        Empty where nothing was computed: too many ranks for their density, or no bytes.
    """
    ranks, dense = len(guest.ptr) - 1, is_dense(guest)
    if len(guest.weight) == 0:
        return np.zeros(0)
    if ranks <= (MAX_DENSE_RANKS if dense else MAX_EIGEN_RANKS):
        return _all(guest)
    return _second(guest) if dense and ranks <= MAX_FIEDLER_RANKS else np.zeros(0)


def is_dense(guest: GuestArrays) -> bool:
    """Whether ranks talk to many others on average."""
    return len(guest.head) >= DENSE * (len(guest.ptr) - 1)


def _all(guest: GuestArrays) -> Floats:
    ranks, laplacian = len(guest.ptr) - 1, _laplacian(guest).toarray()
    error = ranks * np.finfo(np.float64).eps * 2 * float(laplacian.max(initial=0.0))
    values = eigvalsh(laplacian, overwrite_a=True, check_finite=False)
    return np.asarray(np.maximum(values - error, 0.0), np.float64)


def _second(guest: GuestArrays) -> Floats:
    """float64[2]: 0, and what a Cholesky factorisation proves of the second eigenvalue."""
    ranks, laplacian = len(guest.ptr) - 1, _laplacian(guest)
    mean = float(laplacian.diagonal().mean())
    lift = 2.0 * mean  # of the eigenvalue 0, whose entries are equal, above the second one
    lifted = LinearOperator(
        (ranks, ranks), lambda x: laplacian @ x + lift / ranks * x.sum(), dtype=np.float64
    )
    start = np.random.default_rng(0).standard_normal(ranks)
    try:
        estimate = float(eigsh(lifted, k=1, which="SA", v0=start, tol=1e-3, return_eigenvectors=False)[0])
    except ArpackNoConvergence:
        return np.zeros(0)
    error = 4 * ranks * np.finfo(np.float64).eps * 2 * ranks * mean  # of the trace, twice over
    for margin in MARGINS:
        proved = (1.0 - margin) * min(estimate, lift)
        matrix = laplacian.toarray()
        matrix += lift / ranks
        matrix[np.diag_indices(ranks)] -= proved + error
        try:
            cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            continue
        return np.array([0.0, max(proved, 0.0)])
    return np.zeros(0)


def _laplacian(guest: GuestArrays) -> csr_array:
    ranks = len(guest.ptr) - 1
    owner = np.repeat(np.arange(ranks), np.diff(guest.ptr))
    weight = guest.weight[guest.edge]
    degree = np.bincount(owner, weight, ranks)
    at = np.arange(ranks)
    return csr_array(
        (np.r_[-weight, degree], (np.r_[owner, at], np.r_[guest.head, at])), shape=(ranks, ranks)
    )
