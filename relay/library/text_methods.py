"""Methods of run-time strings, on the code points of their characters: Python's, for all of Unicode.

What a character is, Python says when this file is first needed; programs search in sorted tables of code points.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import relay
from relay import Int32, Tensor
from relay.library.texts import String, bounds, contains, endswith, find, same, startswith
from relay.typecheck.elaboration.library.overloads import library_function

_CODES = np.arange(0x110000, dtype=np.uint32).view("U1")


def _bounds(holds: np.ndarray) -> np.ndarray:
    """The places where a property begins and ends to hold, in turn, over all code points."""
    return np.flatnonzero(np.diff(holds.astype(np.int8), prepend=0, append=0)).astype(np.int32)


_UPPER, _LOWER, _TITLE = np.char.isupper(_CODES), np.char.islower(_CODES), np.char.istitle(_CODES)
UPPER, LOWER, TITLE = _bounds(_UPPER), _bounds(_LOWER), _bounds(_TITLE & ~_UPPER)
SPACES, LETTERS = _bounds(np.char.isspace(_CODES)), _bounds(np.char.isalpha(_CODES))
DIGITS, DECIMALS = _bounds(np.char.isdigit(_CODES)), _bounds(np.char.isdecimal(_CODES))
NUMERALS, ALPHANUMERIC = _bounds(np.char.isnumeric(_CODES)), _bounds(np.char.isalnum(_CODES))
PRINTABLE = _bounds(np.array([chr(code).isprintable() for code in range(0x110000)]))


def _changes(method: str) -> tuple[np.ndarray, np.ndarray]:
    """The code points that a method of strings changes, and what it makes of each: up to three, then -1."""
    found = {}
    for character in _CODES[_UPPER | _LOWER | _TITLE].tolist():
        changed = getattr(character, method)()
        if changed != character:
            found[ord(character)] = [*map(ord, changed), -1, -1][:3]
    keys = sorted(found)
    return np.array(keys, np.int32), np.array([found[key] for key in keys], np.int32)


UPPER_KEYS, UPPER_PARTS = _changes("upper")
LOWER_KEYS, LOWER_PARTS = _changes("lower")
TITLE_KEYS, TITLE_PARTS = _changes("title")


# ---- what characters are


@library_function()
def membership(codes, bounds):
    """True for the characters that are in one of the ranges between these sorted bounds."""
    return np.searchsorted(bounds, codes, side="right") % 2 == 1


@library_function()
def all_within(codes, bounds):
    """True if there are characters, and all are in these ranges."""
    return len(codes) > 0 and bool(membership(codes, bounds).all())


@library_function()
def isspace(codes):
    return all_within(codes, SPACES)


@library_function()
def isalpha(codes):
    return all_within(codes, LETTERS)


@library_function()
def isdigit(codes):
    return all_within(codes, DIGITS)


@library_function()
def isdecimal(codes):
    return all_within(codes, DECIMALS)


@library_function()
def isnumeric(codes):
    return all_within(codes, NUMERALS)


@library_function()
def isalnum(codes):
    return all_within(codes, ALPHANUMERIC)


@library_function()
def isascii(codes):
    return bool((codes < 128).all())


@library_function()
def isupper(codes):
    other = membership(codes, LOWER).any() or membership(codes, TITLE).any()
    return bool(membership(codes, UPPER).any()) and not other


@library_function()
def islower(codes):
    other = membership(codes, UPPER).any() or membership(codes, TITLE).any()
    return bool(membership(codes, LOWER).any()) and not other


# ---- cases


@library_function()
def substitute(codes, keys, parts):
    """The characters with those of a table in place of its keys."""
    rows = np.minimum(np.searchsorted(keys, codes), keys.shape[0] - 1)
    same = np.stack((codes, np.full_like(codes, -1), np.full_like(codes, -1)), axis=1)
    flat = np.where((keys[rows] == codes)[:, None], parts[rows], same).reshape(-1)
    return flat[flat >= 0]


@library_function()
def upper(codes):
    return String(substitute(codes, UPPER_KEYS, UPPER_PARTS))


@library_function()
def lower(codes):
    assert not (codes == 0x3A3).any(), "the lower case of the letter sigma depends on its word"
    return String(substitute(codes, LOWER_KEYS, LOWER_PARTS))


@library_function()
def capitalize(codes):
    rest = lower(codes[min(1, len(codes)) :])
    return String(relay.concatenate((substitute(codes[: min(1, len(codes))], TITLE_KEYS, TITLE_PARTS), rest.codes)))


# ---- ends


@library_function()
def trimmed(codes, chars, from_left, from_right):
    """The code points without these at their ends; without spaces, where `chars` is None."""
    removed = membership(codes, SPACES) if chars is None else (codes[:, None] == chars[None, :]).any(axis=1)
    start, stop = 0, len(codes)
    if from_left:
        while start < stop and removed[start]:
            start += 1
    if from_right:
        while stop > start and removed[stop - 1]:
            stop -= 1
    return codes[start:stop]


@library_function()
def strip(codes, chars=None, /):
    return String(trimmed(codes, chars, True, True))


@library_function()
def lstrip(codes, chars=None, /):
    return String(trimmed(codes, chars, True, False))


@library_function()
def rstrip(codes, chars=None, /):
    return String(trimmed(codes, chars, False, True))


@library_function()
def removeprefix(codes, prefix, /):
    return String(codes[len(prefix) :] if startswith(codes, prefix) else codes)


@library_function()
def removesuffix(codes, suffix, /):
    return String(codes[: len(codes) - len(suffix)] if endswith(codes, suffix) else codes)


@library_function()
def padded(codes, width, fill, place):
    """The code points with others before and behind them; place: 0 at the left, 1 at the right, 2 in the middle."""
    missing = max(width - len(codes), 0)
    before = 0 if place == 0 else missing if place == 1 else missing // 2
    return relay.concatenate((repeat(fill, before), codes, repeat(fill, missing - before)))


@library_function()
def repeat(fill, times):
    """One character so many times."""
    assert fill.shape[0] == 1, "the fill character must be exactly one character long"
    return relay.zeros((times,), relay.Int32) + fill


@library_function()
def ljust(codes, width, fillchar=np.array([32], np.int32), /):  # noqa: B008
    return String(padded(codes, width, fillchar, 0))


@library_function()
def rjust(codes, width, fillchar=np.array([32], np.int32), /):  # noqa: B008
    return String(padded(codes, width, fillchar, 1))


@library_function()
def center(codes, width, fillchar=np.array([32], np.int32), /):  # noqa: B008
    missing = max(width - len(codes), 0)
    before = missing // 2
    if missing % 2 == 1 and width % 2 == 1:
        before += 1
    return String(relay.concatenate((repeat(fillchar, before), codes, repeat(fillchar, missing - before))))


@library_function()
def zfill(codes, width, /):
    signed = 0
    if len(codes) > 0 and (codes[0] == 43 or codes[0] == 45):
        signed = 1
    zeros = repeat(np.array([48], np.int32), max(width - len(codes), 0))
    return String(relay.concatenate((codes[:signed], zeros, codes[signed:])))


@library_function()
def formatted(codes, width, precision, fill, place):
    """A string as an f-string with a format writes it."""
    kept = codes[: min(len(codes), precision)] if precision is not None else codes
    return String(padded(kept, width, fill, place))


# ---- parts


@library_function()
def rfind(codes, part, start=0, end=None, /):
    first, last = bounds(codes, start, end)
    place = last - len(part)
    while place >= first:
        if same(codes[place : place + len(part)], part):
            return place
        place -= 1
    return -1


@library_function()
def index(codes, part, start=0, end=None, /):
    place = find(codes, part, start, end)
    assert place >= 0, "the string has no such part: `index` of a string that is not in it"
    return place


@library_function()
def rindex(codes, part, start=0, end=None, /):
    place = rfind(codes, part, start, end)
    assert place >= 0, "the string has no such part: `rindex` of a string that is not in it"
    return place


@library_function()
def count(codes, part, start=0, end=None, /):
    found = 0
    place = find(codes, part, start, end)
    while place >= 0:
        found += 1
        place = find(codes, part, place + max(len(part), 1), end)
    return found


@library_function()
def replace(codes, old, new, count=-1, /):
    made: Tensor[Int32, (Any,)] = relay.zeros((0,), relay.Int32)
    start = 0
    done = 0
    place = find(codes, old)
    while place >= 0 and (count < 0 or done < count):
        made = relay.concatenate((made, codes[start:place], new))
        assert len(made) <= 10_000, "a string has more than 10000 characters"
        start = place + len(old)
        done += 1
        place = find(codes, old, start + (1 if len(old) == 0 else 0))
    return String(relay.concatenate((made, codes[start:])))


@library_function()
def split(codes, sep=None, maxsplit=-1):
    found: list[String] = []
    start = 0
    if sep is None:
        spaces = membership(codes, SPACES)
        while start < len(codes) and spaces[start]:
            start += 1
        while start < len(codes):
            stop = start
            if 0 <= maxsplit <= len(found):
                found.append(String(codes[start:]))
                start = len(codes)
            else:
                while stop < len(codes) and not spaces[stop]:
                    stop += 1
                found.append(String(codes[start:stop]))
                start = stop
                while start < len(codes) and spaces[start]:
                    start += 1
    else:
        assert len(sep) > 0, "empty separator"
        place = find(codes, sep)
        while place >= 0 and (maxsplit < 0 or len(found) < maxsplit):
            found.append(String(codes[start:place]))
            start = place + len(sep)
            place = find(codes, sep, start)
        found.append(String(codes[start:]))
    return found


@library_function()
def splitlines(codes, keepends=False):
    found: list[String] = []
    start = 0
    while start < len(codes):
        stop = start
        while stop < len(codes) and not ends_line(codes[stop]):
            stop += 1
        after = min(stop + 1, len(codes))
        if after < len(codes) and codes[stop] == 13 and codes[after] == 10:
            after += 1
        found.append(String(codes[start : after if keepends else stop]))
        start = after
    return found


@library_function()
def ends_line(code):
    """True for the characters at which Python ends a line."""
    return 10 <= code <= 13 or 28 <= code <= 30 or code == 0x85 or code == 0x2028 or code == 0x2029


@library_function()
def partition(codes, sep, /):
    place = find(codes, sep)
    cut = place if place >= 0 else len(codes)
    after = place + len(sep) if place >= 0 else len(codes)
    return String(codes[:cut]), String(codes[cut:after]), String(codes[after:])


# ---- characters and numbers


@library_function()
def code_point(codes):
    assert len(codes) == 1, "ord needs one character"
    return codes[0]


@library_function()
def character(code):
    assert 0 <= code < 0x110000, f"chr needs a code point from 0 to 1114111, found {code}"
    return String(relay.reshape(code.astype(relay.Int32), (1,)))


@library_function()
def integer(codes):
    found = relay.parse_integer(codes)
    assert found[0] == 1, f"invalid literal for int() with base 10: {String(codes)!r}"
    return found[1].astype(relay.Int32)


@library_function()
def real(codes):
    found = relay.parse_float(codes)
    assert found[0] == 1.0, f"could not convert string to float: {String(codes)!r}"
    return found[1]


@library_function()
def quote(codes):
    """A string as Python writes it in a program."""
    mark = 39
    if (codes == 39).any() and not (codes == 34).any():
        mark = 34
    made: Tensor[Int32, (Any,)] = relay.zeros((1,), relay.Int32) + mark
    printable = membership(codes, PRINTABLE)
    for i in range(len(codes)):
        code = codes[i]
        one = relay.reshape(code, (1,))
        if code == mark or code == 92:
            made = relay.concatenate((made, np.array([92], np.int32), one))
        elif code == 9 or code == 10 or code == 13:
            letter = 116 if code == 9 else 110 if code == 10 else 114
            made = relay.concatenate((made, np.array([92], np.int32), relay.reshape(letter, (1,))))
        elif printable[i]:
            made = relay.concatenate((made, one))
        else:
            digits = 2 if code < 256 else 4 if code < 65536 else 8
            letter = 120 if code < 256 else 117 if code < 65536 else 85
            made = relay.concatenate((made, np.array([92], np.int32), relay.reshape(letter, (1,))))
            for place in range(digits):
                digit = (code >> (4 * (digits - 1 - place))) % 16
                made = relay.concatenate((made, relay.reshape(digit + (48 if digit < 10 else 87), (1,))))
    return String(relay.concatenate((made, relay.zeros((1,), relay.Int32) + mark)))


METHODS = {
    f.python.__name__: f
    for f in (
        *(isspace, isalpha, isdigit, isdecimal, isnumeric, isalnum, isascii, isupper, islower),
        *(upper, lower, capitalize, strip, lstrip, rstrip, removeprefix, removesuffix, ljust, rjust, center, zfill),
        *(find, rfind, index, rindex, count, replace, split, splitlines, partition, startswith, endswith),
    )
}
"""The methods; their arguments are those of Python's, strings as code points."""

FUNCTIONS = {f.python.__name__: f for f in (contains, quote, formatted, code_point, character, integer, real)}
