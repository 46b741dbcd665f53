"""The translation of branches and loops to surface IR."""

from __future__ import annotations

from surface_programs import blocks, lower, only, source_of, values

from relay.ir import expr, surface

# ---- if


def test_if_yields_what_is_read_later() -> None:
    function = lower(
        """
        def f(x):
            t = 0
            if x > 0:
                y = x
                t = x + 1
            else:
                y = 1
                u = 3
            return y
        """
    )
    binding = function.body.bindings[-1]
    assert [v.name for v in binding.targets] == ["y"]
    ends = [binding.value.arms[0].body.terminator, binding.value.orelse.terminator]
    assert all(isinstance(end, expr.Yield) and len(end.values) == 1 for end in ends)


def test_if_without_else_yields_the_old_value() -> None:
    function = lower("def f(x):\n    if x > 0:\n        x = 1\n    return x\n")
    binding = function.body.bindings[-1]
    assert binding.value.orelse.terminator.values == function.parameters
    assert function.body.terminator.values == binding.targets


def test_elif_chains_are_flat() -> None:
    count = 300
    arms = "".join(f"    elif x == {i}:\n        y = {i}\n" for i in range(count))
    function = lower(f"def f(x):\n    if x < 0:\n        y = 5\n{arms}    else:\n        y = 2\n    return y\n")
    chain = only(function, expr.If)
    assert len(chain.arms) == count + 1
    assert chain.arms[0].condition.bindings == () and len(chain.arms[1].condition.bindings) == 1


def test_elif_with_walrus_nests() -> None:
    function = lower(
        """
        def f(x):
            if x:
                y = 1
            elif (z := g(x)):
                y = z
            else:
                y = z + 1
            return y
        """
    )
    outer = function.body.bindings[-1].value
    assert isinstance(outer, expr.If) and len(outer.arms) == 1
    assert [v.name for v in outer.orelse.bindings[-1].targets] == ["y"]


def test_early_return_leaves_several_constructs() -> None:
    function = lower(
        "def f(x):\n    while x > 0:\n        if x == 5:\n            return 7\n        x = x - 1\n    return x\n"
    )
    exits = [b.terminator for b in blocks(function.body) if isinstance(b.terminator, expr.Exit)]
    assert [end.label is function.label for end in exits] == [True, True, False]
    guard = next(v for b in blocks(function.body) for v in values(b) if isinstance(v, expr.If) and len(b.bindings) > 2)
    assert isinstance(guard.arms[0].body.terminator, expr.Exit)
    assert guard.orelse.terminator.values == ()


def test_guards_stay_flat() -> None:
    text = "def f(x):\n" + "    if x > 3:\n        return x\n    x = x + 1\n" * 2000 + "    return x\n"
    function = lower(text)
    assert len(function.body.bindings) == 6000


def test_if_that_never_yields_ends_its_block() -> None:
    function = lower("def f(x):\n    if x > 0:\n        return 1\n    else:\n        return 2\n")
    assert function.body.bindings[-1].targets == ()
    assert isinstance(function.body.terminator, expr.Dead)


# ---- loops


def test_while_carries_what_a_round_reads() -> None:
    function = lower(
        """
        def f(x, k):
            t = 0
            s = 0
            while x > 0:
                t = x * k
                s = s + t
                x = x - 1
            return s
        """
    )
    binding = function.body.bindings[-1]
    loop = binding.value
    assert isinstance(loop, expr.Loop) and loop.counter is None
    assert [v.name for v in loop.parameters] == ["s", "x"]
    assert [v.name for v in binding.targets] == ["s"]
    assert loop.initial[1] is function.parameters[0]
    choice = loop.body.bindings[-1].value
    assert isinstance(choice, expr.If) and isinstance(loop.body.terminator, expr.Dead)
    assert isinstance(choice.arms[0].body.terminator, expr.Next)
    assert choice.orelse.terminator.values == (loop.parameters[0],)
    assert source_of(loop.span) == "while x > 0"


def test_endless_while_has_no_condition() -> None:
    function = lower(
        """
        def f(x):
            while True:
                y = x + 1
                if y > 3:
                    break
                x = y
            return y
        """
    )
    binding = function.body.bindings[-1]
    assert isinstance(binding.value, expr.Loop) and [v.name for v in binding.targets] == ["y"]
    assert [v.name for v in binding.value.parameters] == ["x"]
    assert isinstance(binding.value.body.terminator, expr.Next)


def test_loop_that_only_returns_is_followed_by_dead() -> None:
    function = lower("def f(x):\n    while True:\n        if x > 3:\n            return x\n        x = x + 1\n")
    assert function.body.bindings[-1].targets == ()
    assert isinstance(function.body.terminator, expr.Dead)


def test_while_else() -> None:
    function = lower(
        """
        def f(x):
            y = 0
            while x > 0:
                if x == 5:
                    break
                x = x - 1
            else:
                y = 1
            return y
        """
    )
    loop = only(function, expr.Loop)
    done = loop.body.bindings[-1].value.orelse
    assert isinstance(done.bindings[0].value, expr.Static)
    assert done.terminator.values == done.bindings[0].targets


def test_for_loop() -> None:
    function = lower(
        """
        def f(xs, s):
            for x in xs:
                if x < 0:
                    continue
                if x > 9:
                    break
                s = s + x
            return s
        """
    )
    binding = function.body.bindings[-1]
    loop = binding.value
    assert isinstance(loop, surface.ForEach) and loop.iterable is function.parameters[0]
    assert loop.element.name == "x" and loop.initial == (function.parameters[1],)
    assert [v.name for v in binding.targets] == ["s"]
    skip, leave = [v for v in values(loop.body) if isinstance(v, expr.If)]
    assert isinstance(skip.arms[0].body.terminator, expr.Next)
    assert skip.arms[0].body.terminator.values == loop.parameters
    assert isinstance(leave.arms[0].body.terminator, expr.Exit)
    assert leave.arms[0].body.terminator.values == loop.parameters
    assert source_of(loop.span) == "for x in xs"


def test_for_with_a_pattern() -> None:
    loop = only(lower("def f(xs):\n    for i, x in enumerate(xs):\n        g(i, x)\n"), surface.ForEach)
    unpack = loop.body.bindings[0]
    assert unpack.value.value is loop.element and [v.name for v in unpack.targets] == ["i", "x"]


def test_for_target_that_is_read_afterwards_is_carried() -> None:
    function = lower("def f(xs):\n    x = 0\n    for x in xs:\n        pass\n    return x\n")
    loop = only(function, surface.ForEach)
    assert [v.name for v in loop.parameters] == ["x"] and loop.parameters[0] is not loop.element
    assert loop.body.terminator.values == (loop.element,)


def test_break_of_a_for_with_else_leaves_the_else_too() -> None:
    function = lower(
        """
        def f(xs):
            for x in xs:
                if x > 0:
                    y = x
                    break
            else:
                return 0
            return y
        """
    )
    (whole,) = [b for b in function.body.bindings if isinstance(b.value, expr.Loop)]
    assert [v.name for v in whole.targets] == ["y"]
    (inner,) = whole.value.body.bindings
    assert isinstance(inner.value, surface.ForEach) and inner.targets == ()
    left = inner.value.body.bindings[-1].value.arms[0].body.terminator
    assert isinstance(left, expr.Exit) and left.label is whole.value.label
    assert isinstance(whole.value.body.terminator, expr.Exit)
    assert whole.value.body.terminator.label is function.label


def test_for_else_without_break_is_what_follows() -> None:
    function = lower("def f(xs, y):\n    for x in xs:\n        y = y + x\n    else:\n        y = y * 2\n    return y\n")
    assert [type(v).__name__ for v in values(function.body)] == ["ForEach", "OpCall"]


def test_inner_continue_and_outer_variables() -> None:
    function = lower(
        """
        def f(xs, s):
            for x in xs:
                i = 0
                while i < x:
                    i = i + 1
                    if i == 3:
                        continue
                    s = s + i
            return s
        """
    )
    outer, inner = only(function, surface.ForEach), only(function, expr.Loop)
    assert [v.name for v in outer.parameters] == ["s"]
    assert {v.name for v in inner.parameters} == {"i", "s"}


def test_deep_loops_take_no_exponential_time() -> None:
    depth = 18
    nest = "".join("    " + " " * i + f"while x > {i}:\n" for i in range(depth))
    function = lower(f"def f(x):\n{nest}{' ' * (depth + 5)}x = x - 1\n    return x\n")
    assert len(list(blocks(function.body))) > depth


def test_a_loop_does_not_carry_what_its_else_assigns() -> None:
    function = lower(
        """
        def f(x, y, k):
            t = (x, y)
            if k > 2:
                t = (x, x)
            for i in range(k):
                t = (y, x)
                y = y + x
            else:
                t = (y, y)
            return t
        """
    )
    loop = next(v for v in values(function.body) if isinstance(v, surface.ForEach))
    assert [p.name for p in loop.parameters] == ["y"]
