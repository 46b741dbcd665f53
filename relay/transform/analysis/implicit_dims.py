"""Implicit dim parameters: data-dependent dims that functions mention and do not make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from relay.ir.dims import DataDependentDim
from relay.ir.expr import Block, Call, Derivative, Function, Global
from relay.ir.sizes.data_dependent import bound_dims, free_dims
from relay.ir.traverse import walk


def given_sizes(
    functions: Mapping[str, Function | Derivative], graph: Mapping[str, Iterable[str]]
) -> dict[str, list[DataDependentDim]]:
    """The sizes that its callers have made which a function mentions, or one that it calls or is a derivative of."""
    own = {name: bound_dims(f.body) if isinstance(f, Function) else {} for name, f in functions.items()}
    found = {name: free_dims(f) if isinstance(f, Function) else {} for name, f in functions.items()}
    changed = True
    while changed:
        changed = False
        for name, function in functions.items():
            for callee in (function.of,) if isinstance(function, Derivative) else graph[name]:
                for dim in found.get(callee, ()):
                    if dim not in own[name] and dim not in found[name]:
                        found[name][dim] = None
                        changed = True
    return {name: list(dims) for name, dims in found.items()}


def gives_sizes(block: Block, given: Mapping[str, list[DataDependentDim]]) -> bool:
    """True if a block binds sizes that called functions get as implicit parameters: a copy of it would have to bind
    the same."""
    own = bound_dims(block)
    return bool(own) and any(
        isinstance(b.value, Call)
        and isinstance(b.value.function, Global)
        and any(dim in own for dim in given.get(b.value.function.name, ()))
        for b in walk(block)
    )
