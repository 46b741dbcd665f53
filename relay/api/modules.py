"""Functions of modules: a program in the intermediate representation as one that Python and other programs call.

A module's function is one of the untyped representation with annotated parameters. So everything that decorated
functions have, it has, too: calls, derivatives, batching, the interpreter, export.
"""

from __future__ import annotations

import numpy as np

from relay.api.function import RelayFunction
from relay.compilation.entries import EntryError, with_entry
from relay.compilation.options import Options
from relay.errors import CompileError, TypeMismatch
from relay.frontend.scope import TextScope
from relay.ir.definition import Definition, DerivedDefinition
from relay.ir.expr import (
    Ascribe,
    Assert,
    Binding,
    Block,
    Call,
    Constant,
    Derivative,
    Expr,
    Function,
    Global,
    If,
    Lambda,
    Loop,
    MakeTuple,
    Module,
    OpCall,
    Parameter,
    Project,
    RefNew,
    RefRead,
    RefWrite,
    Static,
    Var,
)
from relay.ir.rebuild import copy_function, map_blocks
from relay.ir.surface import Apply, ForEach
from relay.ir.traverse import bound_variables, walk
from relay.ir.validation.check_surface import is_untyped

_EXPRESSIONS = (
    *(Ascribe, Assert, Call, Constant, Global, If, Lambda, Loop, MakeTuple, OpCall, Project, RefNew, RefRead),
    *(RefWrite, Var),
)
"""The expressions that untyped programs have, too."""


def from_module(module: Module, entry: str | None = None) -> RelayFunction:
    """The function of a typed module, as `relay.parse`, `relay.builder` and passes make one. It is called from Python
    and from other programs, differentiated, batched, interpreted, shown, and exported as decorated functions are.
    `entry`: another function than the module's own, or a derivative.

    Raises TypeMismatch for anything but a typed module, CompileError for a function that does not exist, and for
    programs that match data types, fill stacks or print: `relay.compile` takes those.
    """
    if not isinstance(module, Module) or is_untyped(module):
        found = "an untyped module" if isinstance(module, Module) else type(module).__name__
        raise TypeMismatch(f"relay.from_module takes a typed module, found {found}")
    try:
        entered = with_entry(module, module.entry if entry is None else entry)
    except EntryError as reason:
        raise CompileError(str(reason)) from None
    definitions: dict[str, Definition | DerivedDefinition] = {}
    scope = TextScope(definitions, {})
    functions: dict[str, RelayFunction] = {}
    for name, function in _ordered(entered):
        definition: Definition | DerivedDefinition
        if isinstance(function, Derivative):
            definition = DerivedDefinition(functions[function.of].__relay__, function.grad, function.grad.wrt)
        else:
            definition = Definition(_untyped(function), scope)
        functions[name] = RelayFunction(definition, Options())
        definitions[name] = functions[name]  # type: ignore[assignment]
    return functions[entered.entry]


def _ordered(module: Module) -> list[tuple[str, Function | Derivative]]:
    """The functions, each derivative after that of which it is one."""

    def order(function: Function | Derivative) -> int:
        found = 0
        while isinstance(function, Derivative):
            function, found = module.functions[function.of], found + 1
        return found

    return sorted(module.functions.items(), key=lambda item: order(item[1]))


def _untyped(function: Function) -> Function:
    """A copy of a function of which only the parameters have types."""
    copy = copy_function(function)
    for binding in walk(copy.body):
        if not isinstance(binding.value, _EXPRESSIONS):
            what = type(binding.value).__name__
            raise CompileError(
                f"{function.name} has the expression {what}, which functions of modules do not have",
                help="relay.compile(module) compiles it",
            )
        for variable in (*binding.targets, *bound_variables(binding.value)):
            variable.type = None
    signature = tuple(Parameter() for _ in copy.parameters)
    body = _untyped_block(copy.body)
    return Function(copy.name, copy.parameters, body, copy.label, None, signature, copy.documentation, copy.span)


def _untyped_block(block: Block) -> Block:
    """A block whose types are to be found again, and whose loops with a counter are loops over a range."""
    bindings: list[Binding] = []
    for binding in block.bindings:
        value: Expr = map_blocks(binding.value, _untyped_block)
        if isinstance(value, Ascribe):
            value = value.value
        if isinstance(value, Loop) and value.counter is not None:
            numbers = Var("numbers")
            count = value.counter.count
            if isinstance(count, Constant) and count.value.dtype == np.int32:
                count = Static(int(count.value))  # which is known when the program is elaborated
            call = Apply(Static(range), (count,), (), value.span)
            bindings.append(Binding((numbers,), call))
            value = ForEach(
                value.label, value.counter.index, numbers, value.parameters, value.initial, value.body, value.span
            )
        bindings.append(Binding(binding.targets, value))
    return Block(tuple(bindings), block.terminator)
