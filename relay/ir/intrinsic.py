"""Functions that Python's syntax calls: the surface IR applies them as `Static(Intrinsic(name))`. The table of
overloads has their rules, and those of Relay's own functions, under the name that these carry as `__relay_builtin__`.

unpack(x, before, after)     the components of `a, b, *rest, c = x`: a, b, (the middle), c
spread(x, ..)                one tuple of the components of all: `(*a, b)` is spread(a, (b,))
call(f, x)                   `f(*x)`
each(x)                      the elements of x one by one, which must be known: of a dict comprehension
growing(xs)                  the list xs as one that can grow
unset()                      the content of a cell whose variable has no value yet: an empty list that grows
unassigned(name)             what a variable is before a loop that assigns it first
assigned(x)                  x, which must have a value
generated(xs, risk)          the list xs of what a generator makes; why it must not be left early, if there is a reason
keep(c)                      c, of which the checker may know whether it holds: the `if` of a comprehension
list(x, ..)                  `[x, ..]`; list(parts=n) is `[]` to which tuples of n parts are appended
append(x, v)                 the list after `x.append(v)`
pop(xs, i), insert(xs, i, v), clear(xs), reverse(xs), remove(xs, v), sort(xs, key=, reverse=), update(d, e)
                             as append; of pop the element and the list
__next__(it)                 as pop, of the first element; a method of an object
extend(d, k, v)              the record with one more field: `{k: v for ..}`
given_back(r, x, ..)         the result of a function with the parameters that it has changed
set_field(p, name, v)        the record after `p.name = v`
inherited(p, C, name)        `super().name` of an object p in a method of the class C
augment(p, op, v)            `p += v` where a class has `__iadd__`
is_same(x, y)                `x is y` of objects that are known
is_none(x)                   `x is None`
contains(x, xs)              `x in xs`
format(text, x, format, ..)  an f-string
print(x, .., sep, end)       `print`
enter_rng.use(key), enter_params.use(values), leave_handler()
                             the `with` of a handler of effects
error_text(codes)            the text of an error that is caught
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
        return self.name


IN_PLACE = {
    "add": "__iadd__", "subtract": "__isub__", "multiply": "__imul__", "divide": "__itruediv__", "mod": "__imod__",
    "floor_divide": "__ifloordiv__", "power": "__ipow__", "matmul": "__imatmul__", "bitwise_and": "__iand__",
    "bitwise_or": "__ior__", "bitwise_xor": "__ixor__", "left_shift": "__ilshift__", "right_shift": "__irshift__",
}  # fmt: skip
"""The methods of augmented assignments, by the operators."""
