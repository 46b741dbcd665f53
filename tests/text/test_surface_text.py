"""Untyped programs as text: what is printed is read back and elaborates to the same; mistakes are errors at a place."""

from __future__ import annotations

import dataclasses
import itertools
import re

import attrs
import numpy as np
import pytest
from matrix import sample
from zoo import Program, programs

import relay
from relay.calling.arguments import describe
from relay.errors import FrontendError, RelayError, TypeCheckError
from relay.eval import interpreter
from relay.ir.analysis.alpha import alpha_equal
from relay.ir.definition import Definition
from relay.ir.expr import Module, Static
from relay.ir.validation.check_surface import check_surface
from relay.text.parser import parse
from relay.text.printer import to_text
from relay.typecheck.elaboration import Argument, StaticArg, elaborate

ALL = {p.name: p for p in programs()}


def parse_back(module: Module) -> Module:
    """The module read from its own text."""
    objects: dict[str, object] = {}
    text = to_text(module, objects=objects)
    assert text.startswith("surface")
    read = parse(text, objects=objects)
    assert to_text(read) == text
    assert alpha_equal(read, module) and read.alpha_hash() == module.alpha_hash()
    return read


@pytest.mark.parametrize("program", ALL.values(), ids=lambda p: p.name)
def test_the_zoo_is_read_back(program: Program) -> None:
    check_surface(program.function.surface)
    parse_back(program.function.surface)
    assert alpha_equal(parse(to_text(program.function.surface, spans=True)), program.function.surface)


BY_NAME = {
    "variables_of_shapes", "pairwise_sum",  # mention variables of types as values
    "named_layers",  # data types in annotations
    "doubled_or_halved",  # calls itself through another function, which calls the one that it was read from
    "shrinking_in_loops", "shrinking_on_a_path",  # an annotation holds for all values of a name of the source
}  # fmt: skip
"""Programs of which a text makes others."""


def _without_messages(module: Module) -> Module:
    """The module with assertions that say nothing: of sizes they quote the source, which a text does not have."""
    return parse(re.sub(r'(assert %\w+) "[^"]*"', r'\1 ""', to_text(module)))


def _described(value: object, definition: Definition, position: int) -> Argument:
    """An argument for elaboration; integers of Python are static, as those are that configure a program."""
    is_static = type(value) is int
    return StaticArg(value) if is_static else describe(value, definition.function, position).argument


@pytest.mark.parametrize("name", sample(sorted(set(ALL) - BY_NAME), 25))
def test_what_is_read_back_elaborates_to_the_same(name: str) -> None:
    program = ALL[name]
    definition = program.function.__relay__
    if not isinstance(definition, Definition):
        return  # a derivative has no text of its own at this stage
    read = attrs.evolve(definition, function=parse_back(program.function.surface).main)
    given = program.function._bind(program.arguments, {})
    types = [_described(value, definition, i) for i, value in enumerate(given)]
    again, typed = elaborate(read, types), elaborate(definition, types)
    if alpha_equal(_without_messages(again), _without_messages(typed)):
        return
    # A function that calls itself by its name in Python calls the one that it was read from.
    assert len(again.functions) > len(typed.functions)
    values = program.function.lower(*program.arguments).values
    np.testing.assert_array_equal(interpreter.run(again, values), interpreter.run(typed, values))


def test_everything_is_in_the_texts() -> None:
    text = "\n".join(to_text(p.function.surface) for p in ALL.values())
    for word in (
        "apply ", "unpack ", " in %", "match ", " -> ", ".value = ", "$growing", "none", "keyword_only ", " if {",
        " | ", ":-1]", "[:", " updated", 'python "dict"', "surface (n: Dim)", " named ", " = 0.0",
    ):  # fmt: skip
        assert word in text, word


@attrs.frozen
class Thing:
    """An object that programs may take as a default."""

    number: int = 1


@pytest.mark.parametrize(
    "value",
    [0, -3, 10**30, 0.1, -0.0, 1e300, float("inf"), float("-inf"), float("nan"), "a\n\"b\"", None, ..., True, (), (1,),
     (1, ("x", None)), relay.Float32, dict, len, Thing],
    ids=repr,
)  # fmt: skip
def test_what_python_knows(value: object) -> None:
    module = attribute_module(value)
    read = parse_back(module)
    found = read.main.signature[0].default
    assert isinstance(found, Static) and type(found.value) is type(value) and repr(found.value) == repr(value)
    assert read.main.signature[0].static


def attribute_module(value: object) -> Module:
    """A function that returns its parameter, which has a default."""
    text = 'surface; fn f(keyword_only static %x = python "value") { %x }'
    return parse(text, objects={"value": value})


def test_objects_beside_the_text() -> None:
    one, other = Thing(1), Thing(2)
    text = 'surface; fn f(%x = python "a", %y = python "b", %z = python "a", %n = python "len") { %x }'
    module = parse(text, objects={"a": one, "b": other})
    objects: dict[str, object] = {}
    printed = to_text(module, objects=objects)
    assert objects == {"Thing": one, "Thing_1": other}
    assert 'python "Thing"' in printed and 'python "Thing_1"' in printed and 'python "len"' in printed
    with pytest.raises(FrontendError, match="there is no object 'Thing' beside the text"):
        parse(printed)


def test_annotations_with_variables_and_records() -> None:
    @relay
    def f(state: State, x: Tensor[Float, (n, 2 * n)], y: relay.Tensor[T, S], w: Tensor[Float, (n,)] = None):  # type: ignore
        return x

    read = parse_back(f.surface).main
    assert [str(p.type) for p in read.parameters] == [str(p.type) for p in f.surface.main.parameters]
    assert to_text(f.surface).startswith("surface (")


(n,) = relay.dims("n")
S, T = relay.shape_var("S"), relay.base_type_var("T")
Tensor, Float = relay.Tensor, relay.Float


@dataclasses.dataclass
class State:
    """A record."""

    position: Tensor[Float, (n,)]  # type: ignore[valid-type]
    name: Tensor[Float, ()]  # type: ignore[valid-type]


def test_patterns() -> None:
    text = """
    surface;

    entry fn f(%x, %k) {
      let %y = match %x {
        (0, *%rest, ("a" | none) as %b) -> { yield %rest }
        @Point(1, (0 | 2) as %q, y=(%p, _)) -> { yield %q }
        %k(%u) | %u if { yield %u } -> { yield %u }
        (== %k,) -> { yield %k }
        () -> { yield 1.5 }
        %all -> { yield %all }
      };
      %y
    }
    """
    read = parse(text)
    printed = to_text(read)
    shown = ('(0, *%rest, ("a" | none) as %b) ->', "@Point(1, (0 | 2) as %q, y=(%p, _))", "(== %k,)", "() ->")
    for line in shown:
        assert line in printed
    assert alpha_equal(parse(printed), read)
    assert not alpha_equal(parse(text.replace("*%rest, ", "%rest, *")), read)


# ---- errors: «..» marks the place

ERRORS = [
    ("«let» %x = 1", "expected `fn`, `entry fn`, `data`, `derivative` or `constants`, found `let`"),
    ("fn f(%x) { «%y» }", "there is no variable `%y`"),
    ("fn f(%x, «%x») { %x }", "%x is bound twice"),
    ("fn f(%x:«)» { %x }", "expected a type, found `)`"),
    ("fn f(%x) { let %y = apply «)»; %y }", "expected `}`, found `)`"),
    ("fn f(%x) { let %y = apply %x«;» %y }", "expected `(` and the arguments, found `;`"),
    ("fn f(%x) { let %y = «apply %x(a=1, 2»); %y }", "positional arguments come before keyword arguments"),
    ("fn f(%x) { let %y = %x[1 «2»]; %y }", "expected `,`, `=` or `]`, found `2`"),
    ("fn f(%x) { let %y = %x[«next»]; %y }", "expected a variable, a name `@f` of Python or a value"),
    ("fn f(%x) { let %y = «noone»; %y }", "expected an expression, found `noone`"),
    ("fn f(%x) { let %y = %x : «Tenser»; %y }", "there is no type `Tenser`; did you mean `Tensor`?"),
    ("fn f(%x: Tensor[float32, («k»,)]) { %x }", "expected a dim"),
    ('fn f(%x = python «"nothing"») { %x }', "there is no object 'nothing' beside the text"),
    ("fn f(%x) { let %y = match %x { «->» { yield %x } }; %y }", "expected a pattern"),
    ("fn f(%x) { let %y = match %x { (*%a, «*»%b) -> { yield %x } }; %y }", "a tuple has one starred part"),
    ("fn f(%x) { let %y = match %x { %a «{» yield %a } }; %y }", "expected `->` and what happens in this case"),
    ("fn f(%x) { let %y = «mutiply»(%x, %x); %y }", "no operator `mutiply`; did you mean `multiply`?"),
    # what the check of untyped programs finds
    ("fn f(%x) { let %a, %b = «unpack %x 3»; %a }", "Unpack binds 3 variables, found 2"),
    ("fn f(%x) { let %a, %b = «add(%x, %x)»; %a }", "OpCall binds 1 variables, found 2"),
    ("fn f(%x) { let %a = «write %x %x»; %x }", "RefWrite binds 0 variables, found 1"),
    ("fn f(%x) { let %a = if %x then { «yield» } else { yield %x }; %a }", "this Yield has 1 values, found 0"),
    ("fn f(%x) { loop 'l for %v in %x () { «next 'l(%v)» }; %x }", "this Next has 0 values, found 1"),
    ("fn f(%x) { «yield %x» }", "`yield` outside of an arm"),
]


@pytest.mark.parametrize(("text", "message"), ERRORS, ids=itertools.count())
def test_errors_have_a_place(text: str, message: str) -> None:
    before, place, after = re.split("[«»]", f"# a comment\nsurface (n: Dim);\n{text}")
    with pytest.raises(RelayError) as caught:
        parse(before + place + after, "model.relay")
    error = caught.value
    assert isinstance(error, FrontendError | TypeCheckError)
    assert message in error.message + (f"; {error.help}" if error.help else "")
    assert error.span is not None
    assert (error.span.line, error.span.column) == (before.count("\n") + 1, len(before) - before.rfind("\n"))
