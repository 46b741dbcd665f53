"""Groups of operator calls as kernels: te stages made by the operators, scheduled, as private functions.

Equal groups (the same operators, attributes, shapes, dtypes and wiring) share one kernel. A kernel takes one parameter
for each operand, then the addresses of its results: one-element operands of machine types by value, others by address.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
from tvm import te
from tvm.ir import TensorLoad
from tvm_ffi import structural_walk

from relay.codegen.kernels.schedules import (
    ConstantOperand,
    Decision,
    Emission,
    Packing,
    Place,
    emit,
    extent,
    key,
    volume,
    with_fresh_names,
    with_registers,
)
from relay.codegen.kernels.sharing import with_bounded_occurrences, with_shared_parts
from relay.codegen.tiling import DEFAULT, Choices, HandSchedule, TilingChoice, TilingOptions, kernel_name
from relay.codegen.tvm import tir
from relay.codegen.tvm.compute_bodies import changed_bodies
from relay.codegen.tvm.machine import current_machine
from relay.codegen.tvm.tir import Expression, GlobalVar, Statement, tirx
from relay.errors import CompileError, InternalError, Label, Span, refusals_of
from relay.ir.dims import (
    LARGEST_SIZE,
    Dim,
    DimExpr,
    Kind,
    TypeId,
    Unknown,
    add,
    floor_divide,
    maximum,
    minimum,
    modulo,
    multiply,
    product,
    substitute,
    subtract,
    variables,
)
from relay.ir.expr import Atom, AttributeValue, Binding, Constant, OpCall, Var
from relay.ir.sizes.facts import facts
from relay.ir.types import BaseType, TensorType, show
from relay.operator import InPlace, Pattern, lookup
from relay.ops.notation import making
from relay.ops.tir.tvm_modules import wide_indices
from relay.support import progress
from relay.support.phases import is_recorded, phase
from relay.support.signals import deferral
from relay.transform.fusion.fusion_groups import FusionGroup


@attrs.frozen(eq=False)
class Kernel:
    """A group's function, the operands in the order of its parameters, those among them, by position, that it wants
    arranged in its own way, the dims whose sizes it takes after the results' addresses, and the bytes of the temporary
    buffers whose addresses it takes then. It may fail where it starts threads."""

    function: Any
    operands: tuple[Atom, ...]
    packed: Mapping[int, Packing]
    sizes: tuple[TypeId, ...]
    temporaries: tuple[Dim, ...]
    may_fail: bool


@attrs.frozen(eq=False)
class _BuiltKernel:
    """A kernel's function, the bytes of its temporary buffers, how it wants operands that are constants, by position,
    the schedule rules that were chosen, and what else might be."""

    function: Any
    temporaries: Sequence[Dim]
    packed: Mapping[int, Packing]
    decisions: Sequence[Decision]
    options: TilingOptions | None


@attrs.frozen
class KernelSchedule:
    """A kernel of a program: its name, its operators, the types of its results, and the rules that made its loops; or
    operators that need no kernel, and why."""

    name: str
    operators: tuple[str, ...]
    results: tuple[TensorType, ...]
    decisions: tuple[Decision, ...]


class Kernels:
    """The kernels of one program. `explores`: to find out what else their loops might be."""

    def __init__(self, threads: int, choices: Choices, explores: bool = False) -> None:
        self.functions: dict[Any, Any] = {}
        self.options: dict[str, TilingOptions] = {}  # by the kernels' names
        self.schedules: list[KernelSchedule] = []
        self._explores = explores
        self.calls = 0  # the places that call kernels
        self.threads = threads
        self._choices = choices
        self._known: dict[object, tuple[Any, tuple[Dim, ...], Mapping[int, Packing], bool]] = {}

    def kernel(self, group: FusionGroup) -> Kernel:
        """The kernel for a group. Raises CompileError if an operator's `compute` fails."""
        operands, sizes, key = signature(group)
        _refuse_absurd_sizes(group)
        self.calls += 1
        if key not in self._known:
            operators = tuple(b.value.operator for b in group.bindings if isinstance(b.value, OpCall))
            name = GlobalVar(f"kernel{len(self._known)}_{'_'.join(operators)[:40]}")
            progress.show_progress(f"loops of kernel {len(self._known) + 1}")
            choice = self._choices.get(kernel_name(key), DEFAULT) if self._choices else DEFAULT
            with refusals_of(*_lines(group)), phase("kernels", str(name.name_hint)):
                if self._explores or is_recorded():
                    built = _build(group, operands, sizes, self.threads, choice, explores=self._explores)
                else:
                    built = _cached_build(group, operands, sizes, self.threads, choice, key)
            self.functions[name] = built.function
            if built.options is not None:
                self.options[kernel_name(key)] = built.options
            results = tuple(map(_type, group.outputs))
            self.schedules.append(KernelSchedule(str(name.name_hint), operators, results, tuple(built.decisions)))
            # In terms of the first dim, the second, ..: other groups with this kernel have others.
            general = tuple(in_terms(size, sizes, _DIMS) for size in built.temporaries)
            self._known[key] = name, general, built.packed, self.threads > 1 and _starts_threads(built.function)
        function, general, packed, may_fail = self._known[key]
        temporaries = tuple(in_terms(size, _DIMS, sizes) for size in general)
        return Kernel(function, operands, packed, sizes, temporaries, may_fail)

    def note_joined(self, group: FusionGroup, computed: int, copied: int) -> None:
        """Note that a group which joins operands has no kernel: so many are computed in its result, or copied there."""
        rest = f", and {copied} copied there" if copied else ""
        decision = Decision("joined_operands", f"{computed} operands", f"they are computed in the result{rest}")
        operators = tuple(b.value.operator for b in group.bindings if isinstance(b.value, OpCall))
        self.schedules.append(KernelSchedule("no kernel", operators, tuple(map(_type, group.outputs)), (decision,)))


_MOST_BYTES = 1 << 47
"""More memory than a process has addresses."""


def _refuse_absurd_sizes(group: FusionGroup) -> None:
    """Raise CompileError for a result that no memory holds, and for more elements than are counted."""
    for binding in group.bindings:
        type_ = _type(binding.targets[0])
        elements = product(type_.shape)
        if not isinstance(elements, int):
            continue
        bytes_ = elements * type_.dtype.itemsize
        span = binding.value.span if isinstance(binding.value, OpCall) else None
        if binding.targets[0] in group.outputs and bytes_ > _MOST_BYTES:
            raise CompileError(f"{show(type_)} takes {bytes_} bytes of memory, which no process has", span)
        if elements >= 1 << 62:
            raise CompileError(f"{show(type_)} has {elements} elements, which no computer has memory for", span)


_NAMED = 4
"""The number of lines of a kernel that an error names besides the first."""


def _lines(group: FusionGroup) -> tuple[str, Span | None, tuple[Label, ...]]:
    """A kernel in words, and the lines of the program that it comes from."""
    calls = [binding.value for binding in group.bindings if isinstance(binding.value, OpCall)]
    found = {(c.span.source.filename, c.span.line): (c.span, c.operator) for c in calls if c.span is not None}
    places = list(found.values())
    labels = tuple(Label(span, operator) for span, operator in places[1 : _NAMED + 1])
    what = f"a kernel of {', '.join(dict.fromkeys(c.operator for c in calls))}"
    return what, places[0][0] if places else None, labels


_DIMS = tuple(TypeId(f"d{number}", Kind.Dim) for number in range(100))


def in_terms(dim: Dim, old: Sequence[TypeId], new: Sequence[TypeId]) -> Dim:
    """A dim with other variables."""
    pairs: dict[TypeId | Unknown, TypeId] = dict(zip(old, new, strict=False))
    return dim if isinstance(dim, int) else substitute(dim, lambda v: pairs.get(v, v))


def symbolic_in(part: object) -> list[TypeId]:
    """The symbolic dims in a type's shape, an attribute or a dim, in order, each perhaps several times."""
    match part:
        case TensorType():
            return symbolic_in(part.shape)
        case tuple():
            return [v for p in part for v in symbolic_in(p)]
        case TypeId():
            return [part]
        case DimExpr():
            return sorted((v for v in variables(part) if isinstance(v, TypeId)), key=str)
        case _:
            return []


def is_inlined(atom: Atom) -> bool:
    """True if an operand is a literal in the kernel: a number that TIR has a literal for and computes with correctly.

    TIR makes `x * 0.0` 0 also for infinite x, drops the 0.0 of `-0.0 + 0.0`, and refuses `x / 0.0`.
    """
    if not isinstance(atom, Constant) or atom.value.ndim:
        return False
    if atom.value.dtype.kind in "iu":
        return int(atom.value) < 2**63
    # The bits of a bfloat16 literal cannot be had: TVM breaks down over them.
    return atom.value.dtype.kind == "b" or (atom.value.dtype.kind == "f" and bool(atom.value != 0))


def signature(group: FusionGroup, overwrites: bool = True) -> tuple[tuple[Atom, ...], tuple[TypeId, ...], object]:
    """A group's operands, the symbolic dims in it, and a key that equal groups share: kernels may want constants in
    another order than arguments. What is updated in place is not an operand but the output; with `overwrites` false
    nothing is."""
    inner = {binding.targets[0]: i for i, binding in enumerate(group.bindings)}
    operands: dict[Atom, int] = {}
    calls: list[tuple[str, tuple[object, ...], TensorType]] = []
    attributes: list[list[tuple[str, AttributeValue]]] = []
    for binding in group.bindings:
        value = binding.value
        assert isinstance(value, OpCall)
        wiring: list[object] = []
        in_place = _in_place(group, binding) if overwrites else None
        for position, atom in enumerate(value.arguments):
            if in_place is not None and position == in_place.operand:
                wiring.append("output")
            elif isinstance(atom, Var) and atom in inner:
                wiring.append(inner[atom])
            elif is_inlined(atom):
                assert isinstance(atom, Constant)
                wiring.append((str(atom.value.dtype), atom.value.tobytes()))
            else:
                wiring.append(("operand", operands.setdefault(atom, len(operands))))
        attributes.append(sorted(value.attributes.items()))
        calls.append((value.operator, tuple(wiring), _type(binding.targets[0])))
    types = [*(_type(atom) for atom in operands), *(type_ for _, _, type_ in calls)]
    sizes = tuple(
        dict.fromkeys(v for part in (*types, *(a for of in attributes for _, a in of)) for v in symbolic_in(part))
    )
    constants = _packable(group, tuple(operands))
    key = (
        tuple(inner[var] for var in group.outputs),
        tuple(inner[var] for var in group.kept),
        *(("constants", *constants),) * bool(constants),
        tuple((operator, wiring) for operator, wiring, _ in calls),
        tuple(tuple((name, _exact_key(v, sizes)) for name, v in of) for of in attributes),
        tuple((str(type_.base), tuple(str(in_terms(d, sizes, _DIMS)) for d in type_.shape)) for type_ in types),
    )
    return tuple(operands), sizes, key


def _packable(group: FusionGroup, operands: Sequence[Atom]) -> list[int]:
    """The positions of operands that a product may want packed: constant matrices and larger."""
    calls = [binding.value for binding in group.bindings if isinstance(binding.value, OpCall)]
    if not any(lookup(call.operator).pattern is Pattern.OUTPUT_FUSABLE for call in calls):
        return []
    return [i for i, atom in enumerate(operands) if isinstance(atom, Constant) and atom.value.ndim > 1]


def _in_place(group: FusionGroup, binding: Binding) -> InPlace | None:
    """The way in which a member of a group writes over an operand: only the last one may."""
    assert isinstance(binding.value, OpCall)
    return lookup(binding.value.operator).memory.in_place if binding is group.bindings[-1] else None


def _exact_key(value: object, sizes: Sequence[TypeId]) -> object:
    """An attribute such that equality is identity: 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    if isinstance(value, tuple):
        return tuple(_exact_key(v, sizes) for v in value)
    if isinstance(value, TypeId | DimExpr):
        return "dim", str(in_terms(value, sizes, _DIMS))
    return type(value).__name__, repr(value)


def _type(atom: Atom) -> TensorType:
    type_ = atom.type if isinstance(atom, Var | Constant) else None
    assert isinstance(type_, TensorType)
    return type_


_KEPT = 500
"""The number of kernels that are kept for other programs."""

_made: dict[object, _BuiltKernel] = {}


def _cached_build(
    group: FusionGroup,
    operands: Sequence[Atom],
    sizes: Sequence[TypeId],
    threads: int,
    choice: TilingChoice,
    key: object,
) -> _BuiltKernel:
    """As `_build`, for a kernel with this key. Those made last are kept, for many programs have equal ones; but not of
    symbolic sizes, whose loops depend on what the program assumes. The caller holds `locks.compiling`."""
    deferral.handle()
    if sizes:
        return _build(group, operands, sizes, threads, choice)
    operators = tuple(lookup(b.value.operator) for b in group.bindings if isinstance(b.value, OpCall))
    whole = key, operators, threads, choice, current_machine()
    found = _made.pop(whole, None)
    if found is None:
        found = _build(group, operands, sizes, threads, choice)
    while len(_made) >= _KEPT:
        del _made[next(iter(_made))]
    _made[whole] = found  # at the end: those not used for the longest time are the first
    return found


def _build(
    group: FusionGroup,
    operands: Sequence[Atom],
    sizes: Sequence[TypeId],
    threads: int,
    choice: TilingChoice,
    packs: bool = True,
    explores: bool = False,
) -> _BuiltKernel:
    """The kernel of a group. Constants are packed unless `packs` is false."""
    most = _elements(group, operands)
    if sizes or most <= INDEX_LIMIT:
        return _build_counting(group, operands, sizes, threads, choice, packs, bool(sizes), explores)
    try:
        return _build_counting(group, operands, sizes, threads, choice, packs, True, explores)
    except CompileError:  # a compute function may take it that axes of known extents have int32
        if most > LARGEST_SIZE:
            raise
        return _build_counting(group, operands, sizes, threads, choice, packs, False, explores)


def _build_counting(
    group: FusionGroup,
    operands: Sequence[Atom],
    sizes: Sequence[TypeId],
    threads: int,
    choice: TilingChoice,
    packs: bool,
    wide: bool,
    explores: bool,
) -> _BuiltKernel:
    """As `_build`, with indices of 64 bits if they are `wide`."""
    extents = Extents(sizes, wide)
    inputs, outputs, tensors = group_stages(group, operands, extents)
    chosen = _chosen_schedule(group, choice)
    e = Emission(threads, "int64" if wide else "int32", choice if chosen is None else chosen.choice, explores)
    e.schedule = chosen
    if chosen is not None and chosen.tile:
        e.in_blocks = [tensors[b.targets[0]].op for b in group.bindings if _is_in_blocks(b)]
    parameters: list[Any] = []
    statements: list[Statement] = []
    for tensor, atom in zip((*inputs, *outputs), (*operands, *(None for _ in outputs)), strict=True):
        parameter, declared = _bind_operand(e, tensor, atom)
        parameters.append(parameter)
        statements += declared
    given = _constant_operands(e, inputs, parameters, _packable(group, operands) if packs else ())
    loops = emit(e, outputs, [tensors[var].op for var in group.kept])
    if chosen is not None:
        _check_schedule(group, chosen, e.decisions)
    for constant in e.packings:
        plain = next(e.places[k].buffer for k, g in e.constants.items() if g is constant)
        if any(_reads(statement, plain) for statement in loops):  # as it is, too
            return _build_counting(group, operands, sizes, threads, choice, False, wide, explores)
    statements += e.declarations
    statements.append(with_registers(with_fresh_names(tir.sequence(loops))))
    parameters += [*extents.variables.values(), *(address for address, _ in e.temporaries)]
    function = tir.function(parameters, statements).with_attr(tir.KERNEL, True)
    least = {variable: facts().lower_bound(dim) for dim, variable in extents.variables.items()}
    flat, more = tir.flat_kernel(function, least)
    temporaries = [*(extents.dim(size) for _, size in e.temporaries), *map(extents.dim, more)]
    packed = {given[constant]: found for constant, found in e.packings.items()}
    options = TilingOptions(tuple(e.alternatives), e.tilings) if e.alternatives or e.tilings else None
    return _BuiltKernel(flat, temporaries, packed, e.decisions, options)


def _schedule_call(group: FusionGroup) -> OpCall | None:
    """The call that says how the kernel of a group is to be made."""
    calls = (b.value for b in group.bindings if isinstance(b.value, OpCall) and not _is_in_blocks(b))
    return next((c for c in calls if lookup(c.operator).memory.stored and "rule" in c.attributes), None)


def _is_in_blocks(binding: Binding) -> bool:
    """True if the program wants a value to be computed in the blocks of the kernel that reads it."""
    call = binding.value
    return isinstance(call, OpCall) and lookup(call.operator).memory.stored and call.attributes.get("in_blocks") is True


def _chosen_schedule(group: FusionGroup, choice: TilingChoice) -> HandSchedule | None:
    """The loops that the program chooses for a group; for the rest, those of `choice`."""
    call = _schedule_call(group)
    if call is None:
        return None
    given: Any = call.attributes
    names = {"height": "rows", "vectors": "vectors", "packed": "packed", "parallel": "parallel", "rule": "rule"}
    chosen = {field: given[name] for field, name in names.items() if given[name] is not None}
    blocks = {name: given[name] for name in ("tile", "vectorize", "unroll", "cache")}
    return HandSchedule(attrs.evolve(choice, **chosen), **blocks)


def _check_schedule(group: FusionGroup, chosen: HandSchedule, decisions: Sequence[Decision]) -> None:
    """Raise CompileError where the loops that the program has chosen do not suit what the kernel computes."""
    call = _schedule_call(group)
    assert call is not None
    taken = ", ".join(dict.fromkeys(d.rule for d in decisions))
    wanted = "blocks_by_hand" if chosen.tile else call.attributes["rule"]
    if wanted is not None and all(d.rule != wanted for d in decisions):
        what = "a tile does" if chosen.tile else f"the rule {wanted!r} does"
        help = "tiles are for elementwise kernels of known sizes" if chosen.tile else None
        if chosen.cache or any(map(_is_in_blocks, group.bindings)):
            what_is = "a cache for operands" if chosen.cache else "their blocks compute values"
            help = f"{help}, and {what_is} that are read along the same axes everywhere"
        raise CompileError(f"{what} not apply to this kernel, whose rule is {taken}", call.span, help=help)


def group_stages(
    group: FusionGroup, operands: Sequence[Atom], extents: Extents, overwrites: bool = True
) -> tuple[list[Any], list[Any], dict[Atom, Any]]:
    """The te stages of a group: its inputs, its outputs, and those of all values. `overwrites`: as for `signature`."""
    inputs = [placeholder(i, _type(atom), extents) for i, atom in enumerate(operands)]
    tensors: dict[Atom, Any] = dict(zip(operands, inputs, strict=True))
    for binding in group.bindings:
        call = binding.value
        assert isinstance(call, OpCall)
        in_place = _in_place(group, binding) if overwrites else None
        arguments = [
            placeholder(i, _type(a), extents)
            if in_place is not None and i == in_place.operand
            else tensors[a]
            if a in tensors
            else _number(a)
            for i, a in enumerate(call.arguments)
        ]
        tensors[binding.targets[0]] = operator_stage(call, arguments, _type(binding.targets[0]), in_place, extents)
    outputs: list[Any] = []
    for variable in group.outputs:
        made = tensors[variable]
        if any(made.same_as(tensor) for tensor in (*inputs, *outputs)):
            made = te.compute(made.shape, lambda *index, source=made: source(*index), name="copy")
        outputs.append(made)
    return inputs, outputs, tensors


def _bind_operand(e: Emission, tensor: Any, atom: Atom | None) -> tuple[Any, list[Statement]]:
    """The parameter that a kernel reads an operand by, or writes a result (`atom` is None) to: a number, or an address,
    which is declared as a buffer."""
    dtype = str(tensor.dtype)
    dims = tuple(map(extent, tensor.shape))
    if atom is not None and tir.by_value(_base(_type(atom)), product(_type(atom).shape)):
        value = tirx.Var("operand", dtype)
        e.values[key(tensor)] = value
        return value, []
    address = tirx.Var("operand" if atom is not None else "result", "int64")
    elements = volume(dims)
    size = max(elements, 1) if isinstance(elements, int) else elements
    buffer, declared = tir.view(address.name, (size,), dtype, address)
    e.places[key(tensor)] = Place(buffer, dims, address=address)
    return address, declared


def _constant_operands(
    e: Emission, inputs: Sequence[Any], parameters: Sequence[Any], packable: Sequence[int]
) -> dict[ConstantOperand, int]:
    """The operands that may be packed before the program runs, with their positions."""
    found: dict[ConstantOperand, int] = {}
    for position in packable:
        place = e.places.get(key(inputs[position]))
        elements = volume(place.dims) if place is not None else None
        if isinstance(elements, int):
            e.constants[key(inputs[position])] = constant = ConstantOperand(
                parameters[position], str(inputs[position].dtype), elements
            )
            found[constant] = position
    return found


INDEX_LIMIT = 1 << 12
"""The most elements of a tensor whose kernels count in int32: TVM multiplies such numbers (`wide_indices`)."""


def _elements(group: FusionGroup, operands: Sequence[Atom]) -> int:
    """The elements of the largest tensor of a group whose size is known."""
    types = [*map(_type, operands), *(_type(binding.targets[0]) for binding in group.bindings)]
    return max((n for type_ in types if isinstance(n := product(type_.shape), int)), default=0)


def _starts_threads(function: Any) -> bool:
    """True if some loop of a kernel is for several threads."""
    found: list[Any] = []
    structural_walk(function.body, ((tirx.For, found.append),))
    return any(loop.kind == tirx.ForKind.PARALLEL for loop in found)


def _reads(statement: Statement, buffer: Any) -> bool:
    """True if a statement reads a buffer."""
    found: list[Any] = []
    structural_walk(statement, ((TensorLoad, found.append),))
    return any(load.source.same_as(buffer) for load in found)


class Extents:
    """The symbolic dims of a kernel, which are parameters of its function, as expressions of TIR, and back."""

    def __init__(self, sizes: Sequence[TypeId], wide: bool) -> None:
        self.wide = wide and not sizes  # whether numbers are extents of 64 bits
        self.variables = {dim: tirx.Var(dim.name, "int64") for dim in sizes}
        self._known: dict[Dim, Expression] = {}
        self._replaced = False

    def equal(self, found: Dim, expected: Dim) -> bool:
        """True if a stage's extent is that of its type, as far as is known. If other variables replace dims, the
        facts may not suffice to decide it."""
        if found == expected:
            return True
        answer = facts().equal(found, expected)
        return answer is True or (answer is None and self._replaced)

    def expression(self, dim: Dim) -> Any:
        """A dim for te: a number as it is, the same expression each time, also for other dims that are known to be
        equal. What is known to be 1 is 1: by that operators see which axes are repeated."""
        if isinstance(dim, int):
            return dim if not self.wide else tir.integer(dim)
        if dim not in self._known:
            assert isinstance(dim, TypeId | DimExpr)
            self._known[dim] = self._expression(dim)
        return self._known[dim]

    def _expression(self, dim: TypeId | DimExpr) -> Any:
        known = facts()
        for other, expression in ((1, 1), *self._known.items()):
            if known.equal(dim, other) is True:
                self._replaced = True
                return expression
        return self.variables[dim] if isinstance(dim, TypeId) else tir.arithmetic(dim, self._integer)

    def dim_or_number(self, dim: Dim) -> Any:
        """As `expression`, and a number as it is."""
        return dim if isinstance(dim, int) else self.expression(dim)

    def _integer(self, dim: Dim) -> Expression:
        return tir.integer(dim) if isinstance(dim, int) else self.expression(dim)

    def attribute(self, value: Any) -> Any:
        """An attribute with expressions for symbolic dims."""
        if isinstance(value, tuple):
            return tuple(map(self.attribute, value))
        return self.expression(value) if isinstance(value, TypeId | DimExpr) else value

    def dim(self, value: Any) -> Dim:
        """The dim that an expression is. Raises ValueError if it is none."""
        if isinstance(value, int):
            return value
        if isinstance(value, tirx.IntImm):
            return int(value.value)
        if isinstance(value, tirx.Cast):
            return self.dim(value.value)
        for dim, variable in self.variables.items():
            if value.same_as(variable):
                return dim
        made = _ARITHMETIC.get(type(value))
        if made is None:
            raise ValueError(f"{value} is not a size")
        return made(self.dim(value.a), self.dim(tir.second_operand(value)))


_ARITHMETIC: dict[type, Callable[[Dim, Dim], Dim]] = {
    tirx.Add: add, tirx.Sub: subtract, tirx.Mul: multiply, tirx.FloorDiv: floor_divide, tirx.Div: floor_divide,
    tirx.FloorMod: modulo, tirx.Mod: modulo, tirx.Max: maximum, tirx.Min: minimum,
}  # fmt: skip


def placeholder(position: int, type_: TensorType, extents: Extents) -> Any:
    return te.placeholder(tuple(map(extents.expression, type_.shape)), _base(type_).name, name=f"operand{position}")


def _base(type_: TensorType) -> BaseType:
    assert isinstance(type_.base, BaseType)
    return type_.base


def _number(atom: Atom) -> Any:
    assert isinstance(atom, Constant)
    value, base = atom.value, _base(atom.type)
    return te.compute((), lambda: tir.literal(value.item(), base), name="number")


def operator_stage(
    call: OpCall, arguments: Sequence[Any], type_: TensorType, in_place: InPlace | None, extents: Extents
) -> Any:
    operator = lookup(call.operator)
    compute = operator.compute if in_place is None else in_place.compute
    if compute is None:
        raise InternalError(f"the operator {call.operator} in a kernel has no compute function")
    attributes: Mapping[str, Any] = {name: extents.attribute(v) for name, v in call.attributes.items()}
    try:
        with making(tuple(map(extents.dim_or_number, type_.shape)), _base(type_).name), wide_indices(extents.wide):
            given = (tuple(arguments),) if operator.variadic else arguments
            if str(getattr(compute, "__module__", "")).startswith("relay."):  # whose names are its own
                made = compute(*given, **attributes)
            else:
                with changed_bodies(with_bounded_occurrences):
                    made = with_shared_parts(compute(*given, **attributes))
        shape = tuple(map(extents.dim, made.shape))
        dtype = str(made.dtype)
    except Exception as error:
        what = "does not take symbolic sizes" if extents.variables else "failed"
        help = "an extent of its operands may be an expression instead of a number" if extents.variables else None
        message = f"the compute function of {call.operator} {what}: {error}"
        raise CompileError(message, call.span, help=help) from error
    if len(shape) != len(type_.shape) or not all(map(extents.equal, shape, type_.shape)) or dtype != _base(type_).name:
        raise CompileError(
            f"the compute function of {call.operator} made {dtype} {shape}; its type is {type_}", call.span
        )
    return made
