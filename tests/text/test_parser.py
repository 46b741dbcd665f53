"""The text of modules: what is printed is read back, and what is wrong is an error at its place."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest
from zoo import Program, programs

import relay
from relay.calling.results import wrap
from relay.errors import ExecutionError, FrontendError, RelayError, TypeCheckError
from relay.eval import interpreter
from relay.eval.values import Data
from relay.ir.analysis.alpha import alpha_equal
from relay.ir.expr import Assert, Binding, Block, Constant, Derivative, Exit, Function, LoopLabel, Module, OpCall, Var
from relay.ir.traverse import walk
from relay.ir.types import BASE_TYPES, BOOL, BaseType, Constructor, DataDefinition, DataType, Kind, scalar, show
from relay.ir.validation.check import check
from relay.text.parser import parse
from relay.text.printer import to_text
from relay.text.type_parser import parse_type
from relay.transform.core.specialization import specialize

ALL = programs()


def stages(program: Program) -> Iterator[Module]:
    """A program's modules, and its gradient's."""
    functions = [program.function, *([relay.grad(program.function)] if program.differentiable else [])]
    for function in functions:
        typed = function.typed(*program.arguments)
        yield typed
        if function is not program.function:
            yield specialize(typed)  # with pending derivatives
        yield function.core(*program.arguments)


def parse_back(module: Module) -> Module:
    """The module read from its own text."""
    text = to_text(module)
    read = parse(text)
    assert alpha_equal(read, module)
    assert to_text(read) == text
    return read


@pytest.mark.parametrize("program", ALL, ids=lambda p: p.name)
def test_the_zoo_is_read_back(program: Program) -> None:
    for module in stages(program):
        parse_back(module)


@pytest.mark.parametrize("program", ALL[::6], ids=lambda p: p.name)
def test_what_is_read_back_runs_the_same(program: Program) -> None:
    lowered = program.function.lower(*program.arguments)
    values = lowered.values
    core = lowered.core
    if any(isinstance(value, Data) for value in values):
        return  # values belong to the program's own definitions, and a text makes others
    first, second = (interpreter.run(module, values) for module in (parse_back(core), core))
    assert repr(wrap(first, lowered.result)) == repr(wrap(second, lowered.result))


def test_pending_derivatives_are_among_the_stages() -> None:
    pending = [f for p in ALL[:20] for m in stages(p) for f in m.functions.values() if isinstance(f, Derivative)]
    assert len(pending) > 10


# ---- constants


def constant_module(array: np.ndarray) -> Module:
    """A function that returns an array."""
    constant = Constant(array)
    label, result = LoopLabel("f"), Var("result", constant.type)
    body = Block((Binding((result,), constant),), Exit(label, (result,)))
    return Module({"f": Function("f", (), body, label, constant.type)}, "f")


def constant_of(module: Module) -> np.ndarray:
    value = module.main.body.bindings[0].value
    assert isinstance(value, Constant)
    return value.value


def assert_exact(array: np.ndarray) -> None:
    read = constant_of(parse_back(constant_module(array)))
    assert read.dtype == array.dtype and read.shape == array.shape and read.tobytes() == array.tobytes()


FLOATS = [
    0.0, -0.0, 1.0, 0.1, 1 / 3, 1e-45, -5e-324, 1.1754942e-38, 6e-8, 65504.0, 3.4028235e38, 1.7976931348623157e308,
    np.inf, -np.inf, np.nan, 123456789.0, 8.5899346e9, 16777217.0,
]  # fmt: skip


@pytest.mark.parametrize("base", list(BASE_TYPES.values()), ids=str)
def test_constants_are_exact(base: BaseType) -> None:
    if base.is_float:
        with np.errstate(over="ignore"):
            values = np.array(FLOATS).astype(base.dtype)
    elif base.name == "bool":
        values = np.array([True, False])
    else:
        information = np.iinfo(base.name)
        values = np.array([information.min, 0, 1, information.max], base.dtype)
    for value in values:
        assert_exact(np.asarray(value))
    assert_exact(values[:4].reshape(2, 2) if len(values) >= 4 else values)
    assert_exact(np.tile(values, 20))
    for empty in ((0,), (0, 3), (2, 0)):
        assert_exact(np.zeros(empty, base.dtype))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_every_number_of_16_bits_is_exact(dtype: type) -> None:
    every: np.ndarray = np.arange(65536, dtype=np.uint16).view(dtype)
    assert_exact(every)
    for value in every[::257]:
        assert_exact(np.asarray(value))


@pytest.mark.parametrize("bits", [0x7FC00001, 0xFFC00000, 0x7F800001])
def test_an_unusual_nan_keeps_its_bits(bits: int) -> None:
    assert_exact(np.array(bits, np.uint32).view(np.float32))


def test_many_floats_are_exact() -> None:
    bits = np.random.default_rng(0).integers(0, 1 << 32, 600, dtype=np.uint64).astype(np.uint32)
    values = bits.view(np.float32)
    for start in range(0, len(values), 15):
        assert_exact(values[start : start + 15])


def test_a_long_constant_is_shared_and_may_be_elided() -> None:
    constant = Constant(np.linspace(0, 1, 60).reshape(20, 3))
    label, variables = LoopLabel("f"), [Var(n, constant.type) for n in "ab"]
    bindings = (Binding((variables[0],), constant), Binding((variables[1],), OpCall("add", (variables[0], constant))))
    body = Block(bindings, Exit(label, (variables[1],)))
    module = Module({"f": Function("f", (), body, label, constant.type)}, "f")
    assert to_text(module).count('= "') == 1
    parse_back(module)
    short = to_text(module, elide=True)
    assert "constants {" not in short and to_text(module).startswith(short)
    with pytest.raises(FrontendError, match="does not hold the elements of constant#0"):
        parse(short)


def test_constants_not_in_row_major_order() -> None:
    read = constant_of(parse(to_text(constant_module(np.arange(40.0).reshape(5, 8).T))))
    np.testing.assert_array_equal(read, np.arange(40.0).reshape(5, 8).T)


# ---- what the zoo does not hold


def test_names_that_are_no_identifiers() -> None:
    data = DataDefinition("Größe <1>")
    name = "<lambda>"
    data.constructors = (Constructor("No thing", ()), Constructor("Some", (DataType(data),), ("the rest",)))
    label, x = LoopLabel("a b"), Var("größe %", DataType(data))
    module = Module({name: Function(name, (x,), Block((), Exit(label, (x,))), label, DataType(data))}, name, (data,))
    read = parse_back(module)
    assert list(read.functions) == [name]
    assert read.data[0].constructors[1].names == ("the rest",)


def test_data_types_with_one_name_are_told_apart() -> None:
    """Two classes of different Python modules may have one name, and a module may mention one that it does not list."""
    first, second = DataDefinition("D", (Constructor("A", ()),)), DataDefinition("D", (Constructor("B", ()),))
    reserved = DataDefinition("Ref", (Constructor("C", (DataType(second),)),))
    label, x, y = LoopLabel("f"), Var("x", DataType(first)), Var("y", DataType(reserved))
    function = Function("f", (x, y), Block((), Exit(label, (x,))), label, DataType(first))
    read = parse_back(Module({"f": function}, "f", (first,)))
    assert [d.name for d in read.data] == ["D", "Ref1", "D1"]


def test_texts_with_any_characters() -> None:
    text = 'quote " backslash \\ newline \n tab \t é \u2028 \ud800 { } # %x \x00'
    label, x = LoopLabel("f"), Var("x", scalar(BOOL))
    body = Block((Binding((), Assert(x, text)),), Exit(label, (x,)))
    module = Module({"f": Function("f", (x,), body, label, scalar(BOOL))}, "f")
    read = parse_back(module).main.body.bindings[0].value
    assert isinstance(read, Assert) and read.message == text


def test_lambdas_in_consecutive_bindings_see_each_other() -> None:
    module = parse(
        """
        fn f(%x: Tensor[float32, ()]) -> Tensor[float32, ()] {
          let %g: fn() -> Tensor[float32, ()] = fn g() -> Tensor[float32, ()] {
            let %inner: fn() -> Tensor[float32, ()] = fn inner() -> Tensor[float32, ()] { %x };
            let %y: Tensor[float32, ()] = %h();
            %y
          };
          let %h: fn() -> Tensor[float32, ()] = fn h() -> Tensor[float32, ()] {
            let %y: Tensor[float32, ()] = %g();
            %y
          };
          let %z: Tensor[float32, ()] = %h();
          %z
        }
        """
    )
    parse_back(module)


def test_declarations_in_any_order_with_comments() -> None:
    module = parse(
        """
        # the functions come first
        fn g(%d: D) -> Tensor[int32, ()] {   # one arm
          let %n: Tensor[int32, ()] = match %d { Leaf(%n: Tensor[int32, ()], %e: E) -> { yield %n } };
          %n
        }
        entry fn f() -> Tensor[int32, ()] {
          let %e: E = E.Empty();
          let %d: D = D.Leaf(-3i32, %e);
          let %r: Tensor[int32, ()] = @g(%d);
          %r
        }
        data D { Leaf(Tensor[int32, ()], E) }
        data E { Empty, Full(D) }
        """
    )
    assert module.entry == "f"
    assert interpreter.run(module, ()) == -3
    parse_back(module)


@pytest.mark.parametrize(
    "text",
    [
        "Tensor[float32, ()]",
        "Tensor[bfloat16, (3, Any)]",
        "()",
        "(Tensor[bool, ()],)",
        "fn((), Ref[Stack[Tensor[int8, (2,)]]]) -> fn() -> ()",
        "forall (a: Type) (b: BaseType) (s: Shape) (n: Dim). fn(a, Tensor[b, s], Tensor[b, (*s, n, 4)]) -> (a, a)",
    ],
)
def test_types(text: str) -> None:
    assert show(parse_type(text)) == text


def test_polymorphic_data_types() -> None:
    """Parameters of every kind; a data type that mentions itself at other arguments, and one that is declared later."""
    text = """
    data Tree[a: Type, n: Dim] {
      Leaf(a, Tensor[float32, (n, 2*n + 1)]), Node(Tree[(a, a), 2*n], Pair[float32, (n, 3)])
    }
    data Pair[b: BaseType, s: Shape] { Pair(left: Tensor[b, s], right: Tensor[b, (*s, 4)]) }
    fn f(%x: ()) -> () { %x }
    """
    module = parse(text)
    tree, pair = module.data
    assert [p.kind for p in (*tree.parameters, *pair.parameters)] == [Kind.Type, Kind.Dim, Kind.BaseType, Kind.Shape]
    again = parse(to_text(module))
    assert alpha_equal(again, module) and to_text(again) == to_text(module)
    assert alpha_equal(parse(text.replace("a: Type", "c: Type").replace("(a", "(c").replace(" a)", " c)")), module)
    assert not alpha_equal(parse(text.replace("(a, a), 2*n", "(a, a), n")), module)
    for wrong, message in (
        ("Tree[(a, a)]", "`Tree` has 2 arguments, found 1"),
        ("Tree", "expected `[` and what stands for a, n"),
        ("Tree[(a, a), a]", "expected a dim"),
    ):
        with pytest.raises(FrontendError, match=re.escape(message)):
            parse(text.replace("Tree[(a, a), 2*n]", wrong))


@pytest.mark.parametrize("program", ALL[::5], ids=lambda p: p.name)
def test_places_are_read_back(program: Program) -> None:
    def places(module: Module) -> list[str]:
        functions = [f for f in module.functions.values() if isinstance(f, Function)]
        found = [b.value.span for f in functions for b in walk(f.body) if not isinstance(b.value, Var | Constant)]
        return [str(s) for s in (*(f.span for f in functions), *found) if s is not None]

    for module in stages(program):
        text = to_text(module, spans=True)
        read = parse(text)
        assert alpha_equal(read, module)
        assert set(places(module)) <= set(places(read))
        assert to_text(read) == to_text(module)


def test_an_error_in_a_program_with_places_points_into_the_source() -> None:
    text = """
    fn f(%x: Tensor[int32, ()]) -> Tensor[int32, ()] at "0:7:1-7:4" {
      let %c: Tensor[bool, ()] = equal(%x, 0i32) at "0:8:12-8:18";
      assert %c "x is not 0" at "0:8:5-8:18";
      %x
    }
    sources { "model.py" 7 "def f(x):\\n    assert x == 0"; }
    """
    with pytest.raises(ExecutionError) as caught:
        interpreter.run(parse(text), [np.int32(1)])
    assert "model.py:8:5" in str(caught.value) and "assert x == 0" in str(caught.value)
    for wrong in ("0:8:5", "1:8:5-8:18", "here"):
        with pytest.raises(FrontendError, match="a place is `source:line:column-line:column`"):
            parse(text.replace("0:8:5-8:18", wrong))


def test_long_texts_at_the_default_recursion_limit() -> None:
    lines = [f"let %x{i + 1}: Tensor[float32, ()] = add(%x{i}, 1.0f32);" for i in range(3000)]
    module = parse("fn f(%x0: Tensor[float32, ()]) -> Tensor[float32, ()] {\n" + "\n".join(lines) + "\n%x3000\n}")
    assert len(module.main.body.bindings) == 3000


# ---- errors: «..» marks the place

F = "Tensor[float32, ()]"
ERRORS = [
    ("", "fn f() -> () { «?» }", "the character '?' begins nothing"),
    ("", 'fn f() -> () { assert true «"»no; }', "no closing quote on its line"),
    ("", "fn f() -> () «{» ", "this `{` is never closed"),
    ("", "fn f(«}» -> ()", "expected `)`, found `}`"),
    ("", "«)»", "nothing that this `)` closes"),
    ("", "«let» %x = 1", "expected `fn`, `entry fn`, `data`, `derivative` or `constants`, found `let`"),
    ("", "«»", "a module has at least one function"),
    ("", 'module "m" stage «late»; fn f() -> () { dead }', "a stage is typed or core or structured"),
    ("", "type V = (); type «V» = (); fn f() -> () { dead }", "there is a type `V` already"),
    ("", "entry fn f() -> () { dead } entry fn «g»() -> () { dead }", "a module has one entry"),
    ("", "fn f() -> () { dead } fn «f»() -> () { dead }", "the function `f` is defined twice"),
    ("", "data D { A } data «D» { B }", "the data type `D` is declared twice"),
    ("", "data D { A, «A» }", "`D` has two constructors `A`"),
    ("", "data «Ref» { A }", "`Ref` is the name of a type of the language"),
    ("", "fn f(%x«)» -> () { %x }", "expected `:` and the type of the variable, found `)`"),
    ("", "fn f(%x: «Tenser»[float32, ()]) -> () { %x }", "there is no type `Tenser`; did you mean `Tensor`?"),
    ("", "fn f(%x: Tensor[«float23», ()]) -> () { %x }", "no element type `float23`; did you mean `float32`?"),
    ("", "fn f(%x: Tensor[float32, (3«)»]) -> () { %x }", "expected `,`, found `)`; a tuple with one item"),
    ("", "fn f(%x: Tensor[float32, («n»,)]) -> () { %x }", "expected a dim: a number, `Any` or a variable"),
    ("", "fn f(%x: ()) «{» %x }", "expected `->` and the type of the result, found `{`"),
    ("x", "let %y: {F} = %x; «%z»", "there is no variable `%z`"),
    ("first", "«%fist»", "there is no variable `%fist`; did you mean `%first`?"),
    ("x", "let «%x»: {F} = 1.0f32; %x", "%x is bound twice"),
    ("x", "let %y: {F} = do { let %z: {F} = %x; yield %z }; «%z»", "%z is used outside of the block that binds it"),
    ("x", "let %y: {F} = «mutliply»(%x, %x); %y", "no operator `mutliply`; did you mean `multiply`?"),
    ("x", "let %y: {F} = sum(%x, axis=none, «axis»=none); %y", "the attribute `axis` is given twice"),
    ("x", "let %y: {F} = sum(%x, axis=«oops»); %y", "expected the value of an attribute, found `oops`"),
    ("x", "let %y: {F} = sum(%x, «axes»=none); %y", "there is no attribute of sum `axes`; did you mean `axis`?"),
    ("x", "let %y: {F} = «@g»(%x); %y", "there is no function `@g`"),
    ("x", "let %y: {F} = «Lust».Nil(); %y", "there is no data type `Lust`"),
    ("x", "let %y: {F} = «1.5»; %y", "the number 1.5 has no dtype; write 1.5f32, for example"),
    ("x", "let %y: {F} = 1.5«f23»; %y", "there is no dtype `f23`; did you mean `f32`?"),
    ("x", "let %y: {F} = «1.5i32»; %y", "1.5 is not an element of int32"),
    ("x", "let %y: {F} = «300u8»; %y", "the numbers do not fit uint8"),
    ("x", "let %y: {F} = «[[1, 2], [3]]i32»; %y", "the rows of an array have one length"),
    ("", "fn f(%x: ()) -> () { let %y: () = %x «}»", "expected `;`, found `}`"),
    ("", "fn f(%x: ()) -> () { let %y: () = %x; «}»", "expected a statement or the result, found `}`; a block"),
    ("x", "let %y: {F} = do { %x «}» ; %y", "expected `;`, found `}`; a block ends in"),
    ("x", "%x «%x»", "expected `;`, found `%x`"),
    ("x", "return %x«;» %x", "expected `}` after the end of the block"),
    ("x", "next «'l»(%x)", "there is no loop around this `'l`"),
    ("x", "let %y: {F} = if %x «{» yield %x } else { yield %x }; %y", "expected `then`, found `{`"),
    ("x", "let %y: {F} = «iff» %x; %y", "expected an expression, found `iff`"),
    ("x", "let %y: {F} = «apply» %x(); %y", "`apply` is allowed in untyped programs only"),
    ("x", "let %y: {F} = %x.«shape»; %y", "expected the index of a component, found `shape`"),
    ("x", "let %y: {F} = grad{«wtr»=(0,)} %x; %y", "no option of `grad` `wtr`; did you mean `wrt`?"),
    ("x", "let %y: {F} = grad{wrt=«0»} %x; %y", "`wrt` is a tuple of integers"),
    ("x", "let %y: {F} = «constant#0»[float32, (3,)]; %y", "does not hold the elements of constant#0"),
    ("", 'fn f() -> () { dead } constants { constant#0: Tensor[float32, (1,)] = «"AAA"»; }', "this is not base64 text"),
    ("", 'fn f() -> () { dead } constants { constant#0: Tensor[float32, (1,)] = «"AAAA"»; }', "3 bytes where the type"),
    (
        "",
        f'fn f() -> () {{ dead }} constants {{ constant#0: Tensor[bool, (0, {10**30})] = «""»; }}',
        "there is no array of this shape",
    ),
    ("x", f"let %y: Tensor[float32, («{'9' * 5000}»,)] = %x; %y", "a number has at most 1000 characters"),
    ("", "entry fn f() -> () { dead } derivative g: fn() -> () = grad «@h»", "there is no function `@h`"),
    ("x", "let %y: {F} = «reshape(%x)»; %y", "reshape needs the attribute `shape`"),
    ("x", "let %y: {F} = sum(%x, keepdims=«1»); %y", "the attribute `keepdims` is `true` or `false`"),
    ("x", "let %y: {F} = «3»; %y", "the number 3 has no dtype; write 3i32, for example"),
    ("", f"data D {{ «C(a: {F}, a: {F})» }} fn f() -> () {{ dead }}", "two fields of `C` have one name"),
    # what only the types show
    ("x", "let %y: {F} = if «%x» then { yield %x } else { yield %x }; %y", "the condition: expected Tensor[bool, ()]"),
    ("x", "let %y: {F} = «%x.1»; %y", "Tensor[float32, ()] has no component 1"),
    ("x", "let %y: {F} = loop 'l (%z: {F} = %x) { «next 'l()» }; %y", "`next 'l`: expected 1 value, found 0"),
    ("x", "let %y: {F} = «match %x» { A -> { yield %x } }; %y", "`match` on Tensor[float32, ()], which"),
    (
        "",
        "data D { A, B(()) } fn f(%d: D) -> D { match %d { A -> { return %d } B(«%u»: D) -> { return %d } }; dead }",
        "the fields of B: expected (), found D",
    ),
    ("x", "let %y: {F} = «reshape(%x, shape=3)»; %y", "reshape(Tensor[float32, ()], shape=3): "),
    ("x", "let %y: Tensor[int32, ()] = «add(%x, %x)»; %y", "%y: expected Tensor[int32, ()], found Tensor[float32, ()]"),
    ("x", "let %y: {F} = «add(%x, 1i32)»; %y", "add(Tensor[float32, ()], Tensor[int32, ()])"),
    ("x", "let %y: {F} = «sum(%x, axis=float32, keepdims=false)»; %y", "sum(Tensor[float32, ()], axis=float32"),
    ("x", "let %y: {F} = «sum(%x, axis=float32)»; %y", "an axis must be an integer, found float32"),
    ("x", "let %y: {F} = «%x()»; %y", "a call of Tensor[float32, ()]"),
    ("x", "«()»; %x", "a statement without `let`: expected 0 values, found 1"),
    ("x", "«yield %x»", "`yield` outside of an arm"),
    # brackets: the first place where the text goes wrong, not where another bracket has no company
    ("x", "let %y: Tensor[float32, () «=» add(%x, %x); %y", "expected `]`, found `=`"),
    ("x", "let %y: {F} = add(%x, %x«;» %y", "expected `,` or `)`, found `;`"),
    ("x", "let %y: {F} = «add» %x, %x); %y", "expected an expression, found `add`"),
    ("x", "let %y: {F} = if %x then «(» yield %x } else { yield %x }; %y", "expected `{`, found `(`"),
    ("x", "let %y: {F} = if %x then { yield %x «else» { yield %x }; %y", "expected `}` after the end of the block"),
    ("x", "let %y: {F} = «ad»(%x, %x; %y", "there is no operator `ad`"),
    ("x", "let %y: {F} = add(%x, [1.0, 2.0«f32»); %y", "expected `,` or `]`, found `f32`"),
    ("", "fn f(%x: ()) -> () «let» %y: () = %x; %y } fn g() -> () { dead }", "expected `{`, found `let`"),
    ("", "fn f(%x: ()) -> () «{» let %y: () = @g(%x); %y\nfn g(%x: ()) -> () { %x }", "this `{` is never closed"),
    ("", "fn f() -> () { let %g: fn() -> () = fn g() -> Tensor[«[»float32, ()] { dead }; dead }", "expected"),
    ("", "fn f(%x: Tensor[float32, ()«)» -> () { dead }", "expected `]`, found `)`"),
    ("", "fn f(%x: Tensor«,» ()]) -> () { dead }", "expected `[` behind `Tensor`, found `,`"),
    ("", "fn f(%x: Ref«)» -> () { dead }", "expected `[` behind `Ref`, found `)`"),
]  # fmt: skip


@pytest.mark.parametrize(("parameter", "text", "message"), ERRORS, ids=itertools.count())
def test_errors_have_a_place(parameter: str, text: str, message: str) -> None:
    if parameter:
        text = f"fn f(%{parameter}: {F}) -> {F} {{\n  {text.replace('{F}', F)}\n}}"
    before, place, after = re.split("[«»]", f"# a comment\n{text}")
    with pytest.raises(RelayError) as caught:
        parse(before + place + after, "model.relay")
    error = caught.value
    assert isinstance(error, FrontendError | TypeCheckError)
    assert message in error.message + (f"; {error.help}" if error.help else "")
    assert error.span is not None
    assert (error.span.line, error.span.column) == (before.count("\n") + 1, len(before) - before.rfind("\n"))
    if place:
        assert error.span.end_column - error.span.column == len(place)


def test_an_error_shows_the_line() -> None:
    with pytest.raises(FrontendError) as caught:
        parse("fn f(%x: ()) -> () {\n  %y\n}", "model.relay")
    assert str(caught.value) == "model.relay:2:3: error: there is no variable `%y`\n  |\n2 |   %y\n  |   ^^"


def test_deep_nesting_is_an_error() -> None:
    with pytest.raises(FrontendError, match="nested too deeply"):
        parse("fn f(%x: " + "(" * 5000 + ",)" * 5000 + ") -> () { %x }")


def test_the_checked_module_is_well_formed() -> None:
    check(parse("fn f(%x: ()) -> () { %x }"), "structured")


def test_a_float_to_the_power_of_an_integer() -> None:
    """The value and derivative of x ** 3 and x ** n, and other operators still want one dtype."""
    text = """entry fn f(%x: Tensor[float32, (3,)], %n: Tensor[int8, ()]) -> Tensor[float32, ()] {
  let %y: Tensor[float32, (3,)] = power(%x, 3i32);
  let %z: Tensor[float32, (3,)] = power(%x, %n);
  let %t: Tensor[float32, (3,)] = add(%y, %z);
  let %s: Tensor[float32, ()] = sum(%t);
  %s
}

derivative slope: fn(Tensor[float32, (3,)], Tensor[int8, ()]) -> Tensor[float32, (3,)] = grad{wrt=(0,)} @f
"""
    module = relay.parse(text)
    x, n = np.array([1, 2, -3], np.float32), np.array(-1, np.int8)
    assert relay.compile(module)(x, n) == pytest.approx(1 + 8 - 27 + 1 + 1 / 2 - 1 / 3)
    slope = relay.compile(module, "slope")(x, n)
    np.testing.assert_allclose(slope, [3 - 1, 12 - 1 / 4, 27 - 1 / 9], rtol=1e-6)
    with pytest.raises(RelayError, match="add needs operands of one dtype"):
        relay.parse(text.replace("power(%x, 3i32)", "add(%x, 3i32)"))
