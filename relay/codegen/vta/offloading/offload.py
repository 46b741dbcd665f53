"""Layers of a program become functions that the accelerator runs, and packed tensors flow between them.

    x' = pack(x); y' = vta_1(x'); z' = vta_2(y', x'); z = unpack(z')

First the layout pass brings the accelerator's blocks of channels into the program. The body of a layer's function is
what the layer is on unpacked tensors, so the interpreter runs the program, too. A tensor that is packed already is not
packed again, and what nobody reads unpacked is not unpacked. Then layers that follow each other become one stream
(`streams`), which the code generator calls.
"""

from __future__ import annotations

import re
from collections import ChainMap, Counter
from collections.abc import Sequence

import attrs

from relay.codegen.vta.config import Config
from relay.codegen.vta.layers.programs import packed_weights
from relay.codegen.vta.layers.scheduling import ScheduledLayer
from relay.codegen.vta.layers.search import best_schedule
from relay.codegen.vta.offloading.clusters import Cluster, Matcher, transformed_axes
from relay.codegen.vta.offloading.packed_tensors import join_bytes, pack, split_bytes, unpack
from relay.codegen.vta.offloading.streams import OffloadedLayer, OffloadedModule, gather_streams
from relay.codegen.vta.target import Target
from relay.errors import CompileError
from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Call,
    Constant,
    Derivative,
    Exit,
    Function,
    Global,
    LoopLabel,
    Module,
    OpCall,
    Var,
)
from relay.ir.rebuild import map_parts, map_terminator
from relay.ir.traverse import all_blocks, operands, terminator_operands, walk
from relay.ir.types import TensorType, Type
from relay.operator import Emitter, Value, lookup
from relay.transform.cleanup.constant_folding import fold_constants
from relay.transform.cleanup.dead_code import eliminate_dead_code
from relay.transform.core.rebuilding import map_bodies, with_functions
from relay.transform.layout.layouts import VTA, choose_layouts

DEFAULT = Target()
LARGEST_WEIGHTS = 1 << 30
"""The most bytes of weights that are computed from constants when a program is compiled."""


def offload(module: Module, target: Target = DEFAULT) -> OffloadedModule:
    """A structured core module without derivatives, with its layers as functions for the accelerator, in streams.

    Raises CompileError where there is none, and for a quantized product that the accelerator does not have, with the
    place in the program.
    """
    layouts = attrs.evolve(VTA, preferred=(f"NCHW{target.config.block}c",))
    offloading = _Offloading(module, target)
    folded = fold_constants(module, LARGEST_WEIGHTS)  # weights may be scaled by the program
    made = map_bodies(choose_layouts(folded, layouts), offloading.body)
    if not offloading.layers:
        raise offloading.refusal or _without_layers(module)
    functions: dict[str, Function | Derivative] = {**made.functions, **offloading.functions}
    return gather_streams(eliminate_dead_code(with_functions(made, functions)), offloading.layers, target)


def _without_layers(module: Module) -> CompileError:
    """There is nothing for the accelerator to do."""
    calls = [
        b.value
        for function in module.functions.values()
        if isinstance(function, Function)
        for b in walk(function.body)
        if isinstance(b.value, OpCall)
    ]
    product = next((c for c in calls if lookup(c.operator).numerics.quantized is not None), None)
    name = module.main.name
    if product is None:
        return CompileError(
            f"{name} has no layer for the target 'vta'",
            module.main.span,
            notes=("its layers are products and convolutions of int8 with constant weights, max pooling and sums",),
            help="compile it for target='cpu'",
        )
    type_ = getattr(product.arguments[0], "type", None)
    found = type_.base if isinstance(type_, TensorType) else "numbers"
    return CompileError(
        f"{name} is not quantized: {product.operator} computes in {found}, and the target 'vta' in int8",
        product.span,
        help=f'quantize it: relay.to_int8({name}, samples, integer=True).compile(target="vta")',
    )


class _Offloading:
    """All functions of a module."""

    def __init__(self, module: Module, target: Target) -> None:
        self.target = target
        self.layers: dict[str, OffloadedLayer] = {}
        self.functions: dict[str, Function] = {}
        self._taken = set(module.functions)
        self._uses: Counter[Var] = Counter()
        self._packed: ChainMap[tuple[Var, str], Var] = ChainMap()
        self.refusal: CompileError | None = None
        self._same: dict[Atom, Atom] = {}  # packed tensors that were packed again

    @property
    def config(self) -> Config:
        """The accelerator's configuration."""
        return self.target.config

    def body(self, function: Function) -> Block:
        """The body of a function with calls of layers."""
        self._uses = Counter()
        for block in all_blocks(function.body):
            for binding in block.bindings:
                self._uses.update(a for a in operands(binding.value) if isinstance(a, Var))
            self._uses.update(a for a in terminator_operands(block.terminator) if isinstance(a, Var))
        return self._block(function.body)

    def _block(self, block: Block) -> Block:
        clusters = self._clusters(block)
        self._packed = self._packed.new_child()
        out: list[Binding] = []
        for binding in block.bindings:
            cluster = clusters.get(binding.targets[0]) if binding.targets else None
            if cluster is not None:
                out += self._layer(cluster)
            elif not self._is_packed_already(binding):
                out.append(Binding(binding.targets, map_parts(binding.value, atom=self._atom, block=self._block)))
                self._remember_transform(binding)
        self._packed = self._packed.parents
        return Block(tuple(out), map_terminator(block.terminator, self._atom))

    def _clusters(self, block: Block) -> dict[Var, Cluster]:
        """The clusters of a block by their results: those that end in 8-bit numbers, and products whose sums have
        other readers."""
        matcher = Matcher(block.bindings, self._uses, self.config)
        calls = [b for b in block.bindings if b.targets and isinstance(b.value, OpCall)]
        found = {b.targets[0]: c for b in calls if (c := matcher.match(b)) is not None}
        inside = {b.targets[0] for cluster in found.values() for b in cluster.calls}
        sums = {b.targets[0]: c for b in calls if b.targets[0] not in inside and (c := matcher.sums(b)) is not None}
        self.refusal = self.refusal or matcher.refusal
        return found | sums

    def _atom(self, atom: Atom) -> Atom:
        return self._same.get(atom, atom)

    # ---- transforms of the layout pass

    def _transform(self, binding: Binding) -> tuple[Var, str, bool] | None:
        """The operand of a transform, the axes of the tensor that is not packed, and True if it packs."""
        call = binding.value
        axes = transformed_axes(call, self.config.block) if isinstance(call, OpCall) else None
        if axes is None or not isinstance(call, OpCall) or self.config.batch > 1:
            return None
        (x,) = call.arguments
        packs = axes[1] == "NCHWc"
        return (x, axes[0] if packs else axes[1], packs) if isinstance(x, Var) else None

    def _is_packed_already(self, binding: Binding) -> bool:
        """True if a call of the layout pass packs a tensor that is already packed."""
        found = self._transform(binding)
        if found is None or not found[2]:
            return False
        known = self._packed.get((found[0], found[1]))
        if known is not None:
            self._same[binding.targets[0]] = known
            self._packed[binding.targets[0], "NCHWc"] = known
        return known is not None

    def _remember_transform(self, binding: Binding) -> None:
        found = self._transform(binding)
        if found is None:
            return
        x, axes, packs = found
        target = binding.targets[0]
        if packs:
            self._packed[x, axes] = target
        else:
            packed = self._atom(x)
            assert isinstance(packed, Var)
            self._packed[target, axes] = packed

    # ---- layers

    def _layer(self, cluster: Cluster) -> list[Binding]:
        """The call of a layer on packed tensors, and its result unpacked."""
        emitter = Emitter(cluster.span)
        given = [self._pack(emitter, one.value, one.axes) for one in cluster.operands]
        function = self._function(cluster, [value.type for value in given])
        callee = Global(function.name, function.type, cluster.span)
        call = Call(callee, tuple(value.atom for value in given), cluster.span)
        assert function.result is not None
        result = emitter.bind(call, function.result, "packed")
        assert isinstance(result.atom, Var)
        if cluster.layer.wide:
            unpack(emitter, join_bytes(emitter, result), cluster.result.type, cluster.result_axes, self.config)
        elif unpack(emitter, result, cluster.result.type, cluster.result_axes, self.config) is result:
            self._packed[cluster.result, cluster.result_axes] = cluster.result
        else:
            self._packed[cluster.result, cluster.result_axes] = result.atom
        *before, last = emitter.bindings
        return [*before, Binding((cluster.result,), last.value)]

    def _pack(self, emitter: Emitter, value: Var, axes: str) -> Value:
        known = self._packed.get((value, axes))
        if known is None:
            atom = self._atom(value)
            made = pack(emitter, emitter.value(atom), axes, self.config).atom
            assert isinstance(made, Var)
            known = self._packed[value, axes] = made
        return emitter.value(known)

    def _function(self, cluster: Cluster, types: Sequence[Type]) -> Function:
        """The function of a layer: what it is on unpacked tensors."""
        layer, config = cluster.layer, self.config
        name = self._name(layer.name)
        scheduled = self._schedule(cluster)
        names = ("inp", *(f"res{n}" for n in range(len(cluster.residuals))))
        constants = packed_weights(layer, cluster.weights, cluster.bias)
        self.layers[name] = OffloadedLayer(name, layer, scheduled, constants, names)
        emitter = Emitter(cluster.span)
        parameters = [Var(n, t, cluster.span) for n, t in zip(names, types, strict=True)]
        values: dict[Atom, Value] = {}
        for one, parameter in zip(cluster.operands, parameters, strict=True):
            values[one.value] = unpack(emitter, emitter.value(parameter), one.value.type, one.axes, config)
        for binding in cluster.calls:
            call = binding.value
            assert isinstance(call, OpCall)
            arguments = [emitter.value(a) if isinstance(a, Constant) else values[a] for a in call.arguments]
            emitter.span = call.span
            values[binding.targets[0]] = emitter.call(lookup(call.operator), arguments, call.attributes)
        result = pack(emitter, values[cluster.result], cluster.result_axes, config)
        if layer.wide:
            result = split_bytes(emitter, result)
        label = LoopLabel(name)
        body = Block(tuple(emitter.bindings), Exit(label, (result.atom,)))
        function = Function(name, tuple(parameters), body, label, result.type, span=cluster.span)
        self.functions[name] = function
        return function

    def _schedule(self, cluster: Cluster) -> ScheduledLayer:
        layer = cluster.layer
        try:
            return best_schedule(layer, self.target.threads, config=self.config)
        except ValueError as error:
            raise CompileError(
                f"{layer.name} does not run on the target 'vta': {error}", cluster.span,
                help="compile the function for target='cpu', or write the layer otherwise",
            ) from None  # fmt: skip

    def _name(self, operator: str) -> str:
        base = "vta_" + re.sub(r"[^A-Za-z0-9_]", "_", operator)
        name = next(n for n in (f"{base}_{count}" for count in range(1, len(self._taken) + 2)) if n not in self._taken)
        self._taken.add(name)
        return name


__all__ = ["OffloadedModule", "offload"]
