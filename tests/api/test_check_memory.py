"""What the check of a file remembers: which functions are looked at again after a change."""

from __future__ import annotations

from random import Random

import pytest

from relay.api.checked_file import CheckedFile, CheckMemory, types_by_place
from relay.api.static_check import Check

HEAD = "import numpy as np\nimport relay as rl\nfrom relay import Float, Tensor, relay\n\nSIZE = 3\nOTHER = 4\n\n"
TEXT = (
    HEAD
    + """\
@relay
def square(x):
    return x * x

@relay
def first(x: Tensor[Float, (SIZE,)]):
    unused = x + 1.0
    return square(x) + rl.ones((4,))

@relay
def second(x: Tensor[Float, (OTHER,)]):
    return x.sum()

@rl.data
class Point:
    x: Tensor[Float, ()]

    def twice(self):
        return self.x * 2.0
"""
)


def checked(text: str, memory: CheckMemory) -> CheckedFile:
    return Check().file(text, "model.py", memory)


@pytest.mark.parametrize(
    ("old", "new", "renewed"),
    [
        ("", "", 0),
        ("", "\n# a remark\n\n", 0),
        ("x.sum()", "x.max()", 1),
        ("SIZE = 3", "SIZE = 5", 1),
        ("return x * x", "return x + x", 2),
        ("OTHER = 4", "OTHER = 6", 1),
        ("self.x * 2.0", "self.x * 3.0", 1),
        ("import numpy as np", "import numpy", 0),
        ("SIZE = 3", "SIZE = 3\nprint(SIZE)", 0),
        ("SIZE = 3", "SIZE = 3\nSIZE = 4", 1),
        ("@rl.data", "@rl.overload(np.sinc)\ndef sinc(x):\n    return x\n\n@rl.data", 5),
    ],
)
def test_only_what_may_have_changed_is_checked_again(old: str, new: str, renewed: int) -> None:
    memory = CheckMemory()
    assert checked(TEXT, memory).renewed == 4
    assert checked(TEXT.replace(old, new, 1), memory).renewed == renewed


@pytest.mark.parametrize("change", ["\n\n\n", "# größer\n"])
def test_what_is_remembered_moves_with_its_text(change: str) -> None:
    memory = CheckMemory()
    checked(TEXT, memory)
    moved, anew = checked(change + TEXT, memory), checked(change + TEXT, CheckMemory())
    assert moved.renewed == 0 and anew.renewed == 4
    assert [d.render() for d in moved.diagnostics] == [d.render() for d in anew.diagnostics]
    assert len(moved.diagnostics) == 2 and "cannot be broadcast" in moved.diagnostics[1].message
    assert types_by_place(moved.functions, "model.py") == types_by_place(anew.functions, "model.py")
    assert [(f.name, f.type, str(f.span)) for f in moved.functions] == [
        (f.name, f.type, str(f.span)) for f in anew.functions
    ]


def test_the_same_text_at_another_place_of_the_order_is_another_function() -> None:
    twice = HEAD + "@relay\ndef f(x):\n    return x\n\n@relay\ndef f(x):\n    return x\n"
    memory = CheckMemory()
    checked(twice, memory)
    assert checked(twice, memory).renewed == 0
    assert checked(twice.replace("return x\n\n", "return x[0] + x.nothing\n\n"), memory).renewed > 0


def test_a_memory_changes_no_diagnostics() -> None:
    plain = Check().text(TEXT, "model.py")
    assert [d.render() for d in plain] == [d.render() for d in checked(TEXT, CheckMemory()).diagnostics]


def test_surroundings_decide_too() -> None:
    memory = CheckMemory()
    Check().file(TEXT, "model.py", memory, "one")
    assert Check().file(TEXT, "model.py", memory, "two").renewed == 4
    assert Check().file(TEXT, "model.py", memory, "one").renewed == 0


DEPENDENT = """import relay
from relay import Float, Tensor, dims, relay as rl
(n,) = dims("n")
K = 3
R = Tensor[Float, (n,)]
@rl
def a(x: R): return x * K
@rl
def b(x: R, k=K):
    return a(x) + k
@rl
def c(x: Tensor[Float, (K,)]):
    return b(x).sum() + d(x)
@rl
def d(y):
    return y.max() * L
L = 2.0
@rl.data
class P:
    x: R
    def m(self): return a(self.x)
@a.def_gradient
def backward(saved, seed):
    (x,) = saved
    return seed * K
g = relay.grad(c)
@rl
def h(x: Tensor[Float, (K,)]): return g(x)
"""


def test_after_any_change_a_check_with_a_memory_finds_what_one_without_finds() -> None:
    """Functions that are remembered are not even read, unless others need them: names may be bound twice, or later."""
    random = Random(0)
    memory = CheckMemory()

    def result(text: str, memory: CheckMemory) -> object:
        found = checked(text, memory)
        functions = sorted((f.name, str(f.type), str(f.span)) for f in found.functions)
        places = {place: sorted(types) for place, types in types_by_place(found.functions, "model.py").items()}
        return sorted(d.render() for d in found.diagnostics), functions, places

    text = DEPENDENT
    for number in range(30):
        lines = (text if number % 3 else DEPENDENT).split("\n")
        at, other = random.randrange(len(lines)), random.randrange(len(lines))
        match random.randrange(6):
            case 0:
                lines[at], lines[other] = lines[other], lines[at]
            case 1:
                lines[at] = lines[at].replace("x", "y", 1)
            case 2:
                lines[at] = lines[at].replace("K", "4").replace("*", "+")
            case 3:
                lines.insert(at, "# a remark")
            case 4:
                lines.insert(at, "K = 5")
            case _:
                lines.insert(at, "@rl\ndef a(x): return x - 1.0")
        text = "\n".join(lines)
        assert result(text, memory) == result(text, CheckMemory()), text
