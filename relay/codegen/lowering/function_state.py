"""State of function generation: what the functions of one program share, and the values of a function's variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

import attrs

from relay.codegen.kernels.kernels import Kernels
from relay.codegen.lowering.constants import Constants
from relay.codegen.lowering.external import Externals
from relay.codegen.lowering.function_builder import Code, FailureTable
from relay.codegen.lowering.layout import Layouts
from relay.codegen.lowering.memory.arena import Arena
from relay.codegen.lowering.memory.pool_growth import PoolGrowth
from relay.codegen.lowering.memory.pools import Pools
from relay.codegen.lowering.memory.rounds import RoundLifetimes
from relay.codegen.lowering.values import Leaf, Value
from relay.errors import InternalError
from relay.ir.analysis.metering import Meter
from relay.ir.dims import DataDependentDim, Dim, TypeId
from relay.ir.expr import Atom, Constant, Global, Static, Var


@attrs.frozen(eq=False)
class ProgramContext:
    """What the functions of one program share."""

    layouts: Layouts
    kernels: Kernels
    externals: Externals
    constants: Constants
    pools: Pools
    growth: PoolGrowth
    rounds: RoundLifetimes
    failures: FailureTable
    meter: Meter
    names: Mapping[str, Any]  # the native functions by the core functions
    frames: dict[str, Dim]  # the bytes of workspace that callers provide
    sizes: Mapping[TypeId, int]  # the places of symbolic dims in the context table
    arena: Arena
    made: Mapping[
        str, Sequence[DataDependentDim]
    ]  # the sizes made by its callers that a function is given, by its name
    packing: frozenset[str]  # the functions in which memory of the arena may come to be used from elsewhere


class FunctionState:
    """A function that is being generated: its code, and the values of its variables."""

    def __init__(self, shared: ProgramContext) -> None:
        self.shared = shared
        self.code = Code(shared.sizes, shared.arena)
        self.variables: dict[Var, Value] = {}

    def value(self, atom: Atom) -> Value:
        match atom:
            case Var():
                return self.variables[atom]
            case Constant():
                return self.shared.constants.leaf(self.code, atom)
            case Global() | Static():
                raise InternalError(f"{atom!r} is not a first-order value")
            case _:
                assert_never(atom)

    def leaf(self, atom: Atom) -> Leaf:
        value = self.value(atom)
        assert isinstance(value, Leaf)
        return value
