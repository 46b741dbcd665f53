"""`==`, `!=` and `in` of what may be None at run time: None equals None alone."""

from __future__ import annotations

import pytest
from agreement import assert_as_python

from relay import relay

pytestmark = pytest.mark.usefixtures("low_effort")


def first_above(xs, bound):
    for x in xs:
        if x > bound:
            return x
    return None


def kind(xs, bound, wanted):
    found = first_above(xs, bound)
    if found == wanted:
        return 1, found + 1
    if found in (7, 8):
        return 2, found * 2
    if found != 9:
        return 3, 0
    return 4, found


def agreement(xs, low, high):
    one, other = first_above(xs, low), first_above(xs, high)
    return one == other, [one] == [other], one == None, other != None  # noqa: E711


def winner(board):
    for a, b, c in [(0, 1, 2), (0, 2, 1), (3, 4, 5)]:
        if board[a] != " " and board[a] == board[b] == board[c]:
            return board[a]
    return None


def outcome(board, place, player):
    board[place] = player
    mark = winner(board)
    if mark == "X":
        return 1
    return -1 if mark == "O" else 0


class Reader:
    def __init__(self, words):
        self.words = words
        self.position = 0

    def peek(self):
        return self.words[self.position] if self.position < len(self.words) else None

    def skip_signs(self):
        count = 0
        while self.peek() in ("+", "-"):
            self.position += 1
            count += 1
        return count, self.peek() == "end"


def signs(text):
    return Reader(text.split()).skip_signs()


@pytest.mark.parametrize("arguments", [([1, 5, 8], 2, 5), ([1, 5, 8], 9, 5), ([1, 5, 8], 6, 5), ([1, 5, 9], 6, 5)])
def test_values_are_compared_where_there_are_any(arguments) -> None:
    assert_as_python(relay(kind), kind, arguments)


@pytest.mark.parametrize("bounds", [(1, 1), (1, 5), (5, 7), (1, 2)])
def test_none_equals_none_alone(bounds) -> None:
    assert_as_python(relay(agreement), agreement, ([1, 2, 3], *bounds))


@pytest.mark.parametrize("arguments", [(0, "X"), (0, "O"), (5, "O"), (4, "X")])
def test_texts_are_compared_where_there_are_any(arguments) -> None:
    board = [" ", "X", "X", "O", "O", " "]
    expected = outcome(list(board), *arguments)
    for run in (relay(outcome), relay(outcome).interpret):
        assert run(list(board), *arguments) == expected


@pytest.mark.parametrize("text", ["+ - end", "+ -", "end", "+ x end"])
def test_membership_of_what_may_be_none(text) -> None:
    assert_as_python(relay(signs), signs, (text,))
