"""Every rule of well-formed modules, by a module that breaks it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import relay.ops
from relay.errors import InternalError
from relay.ir.expr import (
    Arm,
    Assert,
    Atom,
    Binding,
    Block,
    Breakpoint,
    Call,
    Constant,
    Construct,
    Counter,
    Dead,
    Derivative,
    Exit,
    Expr,
    Function,
    Global,
    Grad,
    If,
    Lambda,
    Loop,
    LoopLabel,
    MakeTuple,
    Match,
    MatchArm,
    Module,
    Next,
    OpCall,
    Project,
    RefRead,
    StackLength,
    StackNew,
    StackPush,
    Static,
    Terminator,
    Var,
    Yield,
)
from relay.ir.rebuild import copy_function, substitute
from relay.ir.traverse import count_bindings, free_variables, operands, walk
from relay.ir.types import (
    BOOL,
    FLOAT32,
    INT32,
    Constructor,
    DataDefinition,
    DataType,
    FunctionType,
    Kind,
    RefType,
    StackType,
    TupleType,
    Type,
    TypeId,
    scalar,
)
from relay.ir.validation.check import Stage, check
from relay.text.printer import to_text

F, N, B = scalar(FLOAT32), scalar(INT32), scalar(BOOL)
ARROW = FunctionType((F,), F)
LABEL = LoopLabel("f")
X = Var("x", F)
ONE = Constant(np.asarray(1, np.float32))
TRUE = Constant(np.asarray(True))
OPTION = DataDefinition("Option", (Constructor("None", ()), Constructor("Some", (F,))))


def let(value: Expr, *types: Type | None, name: str = "y") -> Binding:
    return Binding(tuple(Var(name, t) for t in types), value)


def body(*bindings: Binding, end: Terminator | None = None) -> Block:
    return Block(bindings, end or Exit(LABEL, (X,)))


def returning(binding: Binding) -> Block:
    return body(binding, end=Exit(LABEL, (binding.targets[0],)))


def module(block: Block, *others: Function | Derivative, result: Type = F) -> Module:
    function = Function("f", (X,), block, LABEL, result)
    return Module({"f": function, **{o.name: o for o in others}}, "f", (OPTION,))


def choice(first: Block, second: Block) -> If:
    return If((Arm(Block((), Yield((TRUE,))), first),), second)


def give(*atoms: Atom) -> Block:
    return Block((), Yield(atoms))


def identity(name: str = "g") -> Function:
    label, x = LoopLabel(name), Var("x", F)
    return Function(name, (x,), Block((), Exit(label, (x,))), label, F)


def a_loop(end: Callable[[LoopLabel], Terminator], *targets: Type, parameter: Type = F, initial: Atom = ONE) -> Binding:
    label = LoopLabel("loop")
    return let(Loop(label, (Var("p", parameter),), (initial,), Block((), end(label))), *targets)


TWICE = let(ONE, F)
OUTER = LoopLabel("outer")
ESCAPE = Loop(
    OUTER,
    (),
    (),
    Block((Binding((), Loop(LoopLabel("inner"), (), (), Block((), Exit(OUTER, (X,))))),), Dead()),
)

VALID = [
    body(),
    body(let(OpCall("add", (X, ONE)), F)),
    body(let(choice(give(X, ONE), give(ONE, X)), F, F)),
    body(let(choice(give(X), body()), F)),
    body(let(choice(body(), body())), end=Dead()),
    body(a_loop(lambda label: Exit(label, (X,)), F)),
    body(a_loop(lambda label: Next(label, (X,))), end=Dead()),
    body(let(StackNew(F), StackType(F))),
    body(let(Construct(OPTION, "Some", (X,)), DataType(OPTION))),
    body(let(Lambda(identity()), ARROW)),
    body(let(Grad(Global("g")), ARROW)),
    returning(let(Call(Global("g"), (X,)), F)),
    body(let(ESCAPE, F)),
]


@pytest.mark.parametrize("block", VALID)
def test_valid(block: Block) -> None:
    check(module(block, identity()))


ESCAPED = Var("escaped", F)
INVALID: dict[str, tuple[Block, str]] = {
    "bound twice": (body(TWICE, TWICE), r"in f: %y is bound twice"),
    "not bound": (body(let(Var("ghost", F), F)), "%ghost is not bound before it is used"),
    "out of scope": (
        body(let(choice(Block((Binding((ESCAPED,), X),), Yield(())), give())), let(ESCAPED, F)),
        "%escaped is used out of its scope",
    ),
    "own target": (body(Binding((ESCAPED,), ESCAPED)), "%escaped is not bound"),
    "no type": (body(let(X, None)), "%y has no type"),
    "type variable": (body(let(X, TypeId("a", Kind.Type))), "%y: expected a, found Tensor"),
    "operator's type": (body(let(OpCall("add", (X, ONE)), N)), r"%y: expected Tensor\[int32"),
    "operator's operands": (body(let(OpCall("add", (X, TRUE)), F)), r"add\(Tensor\[float32, \(\)\], Tensor\[bool"),
    "no operator": (body(let(OpCall("never_registered", (X,)), F)), "there is no operator 'never_registered'"),
    "no function": (body(let(Call(Global("h"), (X,)), F)), "there is no function @h"),
    "arguments": (body(let(Call(Global("g"), (X, X)), F)), "the call of @g: expected 1 value, found 2"),
    "not a function": (body(let(Call(X, ()), F)), "a call of Tensor"),
    "arm's values": (body(let(choice(give(X), give(TRUE)), F)), r"`yield`: expected .*, found Tensor\[bool"),
    "arm's count": (body(let(choice(give(X), give()), F)), "`yield`: expected 1 value, found 0"),
    "condition": (body(let(If((Arm(give(X), give()),), give()))), r"the condition: expected Tensor\[bool"),
    "yield in a function": (body(end=Yield((X,))), "`yield` outside of an arm"),
    "function's result": (body(end=Exit(LABEL, (TRUE,))), r"the result of f: expected .*, found Tensor\[bool"),
    "next to a function": (body(end=Next(LABEL, (X,))), "`next` to the function f"),
    "foreign label": (body(end=Exit(LoopLabel("elsewhere"), (X,))), "`exit 'elsewhere`: no loop or function"),
    "dead end": (body(let(choice(give(), body())), end=Dead()), "`dead` after something that may end"),
    "dead and empty": (body(end=Dead()), "`dead` after something that may end"),
    "loop's next": (body(a_loop(lambda label: Next(label, ()))), "`next 'loop`: expected 1 value, found 0"),
    "loop's exit": (body(a_loop(lambda label: Exit(label, (X,)))), "`exit 'loop`: expected 0 values, found 1"),
    "loop's start": (
        body(a_loop(lambda label: Exit(label, ()), initial=TRUE)),
        r"the initial values of loop: expected .*, found Tensor\[bool",
    ),
    "count": (
        body(let(Loop(LoopLabel("l"), (), (), Block((), Next(LABEL, ())), Counter(Var("i", F), X)))),
        "the count of l is Tensor",
    ),
    "component": (body(let(Project(X, 0), F)), "has no component 0"),
    "tuple": (body(let(MakeTuple((X,)), TupleType((F, F)))), "%y: expected"),
    "match on a tensor": (body(let(Match(X, ()))), "`match` on Tensor"),
    "effect with a target": (body(let(Assert(TRUE, ""), F)), "%y: expected 1 value, found 0"),
    "assert": (body(let(Assert(X, ""))), r"`assert`: expected Tensor\[bool"),
    "reference": (body(let(RefRead(X), F)), "is used as a reference"),
    "stack": (body(let(StackLength(X), N)), "is used as a stack"),
    "push": (
        body(s := let(StackNew(F), StackType(F)), let(StackPush(s.targets[0], TRUE), StackType(F))),
        r"`push`: expected .*, found Tensor\[bool",
    ),
    "constructor": (body(let(Construct(OPTION, "Many", ()), DataType(OPTION))), "Option has no constructor Many"),
    "fields": (body(let(Construct(OPTION, "Some", (TRUE,)), DataType(OPTION))), "the fields of Some"),
    "missing arm": (
        body(
            o := let(Construct(OPTION, "None", ()), DataType(OPTION)),
            let(Match(o.targets[0], (MatchArm("None", (), give()),))),
        ),
        "expected arms for None, Some, found None",
    ),
    "grad": (body(let(Grad(Global("g"), wrt=(1,)), ARROW)), "grad of fn.*there is no 1"),
    "surface": (body(let(Static(1), N)), "Static belongs to the surface IR"),
}


@pytest.mark.parametrize("name", INVALID)
def test_invalid(name: str) -> None:
    block, message = INVALID[name]
    with pytest.raises(InternalError, match=message):
        check(module(block, identity()))


def test_a_whole_module_is_checked() -> None:
    with pytest.raises(InternalError, match="not a function of the module"):
        check(Module({}, "f"))
    with pytest.raises(InternalError, match="the function g is in the module as h"):
        check(Module({"h": identity()}, "h"))
    shared = identity()
    with pytest.raises(InternalError, match="belongs to two"):
        check(module(body(), Function("g", (Var("x", F),), shared.body, LABEL, F)))
    check(module(body(), copy_function(shared)))


CORE: dict[str, tuple[Block, str]] = {
    "lambda": (body(let(Lambda(identity("l")), ARROW)), "the function type .* in the core|a Lambda in the core"),
    "grad": (body(let(Grad(Global("g")), ARROW)), "the function type .* in the core|a Grad in the core"),
    "breakpoint": (body(let(Breakpoint())), "a Breakpoint in the core"),
    "function value": (body(let(Global("g"), ARROW)), "@g is used as a value in the core"),
    "function type": (body(let(StackNew(ARROW), StackType(ARROW))), "the function type .* in the core"),
    "reference to functions": (body(let(StackNew(RefType(ARROW)), StackType(RefType(ARROW)))), "the function type"),
}


@pytest.mark.parametrize("name", CORE)
def test_the_core_has_no_function_values(name: str) -> None:
    block, message = CORE[name]
    check(module(block, identity()))
    with pytest.raises(InternalError, match=message):
        check(module(block, identity()), "core")


def test_pending_derivatives() -> None:
    grad = Grad(Global("g"), wrt=(0,))
    pending = Derivative("d", "g", ARROW, grad)
    called = returning(let(Call(Global("d"), (X,)), F))
    for stage in ("core", "structured"):
        check(module(called, identity(), pending), stage)
    with pytest.raises(InternalError, match="of stage typed"):
        check(module(called, identity(), pending))
    with pytest.raises(InternalError, match="is not a derivative of"):
        check(module(body(), identity(), Derivative("d", "g", FunctionType((F,), N), grad)), "core")
    captured = FunctionType((F, F), F)  # g with its parameter captured has no gradient; here the second one is
    label, x, y = LoopLabel("h"), Var("x", F), Var("y", F)
    two = Function("h", (x, y), Block((), Exit(label, (x,))), label, F)
    check(module(body(), two, Derivative("d", "h", captured, grad)), "core")


STRUCTURED: dict[str, tuple[Block, str | None]] = {
    "arms yield": (body(let(choice(give(X), give(ONE)), F)), None),
    "arms leave": (body(let(choice(body(), body())), end=Dead()), None),
    "a nested tail": (
        body(let(choice(Block((let(choice(body(), body())),), Dead()), body())), end=Dead()),
        None,
    ),
    "mixed": (body(let(choice(give(X), body()), F)), "some arms yield and others leave"),
    "targets": (body(let(choice(body(), body()), F), end=Dead()), "no arm yields, but there are targets"),
    "not last": (body(let(choice(body(), body())), let(X, F), end=Exit(LABEL, (X,))), "follows an If that never ends"),
    "leaving a loop and the function": (
        body(a_loop(lambda label: Exit(LABEL, (X,))), end=Dead()),
        "leaves several constructs at once",
    ),
    "leaving two loops": (body(let(ESCAPE, F)), "leaves several constructs at once"),
    "leaving from a condition": (
        body(let(If((Arm(body(), give()),), give()))),
        "no loop or function of this label",
    ),
}


@pytest.mark.parametrize("name", STRUCTURED)
def test_the_structured_form(name: str) -> None:
    block, message = STRUCTURED[name]
    check(module(block), "core")
    stage: Stage = "structured"
    if message is None:
        check(module(block), stage)
    else:
        with pytest.raises(InternalError, match=message):
            check(module(block), stage)


# ---- looking at and rebuilding parts


def test_a_copy_binds_everything_anew_and_is_otherwise_equal() -> None:
    label, x, first, second, n = LoopLabel("f"), Var("x", F), Var("first", ARROW), Var("second", ARROW), Var("n", N)
    loop, p, captured = LoopLabel("loop"), Var("p", F), Var("captured", F)
    inner_label, y = LoopLabel("first"), Var("y", F)
    # Two lambdas of which the first uses the second, and a loop that leaves the function.
    one = Function(
        "first",
        (y,),
        Block((Binding((z := Var("z", F),), Call(second, (captured,))),), Exit(inner_label, (z,))),
        inner_label,
        F,
    )
    leaving = Loop(loop, (p,), (x,), Block((), Exit(label, (p,))), Counter(Var("i", N), n))
    block = Block(
        (Binding((first,), Lambda(one)), Binding((second,), Lambda(identity())), let(leaving, F)),
        Exit(label, (captured,)),
    )
    function = Function("f", (x,), block, label, F)
    assert list(free_variables(function)) == [captured, n]
    assert count_bindings(block) == 4

    replacement = Var("captured", F)
    copy = copy_function(function, {captured: replacement})
    assert list(free_variables(copy)) == [replacement, n]
    assert to_text(copy) == to_text(function)
    old, new = ({v for b in walk(f.body) for v in b.targets} | set(f.parameters) for f in (function, copy))
    assert len(old) == len(new) and not old & new
    for f in (function, copy):  # both in one module: nothing is bound twice
        outer = Function(
            "m", (n, captured, replacement), Block((let(Lambda(f), ARROW),), Exit(OUTER, (ONE,))), OUTER, F
        )
        check(Module({"m": outer}, "m"))


def test_substitution_keeps_what_is_bound() -> None:
    block = body(let(OpCall("add", (X, X)), F))
    changed = substitute(block, {X: ONE})
    assert changed.bindings[0].targets is block.bindings[0].targets
    assert list(operands(changed.bindings[0].value)) == [ONE, ONE]
    assert not free_variables(changed)


def test_long_and_deep_programs_at_the_default_recursion_limit() -> None:
    bindings, last = [], X
    for _ in range(20_000):
        bindings.append(let(last, F))
        last = bindings[-1].targets[0]
    check(module(body(*bindings, end=Exit(LABEL, (last,)))))


def test_the_check_of_any_module_is_one_name() -> None:
    relay.ir.check(module(body(), identity()))
    with pytest.raises(InternalError):
        relay.ir.check(module(Block((), Yield((Var("x", F),), None))))
