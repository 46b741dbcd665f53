"""Python's functions of lists that are written in the language itself.

`typecheck/elaboration/library/ordering.py` calls them.

order__         the places of the keys in ascending (or descending) order, equal ones as they stand: a merge sort
keys__          the keys of elements
listed__        the list of what a `for` goes through
transposed__    the lists of first elements, of second ones, ..
chained__       the elements of all, one after the other
chosen__        the elements at some places
sorted_rows__   the numbers of a tensor of rank 1, in order
best__          the first element with the largest (or smallest) key; best_or__ has a default for a list of nothing
same__          whether two lists have equal elements
index__         where a value stands first, or -1
count__         how often a value stands in a list
rows__          the parts of a tensor along its first axis; column__ of a list of tuples
alone__         the elements of a list as tuples of one, joined__ with those of another list, as_lists__ as lists
pick__          a choice at run time
updated_one_by_one__  a tensor with elements at some places, by number, that are combined with new values in order
round_to__      a number rounded to a number of digits, exactly
itself__        its argument
tree_.._list__  what `relay.tree` does with a list of any length, tree_.._data__ with a value of a data type
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Sequence

from relay.frontend.lower import lower_function, lower_text
from relay.ir.definition import DataClass, Definition
from relay.ir.intrinsic import Intrinsic
from relay.ir.types import FLOAT64
from relay.operator import lookup

_TEXT = """
def order__(keys, reverse):
    order = [i for i in range(len(keys))]
    width = 1
    while width < len(order):
        merged = []
        start = 0
        while start < len(order):
            middle, end = min(start + width, len(order)), min(start + 2 * width, len(order))
            left, right = start, middle
            while left < middle or right < end:
                if right < end and (left >= middle or before__(keys[order[right]], keys[order[left]], reverse)):
                    merged.append(order[right])
                    right += 1
                else:
                    merged.append(order[left])
                    left += 1
            start = end
        order = merged
        width *= 2
    return order

def before__(a, b, reverse):
    return b < a if reverse else a < b

def keys__(xs, key):
    return [key(x) for x in xs]

def listed__(xs):
    return [x for x in xs]

def transposed__(rows):
    count = 0
    for i, row in enumerate(rows):
        count = len(row) if i == 0 else min(count, len(row))
    return [[row[i] for row in rows] for i in range(count)]

def chained__(*parts):
    found = []
    for xs in parts:
        found += [x for x in xs]
    return found

def chosen__(xs, order):
    return [xs[i] for i in order]

def sorted_rows__(x, reverse):
    y = sort__(x)
    return [v for v in (y[::-1] if reverse else y)]

def best__(xs, key, largest):
    best = xs[0]
    most = key(best)
    for x in xs[1:]:
        score = key(x)
        if before__(most, score, not largest):
            best, most = x, score
    return best

def best_or__(xs, key, largest, default):
    if len(xs) == 0:
        return default
    return best__(xs, key, largest)

def itself__(x):
    return x

def round_to__(x, scale, double, single):
    high, low, splitter, whole_from = double if x.dtype == float64__ else single
    product = x * scale
    if abs(product) >= whole_from:
        return x
    shifted = splitter * x
    upper = shifted - (shifted - x)
    rest = x - upper
    error = ((upper * high - product) + upper * low + rest * high) + rest * low
    below = floor__(product)
    found = round__(product)
    if product - below == 0.5 and error != 0.0:
        found = below + 1.0 if error > 0.0 else below
    divisor = scale if x == x else x  # no constant, by whose inverse code would multiply
    return found / divisor

def same__(xs, ys):
    if len(xs) != len(ys):
        return False
    for x, y in zip(xs, ys):
        if x != y:
            return False
    return True

def index__(xs, value):
    place = -1
    for i, x in enumerate(xs):
        if x == value:
            place = i
            break
    return place

def count__(xs, value):
    count = 0
    for x in xs:
        if x == value:
            count += 1
    return count

def rows__(x):
    return [row for row in x]

def column__(
    xs,
    place,  # relay: static
):
    return [x[place] for x in xs]

def alone__(xs):
    return [(x,) for x in xs]

def joined__(xs, ys):
    return [(*x, y) for x, y in zip(xs, ys)]

def as_lists__(xs):
    return [[*x] for x in xs]

def pick__(condition, a, b):
    return a if condition else b

def updated_one_by_one__(x, places, new, combine):
    elements, which = reshape__(x, (-1,)), reshape__(places, (-1,))
    values = reshape__(broadcast_to__(new, places.shape), (-1,))
    for k in range(len(which)):
        elements[which[k]] = combine(elements[which[k]], values[k])
    return reshape__(elements, x.shape)
"""


@functools.cache
def _definitions() -> dict[str, Definition]:
    names = {name: getattr(builtins, name) for name in ("range", "len", "min", "enumerate", "zip", "abs")}
    operators = {f"{name}__": lookup(name) for name in ("sort", "reshape", "broadcast_to", "floor", "round")}
    return lower_text(_TEXT, "<relay.library>", {**names, **operators, "float64__": FLOAT64})


def definition(name: str) -> Definition:
    """The function of that name. Raises KeyError."""
    return _definitions()[name]


def library_definition(python: Callable[..., object]) -> Definition:
    """A function of `relay/library`, whose text users do not see: what goes wrong in it is at their call."""
    return lower_function(python, shown_as=f"<relay.{python.__module__.rpartition('.')[2]}>")


# ---- trees


@functools.lru_cache(maxsize=1024)
def tree_function(name: str, count: int, of: DataClass | None) -> Definition:
    """The definition of `relay.tree` for this many trees of run-time structure: `map_list`, `reduce_list` and
    `leaves_list` of lists, `map_data` and `reduce_data` of values of a data type. `labeled`: a function of this many
    that gets them without the strings in them."""
    classes = {} if of is None else {f"{name}__": cls for name, cls in of.constructors.items()}
    names = {f"{name}__": Intrinsic(f"tree.{name}") for name in ("map", "reduce", "leaves")}
    names["labeled__"] = Intrinsic("labeled__")
    python = {name: getattr(builtins, name) for name in ("len", "zip")}
    text = _TREE_TEXTS[name] if of is None and name in _TREE_TEXTS else _tree_text(name, count, of)
    return next(iter(lower_text(text, "<relay.tree>", {**python, **names, **classes}).values()))


_TREE_TEXTS = {
    "reduce_list": """
def tree_reduce_list__(is_leaf, f, total, xs):
    for x in xs:
        total = reduce__(f, x, total, is_leaf)
    return total
""",
    "leaves_list": """
def tree_leaves_list__(is_leaf, xs):
    return [leaf for x in xs for leaf in leaves__(x, is_leaf)]
""",
}


def _tree_text(name: str, count: int, of: DataClass | None) -> str:
    trees = [f"x{index}" for index in range(count)]
    if name == "labeled":
        return _labeled_text(trees)
    if of is None:
        return _map_list_text(trees)
    lines = []
    for constructor, fields in of.fields.items():
        lines.append(f"        case {_pattern(constructor, fields, 0)}:")
        lines += _reduce_fields(fields) if name == "reduce_data" else _map_fields(constructor, fields, trees[1:])
    extra = "total, " if name == "reduce_data" else ""
    return f"def tree_{name}__(is_leaf, f, {extra}{', '.join(trees)}):\n    match x0:\n" + "\n".join(lines) + "\n"


def _labeled_text(names: list[str]) -> str:
    given = ", ".join(f"labeled__({name}, labels[{index}])" for index, name in enumerate(names))
    inner = f"    def labeled({', '.join(names)}):\n        return f({given})\n"
    return f"def tree_labeled__(f, labels):\n{inner}    return labeled\n"


def _map_list_text(trees: list[str]) -> str:
    first, *rest = trees
    if not rest:
        body = f"    return [map__(f, v, is_leaf=is_leaf) for v in {first}]\n"
        return f"def tree_map_list__(is_leaf, f, {first}):\n{body}"
    checks = "".join(f"    assert len({first}) == len({x}), {_LENGTHS!r}\n" for x in rest)
    items = ", ".join(f"v{index}" for index in range(len(trees)))
    return (
        f"def tree_map_list__(is_leaf, f, {', '.join(trees)}):\n{checks}"
        f"    return [map__(f, {items}, is_leaf=is_leaf) for {items} in zip({', '.join(trees)})]\n"
    )


_LENGTHS = "the lists of trees must have the same length"
_CONSTRUCTORS = "the trees must have the same structure"


def _pattern(constructor: str, fields: Sequence[str], tree: int) -> str:
    return f"{constructor}__({', '.join(f'{field}={_field(field, tree)}' for field in fields)})"


def _field(name: str, tree: int) -> str:
    return f"{name}_{tree}__"


def _reduce_fields(fields: Sequence[str]) -> list[str]:
    lines = [f"            total = reduce__(f, {_field(field, 0)}, total, is_leaf)" for field in fields]
    return [*lines, "            return total"]


def _map_fields(constructor: str, fields: Sequence[str], rest: Sequence[str]) -> list[str]:
    """The case of a constructor: the others must have the same one."""
    lines, indent = [], " " * 12
    for tree, other in enumerate(rest, 1):
        lines += [f"{indent}match {other}:", f"{indent}    case {_pattern(constructor, fields, tree)}:"]
        indent += " " * 8
    rows = (", ".join(_field(field, tree) for tree in range(len(rest) + 1)) for field in fields)
    parts = ", ".join(f"map__(f, {row}, is_leaf=is_leaf)" for row in rows)
    lines.append(f"{indent}return {constructor}__({parts})")
    for _ in rest:
        indent = indent[:-8]
        lines += [f"{indent}    case _:", f"{indent}        assert False, {_CONSTRUCTORS!r}"]
        lines.append(f"{indent}        return x0")
    return lines
