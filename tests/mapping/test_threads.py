"""Pieces of work in threads: results in order, errors raised."""

from __future__ import annotations

import pytest

from mapping.threads import cores, each


def test_results_are_in_the_order_of_the_pieces() -> None:
    assert each(lambda piece: piece * piece, range(5)) == [0, 1, 4, 9, 16]
    assert each(str, [7]) == ["7"]
    assert each(str, []) == []
    assert cores() >= 1


def test_the_error_of_a_piece_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        each(lambda piece: 1 // piece, [2, 1, 0])
