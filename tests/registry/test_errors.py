"""Errors keep their fields if they are pickled, as by a worker on another machine."""

from __future__ import annotations

import pickle

import pytest

from mapping.cluster import ClusterError
from registry.errors import (
    AlmanacError,
    DatabaseUnavailable,
    DisconnectedAllocation,
    InputError,
    InvalidValue,
    UnknownName,
)


@pytest.mark.parametrize(
    "error",
    [
        UnknownName("host", "nod1", ["node1"], path="file", line=3),
        DisconnectedAllocation("a", "b"),
        InvalidValue("Profile.bytes", "is negative"),
        InputError("is empty", path="file", line=1, text="words"),
        DatabaseUnavailable("bolt://x", "refused", "start it"),
        ClusterError("tcp://x:1", "lost", "tcp://y:2"),
    ],
)
def test_a_pickled_error_is_the_same(error: AlmanacError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))
