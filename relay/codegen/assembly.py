"""A structured first-order module as one native module: every function, and the entry that Python calls."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

from relay.codegen import tir
from relay.codegen.arrays import Arrays
from relay.codegen.code import MISFIT, RESULT, STACK_LIMIT, STATUS, WORKSPACE, Code, Failures, Table
from relay.codegen.constants import Constants
from relay.codegen.exchange import input_pools
from relay.codegen.external import Externals
from relay.codegen.growth import Growth
from relay.codegen.host import Shared, generate
from relay.codegen.kernels import Kernels
from relay.codegen.layout import ROW, Layouts, Pool, TensorLayout, analyse, leaves
from relay.codegen.native import Native
from relay.codegen.pools import Pools, make_pools
from relay.codegen.tail_calls import loops_for_tail_calls
from relay.codegen.tir import GlobalVar, integer, tirx
from relay.errors import CompileError, InternalError
from relay.ir.expr import Derivative, Function, Module
from relay.ir.types import DataDefinition, DataType, RefType, StackType, TensorType, TupleType, Type, show
from relay.transform.graph import call_graph, reachable, strong_components

SMALL_STACK = 256 * 1024  # bytes of C stack that recursion may use where the thread's bounds are not known

_lock = threading.Lock()


def assemble(module: Module, threads: int) -> Native:
    """Compile. Raises CompileError for what cannot be compiled, InternalError if TVM refuses our code."""
    with _lock:  # TVM's compiler is not safe to use from several threads
        functions, finish = _generate(module, threads)
        return finish(tir.build(functions, threads))


def text(module: Module, threads: int) -> str:
    """The TIR that a module is compiled from, as TVM prints it. Raises CompileError for what cannot be compiled."""
    with _lock:
        return tir.text(_generate(module, threads)[0])


def _generate(module: Module, threads: int) -> tuple[dict[Any, Any], Callable[[Any], Native]]:
    """The TIR functions by their global variables, and what makes the result of their machine code."""
    module = _prepared(module)
    functions: dict[str, Function] = {n: f for n, f in module.functions.items() if isinstance(f, Function)}
    entry = module.main
    for type_ in entry.type.parameters:
        _check_exchanged(type_, entry, set(), is_result=False)
    _check_exchanged(entry.type.result, entry, set(), is_result=True)
    layouts = analyse(module)
    table = Table()
    pools = make_pools(layouts.pools(), table)
    kernels = Kernels(threads)
    names = {name: GlobalVar(f"f{i}_{re.sub('[^A-Za-z0-9_]', '_', name)}") for i, name in enumerate(functions)}
    inputs = input_pools([layouts.of[p] for p in entry.parameters])
    shared = Shared(
        layouts,
        kernels,
        Externals(),
        Constants(table),
        pools,
        Growth(functions, layouts),
        Failures(),
        names,
        {},
    )
    graph = call_graph(module)
    native: dict[Any, Any] = {}
    recursive: set[str] = set()
    for component in strong_components(graph):
        if len(component) > 1 or component[0] in graph[component[0]]:
            recursive.update(component)
            shared.frames.update(dict.fromkeys(component, 0))
        for name in component:
            native.update(generate(functions[name], shared, name in recursive))
    arrays = Arrays(table)
    native[GlobalVar("main")] = _entry(entry, layouts, pools, inputs, names[entry.name], arrays)
    native.update(pools.functions)
    native.update(kernels.functions)
    return native, lambda built: Native(
        built["main"],
        built,
        tuple(layouts.of[p] for p in entry.parameters),
        layouts.results[entry.name],
        inputs,
        table.size,
        shared.frames[entry.name],
        bool(recursive),
        shared.constants.arrays,
        arrays.dtypes,
        pools.slots,
        shared.failures.errors(),
        shared.externals if shared.externals.used else None,
        len(kernels.functions),
    )


def _prepared(module: Module) -> Module:
    """What the entry reaches, without tail calls. Functions go by the names of the module."""
    wanted = reachable(module, call_graph(module))
    functions: dict[str, Function | Derivative] = {}
    for name, function in module.functions.items():
        if name in wanted:
            if not isinstance(function, Function):
                raise InternalError(f"{name} has not been derived before code generation")
            if function.name != name:
                raise InternalError(f"function {function.name} goes by the name {name}")
            functions[name] = loops_for_tail_calls(function)
    return Module(functions, module.entry, module.data, module.where)


def _check_exchanged(type_: Type, entry: Function, seen: set[DataDefinition], *, is_result: bool) -> None:
    """Only tensors, tuples and data of them go between Python and a compiled program; lists come out of it."""
    match type_:
        case TensorType():
            pass
        case TupleType(items):
            for item in items:
                _check_exchanged(item, entry, seen, is_result=is_result)
        case DataType(definition):
            if definition not in seen:
                seen.add(definition)
                for constructor in definition.constructors:
                    for field in constructor.fields:
                        _check_exchanged(field, entry, seen, is_result=is_result)
        case StackType(RefType(content)) if is_result:
            _check_exchanged(content, entry, seen, is_result=True)
        case _:
            message = f"{entry.name} takes or returns a value of type {show(type_)}, which cannot be compiled yet"
            help = "use f.interpret(..), or pass and return tensors, tuples and data of them"
            raise CompileError(message, entry.span, help=help)


def _entry(entry: Function, layouts: Layouts, pools: Pools, inputs: set[Pool], name: Any, arrays: Arrays) -> Any:
    """main(context, arguments, results): the addresses of the table and of two Python lists of NumPy arrays.

    Only the arguments are checked: where dtype, shape or memory order are others, the status is MISFIT.
    """
    code = Code()
    given = [leaf for p in entry.parameters for leaf in leaves(layouts.of[p])]
    answers = list(leaves(layouts.results[entry.name]))
    lists = tirx.Var("arguments", "int64"), tirx.Var("results", "int64")
    received, results = arrays.items(code, lists[0], len(given)), arrays.items(code, lists[1], len(answers))
    misfit = arrays.misfit(code, given, received)
    with code.collect() as run:
        filled = {pool.slot for pool in inputs}  # by the caller
        for slot, _ in pools.slots:
            if slot not in filled:
                code.set_table(slot, integer(0))
        code.set_table(STATUS, integer(0))
        with code.collect() as unknown:
            code.set_table(STACK_LIMIT, code.address(code.leaf(ROW)) - integer(SMALL_STACK))
        code.when(tirx.EQ(code.table(STACK_LIMIT), integer(0)), unknown)
        addresses = [arrays.data(code, array) for array in (*received, *results)]
        arguments = [_argument(code, layout, at) for layout, at in zip(given, addresses, strict=False)]
        status = tir.call(name, [code.context, code.table(WORKSPACE), *arguments, *addresses[len(given) :]])
        # A failure stands in the table; for TVM the call has succeeded, so that no exception is made of it.
        code.set_table(RESULT, tirx.Cast("int64", code.bind(status, "int32", "status")))
    with code.collect() as refuse:
        code.set_table(STATUS, integer(MISFIT))
    code.when(tirx.EQ(misfit, integer(0)), run, refuse)
    body, _ = code.finish()
    return tir.public("main", [code.context, *lists], body)


def _argument(code: Code, layout: TensorLayout, address: Any) -> Any:
    if not tir.by_value(layout.base, layout.elements):
        return address
    view, statements = tir.view("argument", (1,), layout.base.name, address)
    code.emit(*statements)
    return code.bind(tirx.BufferLoad(view, [0]), layout.base.name)
