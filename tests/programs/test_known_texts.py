"""Programs that take strings which are known: they run as in Python, and a loop over them is not copied for each."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from agreement import assert_as_python

from relay import relay

pytestmark = pytest.mark.usefixtures("low_effort")

PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "^": 3}


def postfix(text):
    output, operators, number = [], [], ""
    for c in text + " ":
        if c.isdigit():
            number += c
            continue
        if number:
            output.append(number)
            number = ""
        if c in PRECEDENCE:
            while operators and operators[-1] != "(" and PRECEDENCE[operators[-1]] >= PRECEDENCE[c]:
                output.append(operators.pop())
            operators.append(c)
        elif c == "(":
            operators.append(c)
        elif c == ")":
            while operators[-1] != "(":
                output.append(operators.pop())
            operators.pop()
    return output + operators[::-1]


def run_lengths(text):
    if not text:
        return ""
    out, last, count = [], text[0], 1
    for c in text[1:]:
        if c == last:
            count += 1
        else:
            out.append(f"{count}{last}" if count > 1 else last)
            last, count = c, 1
    out.append(f"{count}{last}" if count > 1 else last)
    return "".join(out)


def most_frequent(text):
    counts = Counter(c for c in text.lower() if c.isalpha())
    letter, n = counts.most_common(1)[0]
    return letter, n


def trie(words):
    children, ends = [{}], [False]
    for word in words:
        node = 0
        for c in word:
            if c not in children[node]:
                children[node][c] = len(children)
                children.append({})
                ends.append(False)
            node = children[node][c]
        ends[node] = True
    return children, ends


def contains(made, word):
    children, ends = made
    node = 0
    for c in word:
        if c not in children[node]:
            return False
        node = children[node][c]
    return ends[node]


def looked_up(words, queries):
    made = trie(words)
    return [contains(made, query) for query in queries], len(made[0])


def as_numerals(n):
    text = ""
    for value, name in [(10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]:
        while n >= value:
            text += name
            n -= value
    return text


@pytest.mark.parametrize(
    ("program", "calls"),
    [
        (postfix, [("1+2*(3-4)*5",), ("(1)",)]),
        (run_lengths, [("aaabccd",), ("",)]),
        (most_frequent, [("Wkh wuhh lv juhhq",)]),
        (looked_up, [(["cart", "car", "dog", "do", "cat", "a"], ["ca"])]),
        (as_numerals, [(49,)]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_programs_of_known_texts_are_pythons(program: Any, calls: list[tuple[Any, ...]]) -> None:
    for arguments in calls:
        assert_as_python(relay(program), program, arguments)


def test_programs_do_not_grow_with_their_texts() -> None:
    def lines(text: str) -> int:
        return str(relay(most_frequent).typed(text)).count("\n")

    assert lines("attack at the first light of day, " * 3) < 1.2 * lines("attack at the first light")


def test_a_known_dict_has_keys_of_the_run() -> None:
    def known(text, i):
        c = text[i]
        return c in PRECEDENCE, PRECEDENCE.get(c, -1), i in {3: 1.0, 4: 2.0}

    for arguments in (("a*", 0), ("a*", 1)):
        assert_as_python(relay(known), known, arguments)


def test_elements_of_a_list_that_begins_with_nothing_are_compared_with_strings() -> None:
    def opened(text, n):
        waiting, closed = [], 0
        for i in range(n):
            while waiting and waiting[-1] != "(" and waiting[-1] not in ("[", "{"):
                waiting.pop()
                closed += 1
            if waiting and f"{i}" == waiting[-1]:
                closed += 100
            waiting.append(text[i])
        return closed, len(waiting)

    for text in ("a(b[c", "ab2(", "a("):
        assert_as_python(relay(opened), opened, (text, len(text)))
