"""Derivatives of all examples in one call: that of a function that computes them together.

    loop for i < n (rows = ..) { x = index(xs, i); d = f'(x, w); rows' = index_update(rows, i, d); next rows' }

    rows = F'(xs, w, ones(n))
    fn F(xs, w) { loop for i < n (ys = ..) { x = index(xs, i); y = f(x, w); ys' = index_update(ys, i, y); next ys' } }

The loop in F becomes calls on all examples before F is differentiated. That is done where f has loops of its own, whose
tapes are arrays of all examples then, and where all that is differentiated by differs between the examples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from relay.ir.dims import Dim
from relay.ir.expr import (
    Atom,
    Block,
    Call,
    Counter,
    Derivative,
    Exit,
    Function,
    Global,
    Loop,
    LoopLabel,
    Module,
    Next,
    Var,
)
from relay.ir.traverse import walk
from relay.ir.types import BaseType, FunctionType, TensorType, TupleType, Type
from relay.operator import Emitter, lookup
from relay.transform.cleanup.inlining import inlined_call
from relay.transform.loops.rounds import Unsupported

_CALL = "a round has an effect, or calls a function"


class BatchedDerivatives:
    """The derivatives of all examples of one module. New functions go to `made`. `vectorized` has a loop's bindings for
    all rounds, which are the examples of a function whose body is the block."""

    def __init__(self, module: Module, vectorized: Callable[[Loop, Var, Block], Block]) -> None:
        self.module, self.vectorized = module, vectorized
        self.made: dict[str, Function | Derivative] = {}

    def derivative(self, call: Call, marked: Sequence[bool], count: Dim, counter: Counter) -> Derivative:
        """The derivative whose call takes the place of those of all `count` examples, with a cotangent of each as its
        last argument; those arguments are marked that differ between them. Raises Unsupported where there is none."""
        functions = {**self.module.functions, **self.made}
        single = functions.get(call.function.name) if isinstance(call.function, Global) else None
        if not isinstance(single, Derivative):
            raise Unsupported(_CALL)
        function, grad = functions.get(single.of), single.grad
        if not isinstance(function, Function) or function.rule is not None or grad.keeping or grad.has_aux:
            raise Unsupported(_CALL)
        if not any(isinstance(b.value, Loop) for b in walk(function.body)):
            raise Unsupported(_CALL)  # its derivative is a sequence of calls, which are batched when it is made
        if grad.output is not None or not isinstance(function.result, TensorType):
            raise Unsupported("the derivative of one of several results")
        assert grad.wrt is not None
        if not all(marked[position] for position in grad.wrt):
            raise Unsupported("a round has a derivative of its own in a value that all rounds share")
        whole = self._function_of_all(function, marked[: len(function.parameters)], count, counter)
        parameters = [p.type for p in whole.parameters if p.type is not None]
        assert whole.result is not None
        gradients = tuple(parameters[position] for position in grad.wrt)
        result: Type = gradients[0] if len(gradients) == 1 else TupleType(gradients)
        if grad.with_value:
            result = TupleType((whole.result, result))
        name = self._fresh_name(single.name)
        options = attrs.evolve(grad, function=Global(whole.name, whole.type), seedable=True)  # type: ignore[misc]
        made = Derivative(name, whole.name, FunctionType((*parameters, whole.result), result), options, single.span)
        self.made[name] = made
        return made

    def _fresh_name(self, name: str) -> str:
        made = f"{name}_of_all"
        number = 1
        while made in self.module.functions or made in self.made:
            made, number = f"{name}_of_all{number}", number + 1
        return made

    def _function_of_all(self, function: Function, marked: Sequence[bool], count: Dim, counter: Counter) -> Function:
        """The function that gives the results of all examples."""
        span, index, result = function.span, counter.index.type, function.result
        assert isinstance(index, TensorType) and isinstance(index.base, BaseType)
        assert isinstance(result, TensorType) and isinstance(result.base, BaseType)
        emitter, body = Emitter(span), Emitter(span)
        place = Var("i", index, span)
        parameters: list[Var] = []
        arguments: list[Atom] = []
        for parameter, is_batched in zip(function.parameters, marked, strict=True):
            type_ = parameter.type
            if is_batched:
                assert isinstance(type_, TensorType)
                type_ = TensorType(type_.base, (count, *type_.shape))
            parameters.append(Var(parameter.name, type_, parameter.span))
            whole = parameters[-1]
            arguments.append(body.value(whole).op("index", body.value(place)).atom if is_batched else whole)
        attributes: dict[str, Any] = {"shape": (count, *result.shape), "dtype": result.base}
        start = emitter.call(lookup("zeros"), (), attributes)
        rows, results = Var("rows", start.type, span), Var("rows", start.type, span)
        single = Var("result", result, span)
        inlined = inlined_call(single, function, Call(Global(function.name, function.type), tuple(arguments), span))
        if inlined is None:
            raise Unsupported(_CALL)
        body.items += inlined
        written = body.value(rows).op("index_update", body.value(place), body.value(single))
        label, number = LoopLabel("examples_of_" + function.name), emitter.number(count, index.base).atom
        block = Block(body.all_bindings(), Next(label, (written.atom,)))
        loop = Loop(label, (rows,), (start.atom,), block, Counter(place, number, divergence=counter.divergence), span)
        own = LoopLabel(function.label.name)
        body_of_all = self.vectorized(loop, results, Block(emitter.all_bindings(), Exit(own, (results,))))
        made = Function(self._fresh_name(function.name), tuple(parameters), body_of_all, own, start.type, span=span)
        self.made[made.name] = made
        return made
