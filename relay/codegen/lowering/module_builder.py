"""Module builder: a structured first-order module becomes one native module with the entry that Python calls."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from relay.codegen.kernels.kernels import Kernels, KernelSchedule
from relay.codegen.lowering.constants import Constants
from relay.codegen.lowering.context import GUARD_FAILURE, RESULT, RUNNING_OUT_OF_MEMORY, STACK_LIMIT, STATUS, WORKSPACE
from relay.codegen.lowering.external import Externals
from relay.codegen.lowering.function_builder import Code, ContextTable, FailureTable
from relay.codegen.lowering.function_state import ProgramContext
from relay.codegen.lowering.interrupts import let_python_raise
from relay.codegen.lowering.layout import ROW, Pool, TensorLayout, analyze, has_fixed_rows, leaves, received_leaves
from relay.codegen.lowering.memory.aliasing import share
from relay.codegen.lowering.memory.arena import Arena
from relay.codegen.lowering.memory.donation import NOTHING, Donation
from relay.codegen.lowering.memory.donation import donation as plan_donation
from relay.codegen.lowering.memory.pool_growth import PoolGrowth
from relay.codegen.lowering.memory.pools import make_pools
from relay.codegen.lowering.memory.rounds import RoundLifetimes
from relay.codegen.lowering.memory.workspace import ALIGNMENT
from relay.codegen.lowering.native_functions import generate
from relay.codegen.lowering.probes import PROGRAM, Probes
from relay.codegen.runtime.arrays import Arrays
from relay.codegen.runtime.loading import UnloadableCodeError, load, loads_here
from relay.codegen.runtime.marshalling import input_pools
from relay.codegen.runtime.native import NativeModule
from relay.codegen.tiling import Choices, TilingOptions
from relay.codegen.tvm import llvm_objects, tir
from relay.codegen.tvm.tir import GlobalVar, integer, tirx
from relay.errors import CompileError, InternalError, refusals_of
from relay.ir.analysis.metering import Meter
from relay.ir.dims import ANY, TypeId
from relay.ir.expr import Ascribe, Derivative, Function, Loop, Module
from relay.ir.sizes.data_dependent import bound_dims
from relay.ir.sizes.extents import symbolic_dims
from relay.ir.sizes.facts import AT_LEAST, DIFFERENT, EQUAL, DimConstraint, assume_facts
from relay.ir.traverse import walk
from relay.support import progress
from relay.support.locks import compiling
from relay.support.phases import phase
from relay.support.signals import deferral
from relay.transform.analysis.graph import call_graph, reachable_functions, strong_components
from relay.transform.analysis.implicit_dims import given_sizes

log = logging.getLogger("relay.compile")

SMALL_STACK = 256 * 1024  # bytes of C stack that recursion may use where the thread's bounds are not known


Devices: TypeAlias = Mapping[str, Callable[..., None]]
"""The functions of a module that a device computes, by their names: from arrays of the operands to the last one, of
the result."""

NO_DEVICES: Devices = {}


def assemble(
    module: Module,
    threads: int,
    choices: Choices,
    donated: frozenset[int] = frozenset(),
    devices: Devices = NO_DEVICES,
    probes: Probes | None = None,
) -> NativeModule:
    """Compile; `donated` are the positions of parameters whose memory results may take, `probes` those of a profiling
    build.

    Raises CompileError for what cannot be compiled, InternalError if TVM refuses our code.
    """
    with compiling:
        what = f"the code of {module.entry}"
        with assume_facts(module.where), refusals_of(what, module.main.span), phase("host code"):
            generated = _generate(module, threads, choices, donated, devices=devices, probes=probes)
        deferral.handle()
        progress.show_progress("machine code")
        with refusals_of(what, module.main.span), phase("machine code"):
            return generated.finish(*_machine_code(generated, threads, _repeats(module)))


def assemble_ahead(module: Module, symbol: str) -> NativeModule:
    """Object code for the current machine, whose entry is called `symbol`, and which needs nothing but the C library.
    It runs on the thread that calls it, and nothing interrupts it. The module is not loaded.

    Raises CompileError as `assemble`, and for what calls Python.
    """
    with compiling, assume_facts(module.where), refusals_of(f"the code of {module.entry}", module.main.span):
        generated = _generate(module, 1, {})
        if generated.calls_python:
            raise CompileError(
                "it calls Python: it prints, has numbers as text, or an operator with a native function",
                module.main.span,
            )
        functions = {
            name: tir.without_python(made if name.name_hint != "main" else made.with_attr("global_symbol", symbol))
            for name, made in generated.functions.items()
        }
        built = tir.build(functions, 1, generated.kernels.calls, _repeats(module))
        return generated.finish(None, (tir.object_code(built.mod),))


def text(module: Module, threads: int) -> str:
    """The TIR that a module is compiled from, as TVM prints it. Raises CompileError for what cannot be compiled."""
    with compiling:
        return tir.text(_generate(module, threads, {}).functions)


def options(module: Module, threads: int) -> Mapping[str, TilingOptions]:
    """The alternatives for the loops of a module's kernels, by the kernels' names. Raises CompileError."""
    with compiling, assume_facts(module.where):
        return _generate(module, threads, {}, explores=True).kernels.options


def schedules(module: Module, threads: int, choices: Choices) -> Sequence[KernelSchedule]:
    """The kernels of a module, and the rules that make their loops. Raises CompileError."""
    with compiling, assume_facts(module.where):
        return _generate(module, threads, choices).kernels.schedules


@attrs.frozen(eq=False)
class _GeneratedModule:
    """The source of a compiled module: the generated functions."""

    functions: dict[Any, Any]  # TIR, by their global variables
    kernels: Kernels
    calls_python: bool
    finish: Callable[[Any, tuple[bytes, ...] | None], NativeModule]  # of what can be called, and its object code


def _make_context(
    module: Module, table: ContextTable, threads: int, choices: Choices, explores: bool, devices: Devices
) -> ProgramContext:
    """The common state of a program's functions."""
    functions: dict[str, Function] = {n: f for n, f in module.functions.items() if isinstance(f, Function)}
    layouts = analyze(module)
    sizes = {dim: table.reserve(1) for dim in symbolic_dims(module)}
    pools = make_pools(layouts.pools(), table, sizes)
    names = {name: GlobalVar(f"f{i}_{re.sub('[^A-Za-z0-9_]', '_', name)}") for i, name in enumerate(functions)}
    graph = call_graph(module)
    growth, packing = PoolGrowth(functions, layouts), _packing(functions, graph)
    return ProgramContext(
        layouts,
        Kernels(threads, choices, explores),
        Externals(),
        Constants(table),
        pools,
        growth,
        RoundLifetimes(functions, layouts, growth),
        FailureTable(),
        Meter(module),
        names,
        {},
        sizes,
        Arena(table, bool(packing) or any(bound_dims(f.body) for f in functions.values())),
        given_sizes(functions, graph),
        packing,
        devices,
    )


def _generate_functions(
    module: Module, shared: ProgramContext, donated: frozenset[int]
) -> tuple[dict[Any, Any], frozenset[str], Donation]:
    """The code of all functions, callees first; which of them are recursive; and what the entry does with memory that
    is donated."""
    entry, layouts = module.main, shared.layouts
    native: dict[Any, Any] = {}
    recursive: set[str] = set()
    donation = NOTHING
    graph = call_graph(module)
    for component in strong_components(graph):
        if len(component) > 1 or component[0] in graph[component[0]]:
            recursive.update(component)
            shared.frames.update(dict.fromkeys(component, 0))
        for name in component:
            if name in shared.devices:
                continue
            function = module.functions[name]
            assert isinstance(function, Function)
            sharing = share(function)
            if name == entry.name and name not in recursive:
                given = [layouts.of[p] for p in entry.parameters]
                donation = plan_donation(entry, given, layouts.results[name], donated, sharing)
            native.update(generate(function, shared, name in recursive, sharing, donation))
    return native, frozenset(recursive), donation


def _generate(
    module: Module,
    threads: int,
    choices: Choices,
    donated: frozenset[int] = frozenset(),
    explores: bool = False,
    devices: Devices = NO_DEVICES,
    probes: Probes | None = None,
) -> _GeneratedModule:
    module = _prepare_module(module)
    table = ContextTable()
    shared = attrs.evolve(_make_context(module, table, threads, choices, explores, devices), probes=probes)
    if probes is not None:
        probes.begin(table)
    native, recursive, donation = _generate_functions(module, shared, donated)
    entry = module.main
    parameters = [shared.layouts.of[p] for p in entry.parameters]
    inputs = input_pools(parameters)
    arrays = Arrays(table)
    received = list(received_leaves(parameters))
    shown = shown_by(received)
    workspace = shared.frames[entry.name]
    blocks = shared.pools.slots
    own: int | None = None
    if not isinstance(workspace, int):
        own = table.reserve(3)
        blocks += ((own, 1),)
    start = GlobalVar("start")
    native[start] = _start(
        entry, shared, inputs, arrays, shown, own, {dim: table.reserve(1) for dim in shared.sizes}, module.where
    )
    native[GlobalVar("main")] = _entry(start, [leaf for leaf, _ in received], arrays, shared.sizes, shown)
    native.update(shared.pools.functions)
    native.update(shared.arena.functions)
    native.update(shared.kernels.functions)
    if probes is not None:
        native.update(probes.functions)

    def finish(machine: Any, code: tuple[bytes, ...] | None) -> NativeModule:
        return NativeModule(
            machine,
            code,
            tuple(parameters),
            shared.layouts.results[entry.name],
            donation.pairs,
            inputs,
            table.size,
            workspace if isinstance(workspace, int) else 0,
            bool(recursive),
            shared.constants.arrays,
            arrays.dtypes,
            blocks,
            shared.arena.place if shared.arena.used else None,
            symbolic_dims(module),
            shown,
            shared.failures.errors(),
            shared.externals if shared.externals.used else None,
            len(shared.kernels.functions),
        )

    return _GeneratedModule(native, shared.kernels, bool(shared.externals.used), finish)


def _machine_code(generated: _GeneratedModule, threads: int, repeats: bool) -> tuple[Any, tuple[bytes, ...] | None]:
    """Machine code in memory, without the compiler's state, and its object code; what TVM's compiler keeps, and None,
    where that cannot be loaded. `repeats`: whether code between kernels may run more than once."""
    functions, kernels = generated.functions, generated.kernels
    if not generated.calls_python and not repeats and loads_here():
        code = llvm_objects.compile_objects(functions, kernels.functions, threads, kernels.calls)
        if code is not None:
            try:
                return load(*code), code
            except UnloadableCodeError as reason:
                log.info("the program is compiled again, in one piece: %s", reason)
    built = tir.build(functions, threads, kernels.calls, repeats)
    if generated.calls_python:
        return built, None
    code = (tir.object_code(built.mod),)
    try:
        return load(*code), code
    except UnloadableCodeError as reason:
        log.info("TVM's compiler keeps the program: %s", reason)
        return built, None


def listing(module: Module, threads: int) -> str:
    """The machine code of a module in assembler's notation. Raises CompileError for what cannot be compiled."""
    with compiling, assume_facts(module.where):
        generated = _generate(module, threads, {})
        built = tir.build(generated.functions, threads, generated.kernels.calls, _repeats(module))
        listing: str = built.mod.inspect_source("asm")
    return listing


def _repeats(module: Module) -> bool:
    """True if code between kernels may run more than once: in loops or recursive functions."""
    graph = call_graph(module)
    functions = [module.functions[name] for name in reachable_functions(module, graph)]
    return any(len(part) > 1 or part[0] in graph[part[0]] for part in strong_components(graph)) or any(
        isinstance(binding.value, Loop) for f in functions if isinstance(f, Function) for binding in walk(f.body)
    )


def _packing(functions: Mapping[str, Function], graph: Mapping[str, Iterable[str]]) -> frozenset[str]:
    """The functions, with all that call them, in which a tensor becomes one of the arena."""
    found = {
        name
        for name, function in functions.items()
        for binding in walk(function.body)
        if isinstance(binding.value, Ascribe) and ANY in getattr(binding.targets[0].type, "shape", ())
    }
    while more := {name for name in functions if name not in found and not found.isdisjoint(graph[name])}:
        found |= more
    return frozenset(found)


def _prepare_module(module: Module) -> Module:
    """The part of a module that the entry reaches, without tail calls. Functions keep the names of the module."""
    wanted = reachable_functions(module, call_graph(module))
    functions: dict[str, Function | Derivative] = {}
    for name, function in module.functions.items():
        if name in wanted:
            if not isinstance(function, Function):
                raise InternalError(f"{name} has not been derived before code generation")
            if function.name != name:
                raise InternalError(f"function {function.name} goes by the name {name}")
            functions[name] = function
    return Module(functions, module.entry, module.data, module.where)


def shown_by(received: Sequence[tuple[TensorLayout, bool]]) -> dict[TypeId, tuple[int, int]]:
    """The first axis of a leaf that shows the size of each symbolic dim."""
    found: dict[TypeId, tuple[int, int]] = {}
    for position, (leaf, there) in enumerate(received):
        for axis, dim in enumerate(leaf.dims):
            if isinstance(dim, TypeId) and there:
                found.setdefault(dim, (position, axis))
    return found


def _entry(
    start: Any,
    given: Sequence[TensorLayout],
    arrays: Arrays,
    sizes: Mapping[TypeId, int],
    shown: Mapping[TypeId, tuple[int, int]],
) -> Any:
    """main(context, arguments, results): the addresses of the table and of two Python lists of NumPy arrays.

    Only the arguments are checked: where dtype, shape or memory order are others, the status is GUARD_FAILURE.
    """
    code = Code()
    lists = tirx.Var("arguments", "int64"), tirx.Var("results", "int64")
    misfit = arrays.mismatch_flag(code, given, arrays.items(code, lists[0], len(given)), sizes, shown)
    code.set_table(STATUS, integer(0))
    with code.collect() as run:
        # A failure stands in the table; for TVM the call has succeeded, so that no exception is made of it.
        status = code.bind(tir.call(start, [code.context, *lists]), "int32", "status")
        code.set_table(RESULT, tirx.Cast("int64", status))
        code.emit(*let_python_raise(code.table(STATUS)))
    with code.collect() as refuse:
        code.set_table(STATUS, integer(GUARD_FAILURE))
    code.emit_if(tirx.EQ(misfit, integer(0)), run, refuse)
    body, _ = code.finish()
    return tir.public_function("main", [code.context, *lists], body)


def _check_guards(
    code: Code,
    arrays: Arrays,
    received: Sequence[Any],
    given: Sequence[TensorLayout],
    shown: Mapping[TypeId, tuple[int, int]],
    where: Sequence[DimConstraint],
) -> None:
    """End with GUARD_FAILURE if an argument has another extent than its layout, or a constraint does not hold."""
    with code.collect() as misfit:
        code.emit(*code.failure(GUARD_FAILURE))
    for position, (layout, array) in enumerate(zip(given, received, strict=True)):
        for axis, dim in enumerate(layout.dims):
            if not isinstance(dim, int) and not (isinstance(dim, TypeId) and shown[dim] == (position, axis)):
                code.emit_if(tirx.NE(arrays.extent(code, array, axis), code.size(dim)), misfit)
    for constraint in where:
        left, right = code.size(constraint.left), code.size(constraint.right)
        refused = {EQUAL: tirx.NE, DIFFERENT: tirx.EQ, AT_LEAST: tirx.LT}[constraint.relation](left, right)
        code.emit_if(refused, misfit)


def _reset_pools(code: Code, shared: ProgramContext, inputs: Collection[Pool]) -> None:
    """Nothing is in the pools but what the caller has put into the `inputs`."""
    if shared.arena.used:
        shared.arena.reset(code)
    filled = {pool.slot for pool in inputs}  # by the caller
    for slot, _ in shared.pools.slots:
        if slot not in filled:
            code.set_table(slot, integer(0))
    for pool in shared.pools.names:
        if pool.free is not None:
            code.set_table(pool.free, integer(0))
    for pool in inputs:
        assert pool.slot is not None
        words = range(1) if pool.blocks else range(0, 2 * len(pool.shadows), 2)
        for word in words:  # those of an earlier run are none of this one
            base, count = code.table(pool.slot + 2 + sum(1 for _ in leaves(pool.element)) + word), code.table(pool.slot)
            code.emit(tirx.Evaluate(tir.extern("memset", base, integer(0, "int32"), count * code.size(ROW.bytes))))


def _forget_resized_pools(
    code: Code,
    shared: ProgramContext,
    shown: Mapping[TypeId, tuple[int, int]],
    previous: Mapping[TypeId, int],
) -> None:
    """Memory of rows of symbolic size holds another number of them than before, if sizes have changed."""
    resized = [pool for pool in shared.pools.names if not has_fixed_rows(pool)]
    if not resized:
        return
    changed = integer(0)
    with code.collect() as forget:
        for dim in shown:
            code.set_table(previous[dim], code.size(dim))
        for pool in resized:
            assert pool.slot is not None
            code.set_table(pool.slot + 1, integer(0))
    for dim in shown:
        changed = changed | (code.table(previous[dim]) ^ code.size(dim))
    code.emit_if(tirx.NE(changed, integer(0)), forget)


def _grow_workspace(code: Code, needed: Any, own: int) -> None:
    """Allocate a new workspace if the last one is smaller than `needed`. `own`: its place in the table."""
    with code.collect() as grow:
        code.emit(tirx.Evaluate(tir.extern("free", code.table(own + 2))))
        code.set_table(own + 2, integer(0))
        code.set_table(own + 1, integer(0))
        base = code.bind(tir.extern("malloc", needed + integer(ALIGNMENT)), name="base")
        with code.collect() as exhausted:
            code.emit(*code.failure(RUNNING_OUT_OF_MEMORY))
        code.emit_if(tirx.EQ(base, integer(0)), exhausted)
        code.set_table(own + 2, base)
        code.set_table(own + 1, needed)
        code.set_table(WORKSPACE, (base + integer(ALIGNMENT - 1)) & integer(-ALIGNMENT))
    code.emit_if(tirx.LT(code.table(own + 1), needed), grow)


def _start(
    entry: Function,
    shared: ProgramContext,
    inputs: Collection[Pool],
    arrays: Arrays,
    shown: Mapping[TypeId, tuple[int, int]],
    own: int | None,
    previous: Mapping[TypeId, int],
    where: Sequence[DimConstraint],
) -> Any:
    """start(context, arguments, results): what symbolic dims have to satisfy is checked, and the entry called.

    `own` is the place of the workspace, if its size is symbolic: nothing, capacity, base. `previous` are those of the
    last call's sizes.
    """
    code = Code(shared.sizes)
    layouts = shared.layouts
    given = [leaf for p in entry.parameters for leaf in leaves(layouts.of[p])]
    lists = tirx.Var("arguments", "int64"), tirx.Var("results", "int64")
    received = arrays.items(code, lists[0], len(given))
    results = arrays.items(code, lists[1], sum(1 for _ in leaves(layouts.results[entry.name])))
    _check_guards(code, arrays, received, given, shown, where)
    _reset_pools(code, shared, inputs)
    _forget_resized_pools(code, shared, shown, previous)
    with code.collect() as unknown:
        code.set_table(STACK_LIMIT, code.address(code.leaf(ROW)) - integer(SMALL_STACK))
    code.emit_if(tirx.EQ(code.table(STACK_LIMIT), integer(0)), unknown)
    if own is not None:
        _grow_workspace(code, code.bytes(shared.frames[entry.name]), own)
    addresses = [arrays.data(code, array) for array in (*received, *results)]
    arguments = [_argument(code, layout, at) for layout, at in zip(given, addresses, strict=False)]
    whole = [code.context, code.table(WORKSPACE), *arguments, *addresses[len(given) :]]
    start = shared.probes.start(code) if shared.probes is not None else None
    code.check(tir.call(shared.names[entry.name], whole))
    if shared.probes is not None:
        shared.probes.stop(code, shared.probes.sites[PROGRAM], start)
    body, _ = code.finish()
    return tir.function([code.context, *lists], body)


def _argument(code: Code, layout: TensorLayout, address: Any) -> Any:
    if not tir.by_value(layout.base, layout.elements):
        return address
    view, statements = tir.view("argument", (1,), layout.base.name, address)
    code.emit(*statements)
    return code.bind(tirx.BufferLoad(view, [0]), layout.base.name)
