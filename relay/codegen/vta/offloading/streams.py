"""Streams: layers of a program that follow each other, which the accelerator runs at one call of the host.

    a = vta_conv_1(x); b = vta_conv_2(a, x); s = host(x); c = vta_pool_1(b)   ->   s = host(x); c = vta_1(x)

Within a block of a function the host computes what it can, then all layers run whose operands are there, then the host
goes on. Layers do not move past branches, loops and effects, so what a program leaves out, it still leaves out. Tensors
between the layers of a stream stay in the accelerator's memory. The body of a stream's function calls the layers'
functions, so the interpreter runs the program, too.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence

import attrs
import numpy as np

from relay.codegen.vta.layers.layer import Layer
from relay.codegen.vta.layers.programs import StreamPart, stream_program
from relay.codegen.vta.layers.scheduling import ScheduledLayer
from relay.codegen.vta.offloading.stream_calls import StreamCall
from relay.codegen.vta.target import Target
from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Call,
    Derivative,
    Exit,
    Function,
    Global,
    LoopLabel,
    Module,
    Project,
    Var,
)
from relay.ir.rebuild import map_blocks
from relay.ir.traverse import NESTING, all_blocks, operands, terminator_operands
from relay.ir.types import TensorType, TupleType
from relay.operator import Emitter, Value
from relay.transform.core.rebuilding import map_bodies, with_body, with_functions


@attrs.frozen(eq=False)
class OffloadedLayer:
    """A layer whose function is in the program: how it is cut, its packed constants, and the buffers of its
    operands."""

    name: str
    layer: Layer
    scheduled: ScheduledLayer
    constants: Mapping[str, np.ndarray]
    operands: tuple[str, ...]


@attrs.frozen(eq=False)
class OffloadedModule:
    """A module with functions for streams, which call those of layers; and the streams, by the names of the former, in
    order."""

    module: Module
    layers: Mapping[str, OffloadedLayer]
    streams: Mapping[str, StreamCall]

    @property
    def host(self) -> Module:
        """The module for the host: the functions of streams, which are called elsewhere, have no contents, and those of
        layers are left out."""
        functions = {name: f for name, f in self.module.functions.items() if name not in self.layers}
        for name in self.streams:
            function = functions[name]
            assert isinstance(function, Function)
            functions[name] = with_body(function, _without_contents(function))
        return with_functions(self.module, functions)


def gather_streams(module: Module, layers: Mapping[str, OffloadedLayer], target: Target) -> OffloadedModule:
    """The module with the calls of layers in streams."""
    gathering = _Gathering(module, layers, target)
    made = map_bodies(module, gathering.body)
    functions: dict[str, Function | Derivative] = {**made.functions, **gathering.functions}
    return OffloadedModule(with_functions(made, functions), layers, gathering.streams)


class _Gathering:
    """All functions of a module."""

    def __init__(self, module: Module, layers: Mapping[str, OffloadedLayer], target: Target) -> None:
        self.layers = layers
        self.target = target
        self.functions: dict[str, Function] = {}
        self.streams: dict[str, StreamCall] = {}
        self._taken = set(module.functions)
        self._reads: Counter[Atom] = Counter()

    def body(self, function: Function) -> Block:
        """A function's body with calls of streams."""
        if function.name in self.layers:
            return function.body
        self._reads = Counter()
        for block in all_blocks(function.body):
            self._reads.update(_read(block.bindings))
            self._reads.update(terminator_operands(block.terminator))
        return self._block(function.body)

    def _block(self, block: Block) -> Block:
        out: list[Binding] = []
        straight: list[Binding] = []
        for binding in block.bindings:
            if binding.targets and binding.value.__class__ not in NESTING:
                straight.append(binding)
                continue
            out += self._straight_line_code(straight)
            straight = []
            out.append(Binding(binding.targets, map_blocks(binding.value, self._block)))
        return Block((*out, *self._straight_line_code(straight)), block.terminator)

    def _straight_line_code(self, bindings: Sequence[Binding]) -> list[Binding]:
        """Bindings without branches and effects: the host's in their order, and streams where these wait for them."""
        host = deque(b for b in bindings if self._layer(b) is None)
        waiting = [b for b in bindings if self._layer(b) is not None]
        missing = {target for binding in bindings for target in binding.targets}
        out: list[Binding] = []

        def is_ready(binding: Binding) -> bool:
            return missing.isdisjoint(operands(binding.value))

        while host or waiting:
            while host and is_ready(host[0]):
                out.append(host.popleft())
                missing.difference_update(out[-1].targets)
            stream: list[Binding] = []
            for binding in waiting:
                if is_ready(binding):
                    stream.append(binding)
                    missing.difference_update(binding.targets)
            if stream:
                waiting = [b for b in waiting if b not in stream]
                out += self._stream(stream)
        return out

    def _layer(self, binding: Binding) -> OffloadedLayer | None:
        call = binding.value
        if not isinstance(call, Call) or not isinstance(call.function, Global):
            return None
        return self.layers.get(call.function.name)

    def _stream(self, calls: Sequence[Binding]) -> list[Binding]:
        """The call of a stream, and its results."""
        inside = Counter(_read(calls))
        made = [b.targets[0] for b in calls]
        given = [a for a in inside if isinstance(a, Var) and a not in made]
        results = [v for v in made if self._reads[v] > inside[v]] or made[-1:]
        function = self._function(calls, given, results)
        span = calls[0].value.span if isinstance(calls[0].value, Call) else None
        call = Call(Global(function.name, function.type, span), tuple(given), span)
        if len(results) == 1:
            return [Binding((results[0],), call)]
        whole = Var("results", function.result, span)
        parts = [Binding((v,), Project(whole, n, span)) for n, v in enumerate(results)]
        return [Binding((whole,), call), *parts]

    def _function(self, calls: Sequence[Binding], given: Sequence[Var], results: Sequence[Var]) -> Function:
        names: dict[Atom, str] = {v: f"x{n}" for n, v in enumerate(given)}
        names.update((v, f"y{n}") for n, v in enumerate(results))
        scratch = 0
        parts: list[StreamPart] = []
        for binding in calls:
            call, layer, target = binding.value, self._layer(binding), binding.targets[0]
            assert isinstance(call, Call) and layer is not None
            if target not in names:
                names[target] = f"t{scratch}"
                scratch += 1
            read = tuple(names[a] for a in call.arguments)
            parts.append(StreamPart(layer.name, layer.scheduled, layer.constants, read, names[target]))
        name = self._name()
        read, written = tuple(names[v] for v in given), tuple(names[v] for v in results)
        program = stream_program(parts, read, written, self.target.config)
        self.streams[name] = StreamCall(name, program, read, written)
        parameters = tuple(Var(names[v], v.type, v.span) for v in given)
        emitter = Emitter(calls[0].targets[0].span)
        values: dict[Atom, Value] = {v: emitter.value(p) for v, p in zip(given, parameters, strict=True)}
        for binding in calls:
            call, target = binding.value, binding.targets[0]
            assert isinstance(call, Call) and target.type is not None
            inner = Call(call.function, tuple(values[a].atom for a in call.arguments), call.span)
            values[target] = emitter.bind(inner, target.type, names[target])
        last = values[results[0]] if len(results) == 1 else emitter.tuple([values[v] for v in results])
        label = LoopLabel(name)
        body = Block(tuple(emitter.bindings), Exit(label, (last.atom,)))
        self.functions[name] = Function(name, parameters, body, label, last.type, span=emitter.span)
        return self.functions[name]

    def _name(self) -> str:
        name = next(n for n in (f"vta_{count}" for count in range(1, len(self._taken) + 2)) if n not in self._taken)
        self._taken.add(name)
        return name


def _read(bindings: Iterable[Binding]) -> Iterable[Atom]:
    return (a for b in bindings for a in operands(b.value) if isinstance(a, Var))


def _without_contents(function: Function) -> Block:
    """A body that gives zeros."""
    result = function.result
    types = result.items if isinstance(result, TupleType) else (result,)
    emitter = Emitter(function.span)
    values = []
    for type_ in types:
        assert isinstance(type_, TensorType)
        shape = tuple(d for d in type_.shape if isinstance(d, int))
        zero = emitter.constant(0, type_.base)  # type: ignore[arg-type]
        values.append(emitter.value(zero.op("broadcast_to", shape=shape).atom))
    last = values[0] if len(values) == 1 else emitter.tuple(values)
    return Block(tuple(emitter.bindings), Exit(function.label, (last.atom,)))


__all__ = ["OffloadedLayer", "OffloadedModule", "gather_streams"]
