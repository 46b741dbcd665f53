"""Methods of run-time strings, numbers and strings made of each other, and formats, against Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree, assert_modes_raise

import relay
from relay.library import text_methods

TEXTS = ("", "  ab-c Abc\t", "x=1,y=22,", "ßdž\u2028é9 ŉΐ", "aaaa", "'it' \\ \n\x07\U0001f600")


def cases(s):
    return s.upper(), s.lower(), s.capitalize(), s.strip(), s.lstrip(), s.rstrip(), s.strip("xa ,")


def parts(s):
    return s.split(), s.split(","), s.split(" ", 1), s.split(None, 1), s.splitlines(), s.partition("=")


def places(s):
    replaced = s.replace("a", "QQ"), s.replace("aa", ""), s.replace("", ".", 3), s.replace("c", "d", 1)
    return replaced, s.find("b"), s.rfind("a"), s.count("a"), s.count("aa"), s.count(""), "c A" in s


def ends(s):
    return s.startswith("x"), s.startswith(("y", " ")), s.endswith(","), s.removeprefix("x="), s.removesuffix(",")


def kinds(s):
    return s.isalpha(), s.isalnum(), s.isdigit(), s.isspace(), s.isupper(), s.islower(), s.isascii(), s.isnumeric()


def padded(s):
    written = f"[{s:>12}|{s:.4}|{s:*^7.3}|{s!r}]"
    return written, s.ljust(12, "."), s.rjust(12), s.center(15, "*"), s.center(14, "*"), s.zfill(12)


def characters(s):
    return list(s), [k for k, c in enumerate(s) if c == "a"], sorted(s), "".join(c * 2 for c in s), s[::-1]


def plain(value: Any) -> Any:
    """A result with numbers as Python's."""
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value))
    return value if isinstance(value, str) else int(value)


ALL = (cases, parts, places, ends, kinds, padded, characters)
NATIVE = (
    *(lambda s: (s.upper(), s.strip(), s.split(",")), lambda s: (s.replace("a", "QQ"), s.center(15, "*"))),
    lambda s: (f"{s!r}", [k for k, c in enumerate(s) if c.isalpha()]),
)
"""Methods that stand for the others in compiled code: they are programs, which both modes run."""


def of_characters(methods: Callable[[str], Any]) -> Any:
    """What methods make of a string that is only known when the program runs."""
    return relay.relay(lambda codes: methods("".join(chr(c) for c in codes)))


def agrees(run: Callable[..., Any], methods: Callable[[str], Any]) -> None:
    for text in TEXTS[methods is characters :]:
        assert plain(run(np.array([*map(ord, text)], np.int32))) == plain(methods(text)), text


@pytest.mark.parametrize("methods", ALL, ids=lambda f: f.__name__)
def test_methods_of_strings_are_pythons(methods: Callable[[str], Any]) -> None:
    agrees(of_characters(methods).interpret, methods)


@pytest.mark.parametrize("methods", NATIVE, ids=("cases", "replaced", "characters"))
def test_methods_of_strings_are_compiled(methods: Callable[[str], Any]) -> None:
    agrees(of_characters(methods), methods)


def test_ranges_of_computed_sizes_may_be_empty() -> None:
    @relay.relay
    def pairs(x, least):
        kept = x[x > least]
        return sum(kept[i] * kept[i + 3] for i in range(len(kept) - 3)), len(range(len(kept) - 3))

    for least, expected in ((0.0, (14.0, 2)), (3.5, (0.0, 0)), (9.0, (0.0, 0))):
        assert [float(v) for v in assert_modes_agree(pairs, np.arange(1.0, 6.0), least)] == [*expected]


def test_tables_of_characters_are_pythons() -> None:
    for name in ("upper", "lower", "title"):
        keys = {*getattr(text_methods, f"{name.upper()}_KEYS").tolist()}
        changed = (code for code in range(0x30000) if getattr(chr(code), name)() != chr(code))
        assert keys == {*changed}


@relay.relay
def evaluated(text, x):
    total, number = 0.0, ""
    for c in text + "+":
        if c.isdigit() or c == ".":
            number += c
        elif number != "":
            total += float(number)
            number = ""
    shifted = "".join(chr((ord(c) - 97 + 3) % 26 + 97) if c.isalpha() else c for c in text)
    return total, int(str(int(x)) + "5"), shifted, f"{x:8.3f}|{x:e}|{int(x):05d}|{int(x):x}|{x}"


def test_numbers_are_read_from_strings_and_written_into_them() -> None:
    total, whole, shifted, written = assert_modes_agree(evaluated, "1.5+ab+22+xyz", 10.25)
    assert float(total) == 23.5 and int(whole) == 105 and shifted == "1.5+de+22+abc"
    assert written == f"{10.25:8.3f}|{10.25:e}|{10:05d}|{10:x}|10.25"
    for convert, message in ((int, "invalid literal for int"), (float, "could not convert string to float: '1x'")):
        failing = relay.relay(lambda i, convert=convert: convert("1x" if i > 0 else "2"))
        assert assert_modes_agree(failing, np.int32(0)) == 2
        assert_modes_raise(failing, np.int32(1), error=relay.ExecutionError, match=message)


def test_formats_and_quotes_of_f_strings_in_f_strings() -> None:
    @relay.relay
    def written(i):
        text = f"{i}bc"
        return f"{text:>5}|{text:_^7}|{text:.1}", f"{(text, i)} {text!r}", f"{f'{i}':>3}"

    assert assert_modes_agree(written, np.int32(3)) == ("  3bc|__3bc__|3", "('3bc', 3) '3bc'", "  3")


def test_limits_of_strings() -> None:
    @relay.relay
    def wide(i):
        return ("a" if i > 0 else "b").ljust(10_001)

    @relay.relay
    def place(i):
        return ("a" if i > 0 else "b").index("a")

    with pytest.raises(relay.ExecutionError, match="more than 10000 characters"):
        wide.interpret(np.int32(1))
    assert_modes_raise(place, np.int32(0), error=relay.ExecutionError, match="a string that is not in it")
    for write, line in (
        (lambda n: "n = " + n, r"'n = ' \+ str\(n\)"),
        (lambda n: n + ("a" if n > 2 else "b"), "its left operand is Tensor"),
        (lambda n: ("a" if n > 2 else "b").title(), "`title` does not take a run-time string"),
    ):
        with pytest.raises(relay.TypeCheckError, match=line):
            relay.relay(write).interpret(np.int32(3))


def test_exported_programs_may_compute_with_strings(tmp_path: Path) -> None:
    @relay.relay
    def codes(n):
        text = ""
        for i in range(n):
            text += "ab"[i % 2]
        return np.array([ord(c) for c in text.upper()])

    @relay.relay
    def named(n):
        return "even" if n % 2 == 0 else "odd"

    path = tmp_path / "codes.so"
    digest = codes.compile(np.int32(0)).export(path)
    assert relay.load(path, sha256=digest)(np.int32(3)).tolist() == [65, 66, 65]
    with pytest.raises(relay.RelayError, match=r"a string is an argument or result of it; "):
        named.compile(np.int32(0)).export(tmp_path / "named.so")
