"""Functions that Python's syntax calls: the surface IR applies them as `Static(Intrinsic(name))`.

    unpack(x, before, after)     the components of `a, b, *rest, c = x`: a, b, (the middle), c
    spread(x, ..)                one tuple of the components of all: `(*a, b)` is spread(a, (b,))
    call(f, x)                   `f(*x)`
    each(x)                      the elements of x one by one, so that a `for` over them is unrolled
    unrolled(x)                  as each where the elements are known, otherwise x: a `for` whose body appends to a list
    keep(c)                      c, which must be known before the program runs: the `if` of a comprehension
    list(x, ..)                  `[x, ..]`
    append(x, v)                 the list after `x.append(v)`
    extend(d, k, v)              the record with one more field: `{k: v for ..}`
    is_none(x)                   `x is None`
    contains(x, xs)              `x in xs`
    format(text, x, format, ..)  an f-string
    print(x, .., sep, end)       `print`
    assert(c, text)              an assertion with an f-string
"""

from __future__ import annotations

import attrs


@attrs.frozen
class Intrinsic:
    """A function that Python's syntax calls, by its name."""

    name: str

    @property
    def __relay_builtin__(self) -> str:
        return f"intrinsic {self.name}"
