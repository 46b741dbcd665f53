"""Layouts of convolutional networks: which axis of an activation holds the channels.

    y = conv2d(x, w, layout="NCHW"); z = relu(y); u = conv2d(z, v, layout="NCHW")
    x' = transpose(x); y' = conv2d(x', w', layout="NHWC"); z' = relu(y'); u' = conv2d(z', v', ..); u = transpose(u')

Which layouts an operator's operands and result have is in its definition (`layouts`). A value that was computed in
another layout is brought back where something needs it as it was, and only there. It is taken as it is by operators
that do the same to all elements (`is_layout_agnostic`), combine them along axes (`combines`), work along one axis
(`along`) or take a slice (`slices`), and by transposes. So a chain has one transform in and one out. Constant weights
are brought to their layout at once. Branches and loops pass values on in their own layout.

NCHW16c has the channels in blocks of 16, or of the largest divisor of their number below that, within which they are
the last axis. Convolutions in groups, and of sizes that are not numbers, stay as they are.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, get_args

import attrs

from relay.errors import RelayError
from relay.ir.expr import Atom, Binding, Block, Constant, Function, Module, OpCall, Var
from relay.ir.rebuild import map_parts, map_terminator
from relay.ir.traverse import walk
from relay.ir.types import BaseType, TensorType, Type
from relay.operator import Emitter, IndexKind, Operator, Pattern, lookup
from relay.transform.analysis.loop_analysis import elements, likely
from relay.transform.core.rebuilding import map_bodies
from relay.transform.layout.layout_forms import (
    blocks_of,
    form_between,
    identity,
    of_parts,
    parts_of,
    rank_of,
    renumber_axes,
    shape_in,
    slice_bounds,
    transform,
    transform_constant,
    with_blocks,
)
from relay.transform.module_pass import module_pass
from relay.typecheck.dims import normalize_axes, normalize_axis

Layout: TypeAlias = Literal[
    "NCW", "NWC", "NCHW", "NHWC", "NCDHW", "NDHWC", "NCW4c", "NCHW4c", "NCDHW4c", "NCW8c", "NCHW8c", "NCDHW8c",
    "NCW16c", "NCHW16c", "NCDHW16c", "NCW32c", "NCHW32c", "NCDHW32c", "NCW64c", "NCHW64c", "NCDHW64c",
]  # fmt: skip
LAYOUT: Layout = "NHWC"


@module_pass
def convert_layout(module: Module, layout: Layout = LAYOUT) -> Module:
    """The module with the operators to which a layout like this one matters computing in it. Raises ValueError for a
    layout that no operator has."""
    if layout not in get_args(Layout):
        raise ValueError(f"a layout is {', '.join(get_args(Layout))}; found {layout!r}")
    return map_bodies(module, lambda function: _LayoutConversion(lambda _: (layout,)).block(function.body))


@attrs.frozen
class LayoutTarget:
    """The costs of layouts on a machine: which ones it prefers, how much longer products take in others, how much
    longer those with small groups of channels take in the preferred ones, how many floating-point operations take as
    long as moving an element in a transpose, and the output channels from which a group is not small. `narrow`: the
    same for products of numbers of 16 bits and fewer, if it differs. `narrow` is what holds for products of numbers
    of 16 bits and fewer, where that is something else."""

    preferred: tuple[str, ...]
    slowdown: float
    grouped: float
    move: int
    large_group: int = 8
    narrow: LayoutTarget | None = None
    whole: bool = False  # it computes with whole blocks only, not of fewer channels, and 8-bit numbers, too

    def for_dtype(self, base: object) -> LayoutTarget:
        """The costs for products of operands of this dtype."""
        is_narrow = isinstance(base, BaseType) and base.dtype.itemsize <= 2
        return self.narrow if self.narrow is not None and is_narrow else self


CPU = LayoutTarget(("NWC", "NHWC", "NDHWC"), 1.7, 4.0, 40)
"""Measured on a processor with vectors of 16 floats: the channels of neighboring weights fill them, if there are as
many in a group, or if each channel is a group of its own."""


VTA = LayoutTarget(("NCHW16c",), 1e3, 1e3, 1, whole=True)
"""The accelerator multiplies blocks of 16 by 16 channels, and nothing else."""

CUDA = LayoutTarget(
    *(("NCW", "NCHW", "NCDHW"), 1.2, 1.0, 40),
    narrow=LayoutTarget(("NWC", "NHWC", "NDHWC"), 1.4, 4.0, 300),
)
"""Graphics processors with units for products of small matrices (tensor cores), as their maker and frameworks say, not
measured here. These units take float16, bfloat16 and int8 with the channels last; NVIDIA's guide to the performance of
convolutions has libraries transpose what comes in another layout, which takes networks in half precision 1.2 times
(ResNet-50) to 1.7 times (VGG-16) as long. Products of float32 to all of its digits run without them, and libraries'
kernels for these are made for channels first. An element that is moved is read and written, which takes 8 or 4 bytes
of 2 TB/s; products reach half of the processor's 19.5 and 312 TFLOP/s."""

TargetName: TypeAlias = Literal["cpu", "cuda", "vta"]
TARGETS: dict[str, LayoutTarget] = {"cpu": CPU, "cuda": CUDA, "vta": VTA}


@module_pass
def choose_layouts(module: Module, target: TargetName | LayoutTarget = "cpu") -> Module:
    """The module with the layouts that the target prefers, in those functions where that saves more than transposes
    cost. Raises ValueError for the name of no target."""
    if isinstance(target, str):
        if target not in TARGETS:
            raise ValueError(f"a target is {', '.join(TARGETS)}; found {target!r}")
        target = TARGETS[target]
    aim = target

    def change(function: Function) -> Block:
        if not any(isinstance(b.value, OpCall) and lookup(b.value.operator).layouts for b in walk(function.body)):
            return function.body
        converted = _LayoutConversion(lambda base: aim.for_dtype(base).preferred, aim.whole).block(function.body)
        return converted if _cost(converted, aim) < _cost(function.body, aim) else function.body

    return map_bodies(module, change)


def _cost(body: Block, target: LayoutTarget) -> float:
    """The time of products and transposes, in floating-point operations."""
    cost = 0.0
    for binding in walk(body):
        call = binding.value
        if not isinstance(call, OpCall):
            continue
        operator = lookup(call.operator)
        size = elements(binding.targets[0])
        moves = operator.indexing.kind is IndexKind.PERMUTE or (
            operator.layouts and operator.pattern is Pattern.INJECTIVE
        )
        if size is not None and moves:
            cost += target.for_dtype(_base(call)).move * likely(size)
        elif operator.layouts is not None and size is not None and _is_product(operator, target):
            layout = call.attributes.get("layout")
            if any(elements(a) is None for a in call.arguments):
                continue
            aim = target.for_dtype(_base(call))
            preferred = [_split_layout(name)[0] for name in aim.preferred]
            factors = (aim.grouped, 1.0) if _in_small_groups(call, operator, aim) else (1.0, aim.slowdown)
            cost += max(_work(call, binding.targets[0]), likely(size)) * factors[layout not in preferred]
    return cost


def _is_product(operator: Operator, target: LayoutTarget) -> bool:
    """True if an operator's time depends on the layout."""
    return bool(operator.algebra.linear) or (target.whole and operator.pattern is Pattern.OUTPUT_FUSABLE)


def _base(call: OpCall) -> object:
    """The dtype of a call's first operand."""
    type_ = getattr(call.arguments[0], "type", None) if call.arguments else None
    return type_.base if isinstance(type_, TensorType) else None


def _in_small_groups(call: OpCall, operator: Operator, target: LayoutTarget) -> bool:
    """True if channels are in groups that are small, but of several channels; in derivatives, in any groups."""
    groups = call.attributes.get("groups", 1)
    weight = getattr(call.arguments[-1], "type", None)
    if (
        groups == 1
        or not isinstance(groups, int)
        or operator.algebra.columns is None
        or not isinstance(weight, TensorType)
    ):
        return groups != 1
    assert operator.layouts is not None
    sizes = dict(zip(operator.layouts(**call.attributes)[-2], weight.shape, strict=True))
    out, inner = sizes.get("O", 0), sizes.get("I", 0)
    return not (isinstance(out, int) and isinstance(inner, int) and (inner == 1 or out >= groups * target.large_group))


def _work(call: OpCall, target: Var) -> float:
    """The floating-point operations of a call, with likely sizes."""
    types = [a.type for a in call.arguments if isinstance(a, Var | Constant) and isinstance(a.type, TensorType)]
    assert isinstance(target.type, TensorType)
    sized = [TensorType(t.base, tuple(likely(d) for d in t.shape)) for t in types]
    result = TensorType(target.type.base, tuple(likely(d) for d in target.type.shape))
    return lookup(call.operator).flops(sized, result)


# ---- conversion


def _split_layout(layout: str) -> tuple[str, int]:
    """A layout as operators call it, and the size of its blocks: NCHWc and 16 for NCHW16c."""
    found = re.fullmatch(r"([A-Z]+)(\d+)c", layout)
    return (f"{found[1]}c", int(found[2])) if found else (layout, 0)


@attrs.frozen
class _ConvertedValue:
    """A value that is there in another form: as `atom`. `chosen`: since an operator got another layout; what only a
    transpose has brought there is as well where it was."""

    atom: Atom
    form: str
    chosen: bool = True


class _LayoutConversion:
    """One function. `layouts`: those that operators get on operands of a dtype; if blocks are `whole`, those whose
    channels fill them."""

    def __init__(self, layouts: Callable[[object], Sequence[str]], whole: bool = False) -> None:
        self.layouts = layouts
        self.whole = whole
        self.moved: dict[Var, _ConvertedValue] = {}
        self.made: ChainMap[tuple[Var, str, str], Var] = ChainMap()  # transforms that are in scope
        self.out: list[Binding] = []

    def block(self, block: Block) -> Block:
        outer = self.out, self.made
        self.out, self.made = [], self.made.new_child()
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, OpCall) and self._call(binding.targets[0], value):
                continue
            made = map_parts(value, atom=self.original, block=self.block)
            self.out.append(Binding(binding.targets, made))
        end = map_terminator(block.terminator, self.original)
        bindings = tuple(self.out)
        self.out, self.made = outer
        return Block(bindings, end)

    def _call(self, target: Var, call: OpCall) -> bool:
        """Append a call in another layout; False if it stays as it is."""
        operator = lookup(call.operator)
        if not isinstance(target.type, TensorType):
            return False
        if operator.layouts is not None:
            return self._convert_layout_operator(target, target.type, operator, call)
        if operator.indexing.kind is IndexKind.PERMUTE:
            return self._convert_transpose(target, target.type, call)
        if operator.requirements or not any(a in self.moved for a in call.arguments if isinstance(a, Var)):
            return False
        if operator.is_layout_agnostic:
            return self._convert_elementwise(target, target.type, operator, call)
        if operator.indexing.reduction_axes is not None:
            return self._convert_reduction(target, target.type, operator, call)
        if operator.indexing.axis is not None:
            return self._convert_axis_operator(target, target.type, operator, call)
        return operator.indexing.kind is IndexKind.SLICE and self._convert_slice(target, target.type, call)

    # ---- the kinds of operators

    def _convert_layout_operator(self, target: Var, type_: TensorType, operator: Operator, call: OpCall) -> bool:
        """An operator to which the layout matters."""
        assert operator.layouts is not None
        attributes = dict(call.attributes)
        attributes.setdefault("layout", operator.attributes.get("layout"))
        layout = attributes["layout"]
        types = [*(getattr(a, "type", None) for a in call.arguments), type_]
        for wanted, block in map(_split_layout, self.layouts(_base(call))):
            if not isinstance(layout, str) or wanted == layout or sorted(wanted.rstrip("c")) != sorted(layout):
                continue
            try:
                old = operator.layouts(**attributes)
                new = operator.layouts(**{**attributes, "layout": wanted})
                forms = _forms(old, new, types, block)
            except (RelayError, TypeError, ValueError):  # a layout that it has not
                return False
            if forms is None or (self.whole and any({*blocks_of(form).values()} - {block} for form in forms)):
                return False
            arguments = tuple(self.atom_in_form(a, form) for a, form in zip(call.arguments, forms, strict=False))
            made = OpCall(call.operator, arguments, {**attributes, "layout": wanted}, call.span)
            return self._bind_result(target, type_, forms[-1], made, chosen=True)
        return False

    def _convert_transpose(self, target: Var, type_: TensorType, call: OpCall) -> bool:
        """A transpose: its operand is the result in another form."""
        (operand,) = call.arguments
        axes = call.attributes.get("axes")
        if not isinstance(operand, Var) or not (axes is None or isinstance(axes, list | tuple)):
            return False
        counted = range(type_.rank)[::-1] if axes is None else axes
        order = [normalize_axis(a, type_.rank) for a in counted]  # type: ignore[arg-type]
        moved = self.moved.get(operand)
        if moved is None:  # those who need the result as it was have it here
            form = renumber_axes(identity(type_.rank), order.index)
            self.out.append(Binding((target,), call))
            self.made[operand, form, identity(type_.rank)] = target
            self.moved[target] = _ConvertedValue(operand, form, chosen=False)
        else:
            self.moved[target] = _ConvertedValue(moved.atom, renumber_axes(moved.form, order.index), moved.chosen)
        return True

    def _convert_elementwise(self, target: Var, type_: TensorType, operator: Operator, call: OpCall) -> bool:
        """An operator that does the same to all elements, where most of what it reads is there in another form."""
        form = self._majority_form(call, type_.rank)
        if form is None:
            return False
        arguments = tuple(self._broadcast(a, type_.rank, form) for a in call.arguments)
        attributes = dict(call.attributes)
        if "shape" in attributes:  # of the result
            attributes["shape"] = shape_in(form, type_.shape)  # type: ignore[assignment]
        made = OpCall(call.operator, arguments, attributes, call.span)
        return self._bind_result(target, type_, form, made, self._has_chosen_operand(call))

    def _convert_reduction(self, target: Var, type_: TensorType, operator: Operator, call: OpCall) -> bool:
        """An operator that combines the elements along axes in any order."""
        (operand,) = call.arguments
        attribute = operator.indexing.reduction_axes
        assert isinstance(operand, Var) and isinstance(operand.type, TensorType) and attribute is not None
        moved, rank = self.moved[operand], operand.type.rank
        given = call.attributes.get(attribute, operator.attributes.get(attribute))
        axes = set(normalize_axes(given, rank))  # type: ignore[arg-type]
        places = tuple(place for place, (axis, _) in enumerate(parts_of(moved.form)) if axis in axes)
        if type_.rank == rank:
            form = with_blocks(moved.form, lambda axis, block: 1 if axis in axes else block)
        else:
            left = [axis for axis in range(rank) if axis not in axes]
            form = renumber_axes(moved.form, lambda axis: left.index(axis) if axis in left else None)
        attributes = {**call.attributes, attribute: places}
        made = OpCall(call.operator, (moved.atom,), attributes, call.span)
        return self._bind_result(target, type_, form, made, moved.chosen)

    def _convert_axis_operator(self, target: Var, type_: TensorType, operator: Operator, call: OpCall) -> bool:
        """An operator that works along one axis, or joins tensors along it."""
        assert operator.indexing.axis is not None
        form = self._majority_form(call, type_.rank)
        axis = call.attributes.get(operator.indexing.axis, operator.attributes.get(operator.indexing.axis))
        if form is None or not isinstance(axis, int):
            return False
        axis = normalize_axis(axis, type_.rank)
        block = blocks_of(form).get(axis, 1)
        extents = [a.type.shape[axis] for a in call.arguments if isinstance(getattr(a, "type", None), TensorType)]  # type: ignore[union-attr]
        if block > 1 and not (operator.variadic and all(isinstance(e, int) and e % block == 0 for e in extents)):
            return False
        arguments = tuple(self.atom_in_form(a, form) for a in call.arguments)
        attributes = {**call.attributes, operator.indexing.axis: parts_of(form).index((axis, 0))}
        made = OpCall(call.operator, arguments, attributes, call.span)
        return self._bind_result(target, type_, form, made, self._has_chosen_operand(call))

    def _convert_slice(self, target: Var, type_: TensorType, call: OpCall) -> bool:
        """A slice, where it cuts no blocks."""
        (operand,) = call.arguments
        assert isinstance(operand, Var)
        moved = self.moved[operand]
        bounds = slice_bounds(moved.form, call.attributes)
        if bounds is None:
            return False
        made = OpCall(call.operator, (moved.atom,), {**call.attributes, **bounds}, call.span)
        return self._bind_result(target, type_, moved.form, made, moved.chosen)

    def _majority_form(self, call: OpCall, rank: int) -> str | None:
        """The form that most of what a call reads is in; None if most of it is there as it was."""
        forms: dict[str, int] = {}
        others = 0
        for atom in dict.fromkeys(call.arguments):
            moved = self.moved.get(atom) if isinstance(atom, Var) else None
            size = likely(e) if (e := elements(atom)) is not None else 0
            if moved is not None and rank_of(moved.form) == rank:
                forms[moved.form] = forms.get(moved.form, 0) + size
            elif isinstance(atom, Var) and getattr(atom.type, "rank", 0) == rank:
                others += size
        form, size = max(forms.items(), key=lambda item: item[1], default=("", 0))
        rest = sum(forms.values()) + others - size
        return form if form and (size > rest or (size == rest and self._has_chosen_operand(call))) else None

    def _has_chosen_operand(self, call: OpCall) -> bool:
        """True if a part of a call's operands was moved since an operator got another layout."""
        return any(self.moved[a].chosen for a in call.arguments if isinstance(a, Var) and a in self.moved)

    def _bind_result(self, target: Var, type_: TensorType, form: str, call: OpCall, chosen: bool) -> bool:
        """Bind the result of a call, which is the target in this form."""
        if form == identity(type_.rank):
            self.out.append(Binding((target,), call))
            return True
        result = Var(target.name, TensorType(type_.base, shape_in(form, type_.shape)), target.span)
        self.out.append(Binding((result,), call))
        self.moved[target] = _ConvertedValue(result, form, chosen)
        return True

    # ---- values

    def original(self, atom: Atom) -> Atom:
        """A value as it was."""
        moved = self.moved.get(atom) if isinstance(atom, Var) else None
        return atom if moved is None else self.atom_in_form(atom, identity(rank_of(moved.form)))

    def atom_in_form(self, atom: Atom, form: str) -> Atom:
        """A value in a form."""
        moved = self.moved.get(atom) if isinstance(atom, Var) else None
        if moved is None:
            return self._transform_atom(atom, identity(rank_of(form)), form)
        return self._transform_atom(moved.atom, moved.form, form)

    def _transform_atom(self, atom: Atom, source: str, form: str) -> Atom:
        """A value in another form."""
        if source == form:
            return atom
        if isinstance(atom, Constant):
            return Constant(transform_constant(atom.value, source, form), atom.span)
        assert isinstance(atom, Var)
        found = self.made.get((atom, source, form))
        if found is None:
            emitter = Emitter(atom.span)
            made = transform(emitter.value(atom), source, form)
            self.out += emitter.bindings
            assert isinstance(made.atom, Var)
            found = self.made[atom, source, form] = made.atom
        return found

    def _broadcast(self, atom: Atom, rank: int, form: str) -> Atom:
        """An operand, of at most this rank, in the form of a result that it is broadcast to."""
        assert isinstance(atom, Var | Constant) and isinstance(atom.type, TensorType)
        missing, shape = rank - atom.type.rank, atom.type.shape
        if not shape:
            return atom
        moved = self.moved.get(atom) if isinstance(atom, Var) else None
        there, source = (moved.atom, moved.form) if moved is not None else (atom, identity(atom.type.rank))
        if missing:  # axes of extent 1 before its own
            source = of_parts(
                [*((axis, 0) for axis in range(missing)), *((missing + axis, b) for axis, b in parts_of(source))]
            )
            if isinstance(there, Constant):
                there = Constant(there.value.reshape((1,) * missing + there.value.shape), there.span)
            else:
                emitter = Emitter(there.span if isinstance(there, Var) else None)
                value = emitter.value(there)
                there = value.op("reshape", shape=(*(1,) * missing, *value.shape)).atom
                self.out += emitter.bindings
        whole = (*(1,) * missing, *shape)
        wanted = with_blocks(form, lambda axis, block: 1 if whole[axis] == 1 else block)
        return self._transform_atom(there, source, wanted)


def _forms(
    old: Sequence[Sequence[str | None]], new: Sequence[Sequence[str | None]], types: Sequence[Type | None], block: int
) -> list[str] | None:
    """The forms of operands and result in another layout; None if an axis has no letter. Raises ValueError."""
    if len(old) != len(types) or any(letter is None for word in (*old, *new) for letter in word):
        return None
    forms = []
    for before, after, type_ in zip(old, new, types, strict=True):
        assert isinstance(type_, TensorType)
        if block and not all(isinstance(dim, int) for dim in type_.shape):
            return None
        forms.append(form_between(before, after, type_.shape, block))
    return forms
