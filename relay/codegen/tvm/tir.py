"""TIR fragments, and the pipeline that lowers functions.

All memory is reached through views on `reinterpret(address)`. TVM assumes that a view declared on a pointer parameter
overlaps no other view, and generates wrong code where one does; views on reinterpreted addresses may overlap.
"""

from __future__ import annotations

import functools
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import relay.codegen.tvm.without_torch  # noqa: F401  (before TVM)

# isort: split
import numpy as np
import tvm
from tvm import s_tir, tirx
from tvm.ir import Call, GlobalVar, PointerType, PrimType
from tvm_ffi import structural_map

from relay.codegen.tvm import vectors
from relay.codegen.tvm.division import without_choices
from relay.codegen.tvm.machine import Machine, current_machine
from relay.errors import refusals_of
from relay.ir.dims import LARGEST_SIZE, Dim, DimExpr
from relay.ir.sizes.polynomials import Extremum, Quotient
from relay.ir.types import BaseType

Expression = Any
Statement = Any

STACK_BYTES = 1024
"""Buffers below this size lie on the stack, where LLVM finds their elements registers."""

KERNEL = "relay.kernel"
"""The attribute of functions that were made from te: only these may hold bfloat16."""

_BY_VALUE = {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float32", "float64", "bool"}


def by_value(base: BaseType, elements: Dim) -> bool:
    """True if a tensor is held in a register and passed by value: one element of a machine type."""
    return elements == 1 and base.name in _BY_VALUE


def integer(value: int, dtype: str = "int64") -> Expression:
    return tirx.const(value, dtype)


def arithmetic(dim: DimExpr, value: Callable[[Dim], Expression]) -> Expression:
    """A dim's arithmetic on int64 expressions; `value` maps its variables."""
    total: Expression = None
    for monomial, coefficient in sorted(dim.terms, key=str):
        term: Expression = None if coefficient == 1 and monomial else integer(coefficient)
        for factor, power in sorted(monomial, key=str):
            match factor:
                case Quotient(dividend, divisor):
                    found = tirx.floordiv(value(dividend), tirx.max(value(divisor), integer(1)))
                case Extremum(largest, dims):
                    parts = [value(d) for d in sorted(dims, key=str)]
                    found = functools.reduce(tirx.max if largest else tirx.min, parts)
                case _:
                    found = value(factor)
            for _ in range(power):
                term = found if term is None else term * found
        total = term if total is None else total + term
    return total


def second_operand(value: Expression) -> Expression:
    """That of a binary expression. A quotient's divisor is what `arithmetic` was given, and not at least 1."""
    divisor = value.b
    guarded = isinstance(value, tirx.FloorDiv) and isinstance(divisor, tirx.Max)
    return divisor.a if guarded and isinstance(divisor.b, tirx.IntImm) and int(divisor.b.value) == 1 else divisor


def magnitude(dim: Dim, value: Callable[[Dim], Expression]) -> Expression:
    """About how large a dim is, as a float64 that does not wrap around; `value` gives its variables as int64."""

    def number(part: int) -> Expression:
        return tirx.const(float(part), "float64")

    if isinstance(dim, int):
        return number(dim)
    if not isinstance(dim, DimExpr):
        return tirx.Cast("float64", value(dim))
    total = number(0)
    for monomial, coefficient in sorted(dim.terms, key=str):
        term = number(coefficient)
        for factor, power in sorted(monomial, key=str):
            match factor:
                case Quotient(dividend, divisor):
                    found = magnitude(dividend, value) / tirx.max(magnitude(divisor, value), number(1))
                case Extremum(largest, dims):
                    parts = [magnitude(d, value) for d in sorted(dims, key=str)]
                    found = functools.reduce(tirx.max if largest else tirx.min, parts)
                case _:
                    found = magnitude(factor, value)
            for _ in range(power):
                term = term * found
        total = total + term
    return total


def literal(value: float | int, base: BaseType) -> Expression:
    """A number of a machine type as an expression."""
    if base.name == "bool":
        return tirx.const(bool(value), "bool")
    if base.is_float:
        number = float(value)
        if math.isinf(number):
            return tirx.infinity(base.name) if number > 0 else -tirx.infinity(base.name)
        return tirx.const(number, base.name)
    return tirx.const(int(value), base.name)


def sequence(statements: Sequence[Statement]) -> Statement:
    """Statements as one."""
    if not statements:
        return tirx.Evaluate(integer(0, "int32"))
    return statements[0] if len(statements) == 1 else tirx.SeqStmt(list(statements))


def pointer(dtype: str) -> Any:
    return PointerType(PrimType(dtype), "global")


def buffer(name: str, shape: Sequence[int], dtype: str, scope: str = "global") -> Any:
    """A buffer that promises no more alignment than its elements need."""
    extents = tuple(integer(n) if isinstance(n, int) and n > LARGEST_SIZE else n for n in shape)
    return tirx.decl_buffer(extents, dtype, name, scope=scope, data_alignment=BaseType(dtype).dtype.itemsize)


def view(name: str, shape: Sequence[int], dtype: str, address: Expression) -> tuple[Any, list[Statement]]:
    """A buffer on an address, and the statements that declare it."""
    data = tirx.Var(name, pointer(dtype))
    declared = buffer(name, shape, dtype)
    return declared, [
        tirx.Bind(data, tirx.reinterpret(pointer(dtype), address)),
        tirx.DeclBuffer(declared, data=data),
    ]


def local_element(name: str, dtype: str) -> tuple[Any, Expression, list[Statement]]:
    """One element on the stack: its view, its address, and the statements that declare it. LLVM makes it a register
    where the address is not passed on."""
    memory = buffer(name, (1,), dtype)
    there, address = tirx.Var(name, pointer(dtype)), tirx.Var(name, "int64")
    declared, statements = view(name, (1,), dtype, address)
    return (
        declared,
        address,
        [
            tirx.AllocBuffer(memory),
            tirx.Bind(there, tirx.address_of(tirx.BufferLoad(memory, [0]))),
            tirx.Bind(address, tirx.reinterpret("int64", there)),
            *statements,
        ],
    )


def call(function: Any, arguments: Sequence[Expression]) -> Expression:
    """The status of a call of a private function."""
    return Call(function, list(arguments), ret_ty="int32")


def extern(name: str, *arguments: Expression) -> Expression:
    """A call of a C function on integers."""
    return tirx.call_extern("int64", name, *arguments)


def copy_bytes(target: Expression, source: Expression, count: Expression) -> Statement:
    """target := source, which do not overlap. A library that is linked without the C library gets the oldest version
    of each symbol, and the oldest `memcpy` of glibc uses no vectors of the processor; `memmove` has one version."""
    return tirx.Evaluate(extern("memmove", target, source, count))


def fail() -> Statement:
    """Leave the function with a status that its caller notices."""
    return tirx.Evaluate(tirx.tvm_throw_last_error())


def function(parameters: Sequence[Any], body: Sequence[Statement]) -> Any:
    """A private function that returns a status: 0, or what `fail` makes."""
    statements = [*body, tirx.Return(integer(0, "int32"))]
    made = tirx.PrimFunc(list(parameters), sequence(statements), ret_type=PrimType("int32"))
    return made.with_attr("s_tir", True)


_VALUE = 15
"""The number of the value of an argument among the fields that TVM reads of packed arguments."""


def public_function(name: str, parameters: Sequence[Any], body: Sequence[Statement]) -> Any:
    """A function of int64 numbers that Python calls with exactly these, as TVM's functions are called.

    TVM would check number and types of the arguments in each call, with code that is longer than a small kernel.
    """
    handles = [tirx.Var(n, "handle") for n in ("self", "arguments", "result")]
    packed = [handles[0], handles[1], tirx.Var("count", "int32"), handles[2]]
    given = [
        tirx.Bind(parameter, tirx.tvm_struct_get(handles[1], position, _VALUE, "int64"))
        for position, parameter in enumerate(parameters)
    ]
    made = function(packed, [*given, *body])
    return made.with_attr("global_symbol", f"__tvm_ffi_{name}").with_attr("calling_conv", 1)


# ---- compilation


_INSTRUCTION_COST = 5
"""The cost of an instruction for LLVM's inliner by default; functions of at most some 50 are inlined."""

_CALLS_PER_COST = 4
"""With this many more calls an instruction costs one more: about 1000 instructions are inlined, however many calls
there are. LLVM takes time to the square of a function's length, and a program's calls all stand in one."""


_REPEATED, _STRAIGHT = 2, 1
"""LLVM's levels of optimization for programs with loops or recursion, and for those without. Beyond 2 it takes half as
long again for code that is not faster; kernels are as fast with 1, but not the code between them, which matters where
it runs often."""


def target(threads: int, calls: int = 0, repeats: bool = True) -> Any:
    """The current machine, for code with this many calls of kernels, some of them in loops or recursion if it
    `repeats`. Without `mcpu` TVM silently emits code for a generic processor."""
    machine = current_machine()
    options: dict[str, Any] = {
        "kind": "llvm",
        **({"mcpu": tvm.target.codegen.llvm_get_system_cpu()} if machine is None else _target_options(machine)),
        "num-cores": threads,
        "opt-level": _REPEATED if repeats else _STRAIGHT,
    }
    cost = calls // _CALLS_PER_COST
    if cost > _INSTRUCTION_COST:
        options["cl-opt"] = [f"-inline-instr-cost:int={cost}"]
    return tvm.target.Target(options)


def _target_options(machine: Machine) -> dict[str, Any]:
    """The options of TVM's target for a processor."""
    options: dict[str, Any] = {"mtriple": machine.triple} if machine.triple else {}
    if machine.processor:
        options["mcpu"] = machine.processor
    if machine.features:
        options["mattr"] = list(machine.features)
    return options


def vector_registers() -> tuple[int, int]:
    """The bytes of a vector register of the current machine, and how many there are."""
    return _vector_registers(current_machine())


@functools.cache
def _vector_registers(of: Machine | None) -> tuple[int, int]:
    machine, has = target(1), tvm.target.codegen.llvm_cpu_has_features
    if "x86" not in ((of.triple if of is not None else "") or str(tvm.target.codegen.llvm_get_system_triple())):
        return 16, 32
    # What LLVM says of the width of vectors is about this machine, whatever the target.
    return (64, 32) if has("avx512f", machine) else (32, 16) if has("avx", machine) else (16, 16)


@tvm.transform.module_pass(opt_level=0, name="relay.GivePrivateFunctionsADevice")  # type: ignore[untyped-decorator]
def _give_private_functions_a_device(module: Any, _: Any) -> Any:
    """Large buffers become calls of the device's allocator. MakePackedAPI tells only public functions the device."""
    for name, made in module.functions_items():
        if "calling_conv" not in made.attrs:
            body = made.body
            for key, value in (("device_type", 1), ("device_id", 0)):
                body = tirx.AttrStmt(tvm.ir.StringImm("default"), key, integer(value, "int32"), body)
            module.update_func(name, tirx.PrimFunc(made.params, body, made.ret_type, attrs=made.attrs))
    return module


def flat_kernel(function: Any, least: Mapping[Any, int]) -> tuple[Any, list[Any]]:
    """A kernel with buffers of one axis, and the bytes of its large temporary buffers, which it does not allocate:
    the caller gives their addresses as further parameters. TVM's allocator would ask the system each time. `least`:
    how large its parameters are that are sizes."""
    # Elements that are computed in several places repeat the names that operators give to parts of them.
    passes = [tirx.transform.ConvertSSA(), tirx.transform.FlattenBuffer()]
    flat = tvm.transform.Sequential(passes)(tvm.IRModule({"kernel": function}))["kernel"]
    body = without_choices(structural_map(flat.body, ((tirx.Add, _without_zeros),)), least)
    parameters, sizes = list(flat.params), []
    statements: list[Statement] = []
    for statement in statement_list(body):
        size = _bytes(statement.buffer) if isinstance(statement, tirx.AllocBuffer) else 0
        if not isinstance(size, int) or size >= STACK_BYTES:
            address = tirx.Var(statement.buffer.name, "int64")
            data = tirx.Var(statement.buffer.name, pointer(str(statement.buffer.dtype)))
            parameters.append(address)
            sizes.append(size)
            statements.append(tirx.Bind(data, tirx.reinterpret(pointer(str(statement.buffer.dtype)), address)))
            statements.append(tirx.DeclBuffer(statement.buffer, data=data))
        else:
            statements.append(statement)
    return tirx.PrimFunc(parameters, sequence(statements), ret_type=flat.ret_type, attrs=flat.attrs), sizes


def _without_zeros(sum_: Any) -> Any:
    """The indices of a vector of neighbors as they are: FlattenBuffer adds zeros to them, and what is no `Ramp` is
    read and written element by element."""
    zeros = sum_.a
    if isinstance(zeros, tirx.Broadcast) and isinstance(zeros.value, tirx.IntImm) and isinstance(sum_.b, tirx.Ramp):
        return sum_.b if int(zeros.value.value) == 0 else sum_
    return sum_


def statement_list(statement: Statement) -> list[Statement]:
    """A statement as the statements that it is a sequence of."""
    if isinstance(statement, tirx.SeqStmt):
        return [inner for part in statement for inner in statement_list(part)]
    return [statement]


def _bytes(declared: Any) -> Any:
    """The bytes of a buffer: a number, or an expression of symbolic sizes."""
    itemsize = BaseType(str(declared.dtype)).dtype.itemsize
    if all(isinstance(d, int | tirx.IntImm) for d in declared.shape):
        return int(np.prod([int(d) for d in declared.shape], dtype=np.int64)) * itemsize
    return functools.reduce(lambda a, b: a * b, declared.shape) * itemsize


def _selective_passes(kernels: bool, passes: Sequence[Any]) -> Any:
    """The passes, for the kernels or for all other functions.

    Not all take the pointers reinterpreted as integers in the others; and flattened twice, kernels lose their vectors.
    """

    @tvm.transform.module_pass(opt_level=0, name="relay.OnSome")  # type: ignore[untyped-decorator]
    def run(module: Any, _: Any) -> Any:
        chosen = {name: made for name, made in module.functions_items() if (KERNEL in made.attrs) is kernels}
        if chosen:
            for name, made in tvm.transform.Sequential(passes)(tvm.IRModule(chosen)).functions_items():
                module.update_func(name, made)
        return module

    return run


def _pipeline() -> tuple[Any, Any, Any]:
    """TVM's own pipeline without the passes for other devices, and without three more. StorageRewrite merges buffers
    that it believes dead, but ours are read through addresses. CommonSubexprElim names vectors of bools, which the
    generator of LLVM code does not take; LLVM does the same itself. StmtSimplify takes floats for real numbers: it
    makes `x == x` true, `x - x` 0 and `(x + c) - c` x."""
    general, scheduled = tirx.transform, s_tir.transform
    passes = [
        _selective_passes(
            True,
            [
                general.BF16ComputeLegalize(),
                scheduled.LoopPartition(),
                general.VectorizeLoop(True),
                vectors.shuffle_neighbors,
                vectors.count_in_vectors,
                general.UnrollLoop(),
                scheduled.RewriteUnsafeSelect(),
                general.BF16StorageLegalize(),
            ],
        ),
        _selective_passes(False, [general.FlattenBuffer()]),
        general.VerifyMemory(),
        general.AnnotateEntryFunc(),
        general.SplitHostDevice(),
        general.MakePackedAPI(),
        _give_private_functions_a_device,
    ]
    from tvm.tirx.compilation_pipeline import finalize_device_passes, finalize_host_passes

    return tvm.transform.Sequential(passes), finalize_host_passes, finalize_device_passes


tirx.register_tir_pipeline("relay", _pipeline)


def build(functions: dict[Any, Any], threads: int, calls: int, repeats: bool) -> Any:
    """Machine code for functions by their global variables, which call kernels in this many places, in loops or
    recursion if it `repeats`. Raises InternalError if TVM refuses them."""
    with refusals_of("the generated code", None):
        return tvm.compile(tvm.IRModule(functions), target=target(threads, calls, repeats), tir_pipeline="relay")


_OF_PYTHON = ("TVMFFIEnvCheckSignals", "TVMFFIErrorSetRaisedFromCStr")
"""The functions called by code that Python may interrupt."""


def without_python(function: Any) -> Any:
    """A function that asks Python for no signals."""

    def replace_call(call: Any) -> Expression:
        asks = str(getattr(call.op, "name", "")).endswith("call_extern") and call.args[0].value in _OF_PYTHON
        return integer(0, "int32") if asks else call

    body = structural_map(function.body, ((Call, replace_call),))
    return tirx.PrimFunc(function.params, body, function.ret_type, attrs=function.attrs)


def lower_functions(functions: dict[Any, Any], machine: Any) -> Any:
    """The module that `build` has LLVM code generated from, for this target. Raises InternalError if TVM refuses it."""
    with refusals_of("the generated code", None):
        bound = tirx.transform.BindTarget(machine.with_host(machine))
        passes, finish, _ = _pipeline()
        return finish()(passes(bound(tvm.IRModule(functions))))


def machine_code(module: Any, machine: Any) -> bytes:
    """The code for a module that has been lowered, as a linker takes it. Several threads may call it at once, with
    different modules: all the work is LLVM's. Raises InternalError if TVM refuses it."""
    with refusals_of("the generated code", None):
        return object_code(tvm.get_global_func("target.build.llvm")(module, machine))


def object_code(built: Any) -> bytes:
    """TVM's compiled output, in the form that a linker takes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "code.o")
        built.write_to_file(str(path), "o")
        return path.read_bytes()


def address_function(name: str, data: str) -> bytes:
    """Code for the current machine, as a linker takes it: a C function without parameters which returns the address of
    a symbol of the same library. Programs that mentioned the symbol itself would have a copy of what is there."""
    machine = current_machine()
    triple = (machine.triple if machine is not None else "") or tvm.target.codegen.llvm_get_system_triple()
    lines = (
        f'target triple = "{triple}"',
        f"@{data} = external hidden global i8",
        f"define ptr @{name}() {{",
        f"  ret ptr @{data}",
        "}",
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "code.ll")
        path.write_text("\n".join(lines) + "\n")
        return object_code(tvm.runtime.load_module(str(path)))


def text(functions: dict[Any, Any]) -> str:
    """Functions by their global variables, in TVM's notation."""
    script: str = tvm.IRModule(functions).script()
    return script


__all__ = ["GlobalVar", "build", "call", "fail", "function", "public_function", "text", "tirx"]
