"""Scalar replacement of tuple parameters: recursive functions take the components of tuples.

    fn f(p: (A, B)) { .. f(p) .. }        fn f(p0: A, p1: B) { p = (p0, p1); .. f(p.0, p.1) .. }

so that simplification sees through the tuples, a component that is passed on unchanged is seen to be, and each has a
cotangent of its own. The entry, functions that are differentiated, and those that rules name keep their types: they
become calls of a function that takes the components.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from relay.ir.expr import (
    Binding,
    Block,
    Call,
    Derivative,
    Exit,
    Function,
    Global,
    LoopLabel,
    Module,
    Var,
)
from relay.ir.rebuild import map_blocks
from relay.ir.types import FunctionType, TupleType, Type
from relay.transform.aggregates.tuples import TupleComponents
from relay.transform.analysis.graph import call_graph, references, strong_components
from relay.transform.core.rebuilding import with_functions
from relay.transform.module_pass import pass_about


@pass_about(Call)
def flatten_parameters(module: Module) -> Module:
    """The module without tuples among the parameters of functions that call themselves, also through others."""
    chosen = _recursive_tuple_functions(module)
    if not chosen:
        return module
    fixed = {module.entry}
    for function in module.functions.values():
        fixed.update(references(function) if isinstance(function, Derivative) else function.rule_functions)
    workers: dict[str, Global] = {}
    for name, function in chosen.items():
        types = tuple(t for p in function.parameters for t in _types(p.type))
        worker_name = _fresh_name(f"{name}_parts", module) if name in fixed else name
        workers[name] = Global(worker_name, FunctionType(types, function.type.result))
    functions: dict[str, Function | Derivative] = {}
    for name, found in module.functions.items():
        if not isinstance(found, Function):
            functions[name] = found
        elif name not in chosen:
            functions[name] = _function(name, found.parameters, _calls(found.body, workers), found)
        else:
            made: list[Binding] = []
            parts = TupleComponents().tuple_variables(found.parameters, made)
            body = _calls(found.body, workers)
            worker = _function(workers[name].name, parts, Block((*made, *body.bindings), body.terminator), found)
            functions[worker.name] = worker
            if worker.name != name:
                functions[name] = _wrapper(found, workers[name])
    return with_functions(module, functions)


def _recursive_tuple_functions(module: Module) -> dict[str, Function]:
    """The functions that call themselves and take tuples. Those with a rule are differentiated as they are."""
    graph = call_graph(module)
    found: dict[str, Function] = {}
    for component in strong_components(graph):
        for name in component:
            function = module.functions[name]
            if not isinstance(function, Function) or function.rule is not None:
                continue
            recursive = len(component) > 1 or name in graph[name]
            if recursive and any(isinstance(p.type, TupleType) for p in function.parameters):
                found[name] = function
    return found


def _fresh_name(name: str, module: Module) -> str:
    taken = {*module.functions, *(d.name for d in module.data)}
    candidate, number = name, 1
    while candidate in taken:
        number += 1
        candidate = f"{name}_{number}"
    return candidate


def _types(type_: Type | None) -> Iterator[Type]:
    """The types of the components, all the way down."""
    if isinstance(type_, TupleType):
        for item in type_.items:
            yield from _types(item)
    else:
        assert type_ is not None
        yield type_


def _calls(block: Block, workers: Mapping[str, Global]) -> Block:
    """A block whose calls pass components."""
    bindings: list[Binding] = []
    for binding in block.bindings:
        match binding.value:
            case Call(Global(name), arguments, span) if name in workers:
                flat = TupleComponents().flatten_atoms(arguments, bindings)
                bindings.append(Binding(binding.targets, Call(workers[name], flat, span)))
            case value:
                bindings.append(Binding(binding.targets, map_blocks(value, lambda b: _calls(b, workers))))
    return Block(tuple(bindings), block.terminator)


def _function(name: str, parameters: tuple[Var, ...], body: Block, like: Function) -> Function:
    signature = like.signature if parameters is like.parameters else ()
    return Function(
        name, parameters, body, like.label, like.result, signature, like.documentation, like.span, like.rule
    )


def _wrapper(function: Function, worker: Global) -> Function:
    """A function that calls its worker."""
    parameters = tuple(Var(p.name, p.type, p.span) for p in function.parameters)
    result, label = Var("result", function.result, function.span), LoopLabel(function.name)
    call = Call(Global(function.name, function.type), parameters, function.span)
    body = _calls(Block((Binding((result,), call),), Exit(label, (result,))), {function.name: worker})
    return Function(
        function.name,
        parameters,
        body,
        label,
        function.result,
        function.signature,
        function.documentation,
        function.span,
    )
