"""Groups of operator calls as kernels: te stages made by the operators, scheduled, as private functions.

Equal groups (the same operators, attributes, shapes, dtypes and wiring) share one kernel. A kernel takes one parameter
for each operand, then the address of its output: one-element operands of machine types by value, others by address.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from tvm import te

from relay.codegen import tir
from relay.codegen.schedules import Emission, Place, emit, extent, key, renamed, volume
from relay.codegen.tir import GlobalVar, Statement, tirx
from relay.errors import CompileError, InternalError
from relay.ir.expr import Atom, Binding, Constant, OpCall, Var
from relay.ir.types import BaseType, TensorType
from relay.operator import InPlace, lookup
from relay.transform.fusion import Group


@attrs.frozen(eq=False)
class Kernel:
    """A group's function, the operands in the order of its parameters, and the bytes of the temporary buffers whose
    addresses it takes after the output's."""

    function: Any
    operands: tuple[Atom, ...]
    temporaries: tuple[int, ...]


class Kernels:
    """The kernels of one program."""

    def __init__(self, threads: int) -> None:
        self.functions: dict[Any, Any] = {}
        self._threads = threads
        self._known: dict[object, tuple[Any, tuple[int, ...]]] = {}

    def kernel(self, group: Group) -> Kernel:
        """The kernel for a group. Raises CompileError if an operator's `compute` fails."""
        operands, key = signature(group)
        if key not in self._known:
            names = "_".join(b.value.operator for b in group.bindings if isinstance(b.value, OpCall))
            name = GlobalVar(f"kernel{len(self._known)}_{names[:40]}")
            self.functions[name], temporaries = _build(group, operands, self._threads)
            self._known[key] = name, tuple(temporaries)
        function, temporary = self._known[key]
        return Kernel(function, operands, temporary)


def inlined(atom: Atom) -> bool:
    """Whether an operand is part of the kernel: a number that TIR has a literal for and computes with rightly.

    TIR makes `x * 0.0` 0 also for infinite x, drops the 0.0 of `-0.0 + 0.0`, and refuses `x / 0.0`.
    """
    if not isinstance(atom, Constant) or atom.value.ndim:
        return False
    if atom.value.dtype.kind in "iu":
        return int(atom.value) < 2**63
    # The bits of a bfloat16 literal cannot be had: TVM breaks down over them.
    return atom.value.dtype.kind == "b" or (atom.value.dtype.kind == "f" and bool(atom.value != 0))


def signature(group: Group) -> tuple[tuple[Atom, ...], object]:
    """A group's operands, and a key that equal groups share. What is updated in place is no operand but the output."""
    inner = {binding.targets[0]: i for i, binding in enumerate(group.bindings)}
    operands: dict[Atom, int] = {}
    calls = []
    for binding in group.bindings:
        value = binding.value
        assert isinstance(value, OpCall)
        wiring: list[object] = []
        in_place = _in_place(group, binding)
        for position, atom in enumerate(value.arguments):
            if in_place is not None and position == in_place.operand:
                wiring.append("output")
            elif isinstance(atom, Var) and atom in inner:
                wiring.append(inner[atom])
            elif inlined(atom):
                assert isinstance(atom, Constant)
                wiring.append((str(atom.value.dtype), atom.value.tobytes()))
            else:
                wiring.append(("operand", operands.setdefault(atom, len(operands))))
        attributes = tuple((name, _exact(v)) for name, v in sorted(value.attributes.items()))
        calls.append((value.operator, attributes, tuple(wiring)))
    types = tuple(_type(atom) for atom in operands)
    return tuple(operands), (tuple(calls), types, _type(group.output))


def _in_place(group: Group, binding: Binding) -> InPlace | None:
    """How a member of a group writes over an operand: only the last one may."""
    assert isinstance(binding.value, OpCall)
    return lookup(binding.value.operator).in_place if binding is group.bindings[-1] else None


def _exact(value: object) -> object:
    """An attribute such that equality is identity: 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    return tuple(map(_exact, value)) if isinstance(value, tuple) else (type(value).__name__, repr(value))


def _type(atom: Atom) -> TensorType:
    type_ = atom.type if isinstance(atom, Var | Constant) else None
    assert isinstance(type_, TensorType)
    return type_


def _build(group: Group, operands: Sequence[Atom], threads: int) -> tuple[Any, list[int]]:
    inputs = [_placeholder(i, _type(atom)) for i, atom in enumerate(operands)]
    tensors: dict[Atom, Any] = dict(zip(operands, inputs, strict=True))
    for binding in group.bindings:
        call = binding.value
        assert isinstance(call, OpCall)
        in_place = _in_place(group, binding)
        arguments = [
            _placeholder(i, _type(a))
            if in_place is not None and i == in_place.operand
            else tensors[a]
            if a in tensors
            else _number(a)
            for i, a in enumerate(call.arguments)
        ]
        tensors[binding.targets[0]] = _stage(call, arguments, _type(binding.targets[0]), in_place)
    output = tensors[group.output]
    if any(output.same_as(tensor) for tensor in inputs):
        source = output
        output = te.compute(source.shape, lambda *index: source(*index), name="copy")
    e = Emission(threads, "int32")
    parameters: list[Any] = []
    statements: list[Statement] = []
    for tensor, atom in zip((*inputs, output), (*operands, None), strict=True):
        dtype = str(tensor.dtype)
        dims = tuple(map(extent, tensor.shape))
        if atom is not None and tir.by_value(_base(_type(atom)), volume(dims)):
            value = tirx.Var("operand", dtype)
            parameters.append(value)
            e.values[key(tensor)] = value
        else:
            address = tirx.Var("operand" if atom is not None else "result", "int64")
            parameters.append(address)
            buffer, declared = tir.view(address.name, (max(volume(dims), 1),), dtype, address)
            statements += declared
            e.places[key(tensor)] = Place(buffer, dims)
    statements += [renamed(statement) for statement in emit(e, output)]
    parameters += [address for address, _ in e.temporaries]
    function = tir.function(parameters, statements).with_attr(tir.KERNEL, True)
    flat, more = tir.flat_kernel(function)
    return flat, [*(size for _, size in e.temporaries), *more]


def _placeholder(position: int, type_: TensorType) -> Any:
    return te.placeholder(type_.dims, _base(type_).name, name=f"operand{position}")


def _base(type_: TensorType) -> BaseType:
    assert isinstance(type_.base, BaseType)
    return type_.base


def _number(atom: Atom) -> Any:
    assert isinstance(atom, Constant)
    value, base = atom.value, _base(atom.type)
    return te.compute((), lambda: tir.literal(value.item(), base), name="number")


def _stage(call: OpCall, arguments: Sequence[Any], type_: TensorType, in_place: InPlace | None) -> Any:
    operator = lookup(call.operator)
    compute = operator.compute if in_place is None else in_place.compute
    if compute is None:
        raise InternalError(f"the operator {call.operator} in a kernel has no compute function")
    attributes: Mapping[str, Any] = call.attributes
    try:
        made = compute(*((tuple(arguments),) if operator.variadic else arguments), **attributes)
        shape = tuple(int(dim) for dim in made.shape)
        dtype = str(made.dtype)
    except Exception as error:
        raise CompileError(f"the compute function of {call.operator} failed: {error}", call.span) from error
    if shape != type_.dims or dtype != _base(type_).name:
        raise CompileError(
            f"the compute function of {call.operator} made {dtype} {shape}; its type is {type_}", call.span
        )
    return made
