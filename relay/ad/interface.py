"""Program-facing cotangents: results of derivatives, arguments and results of custom gradients.

    there                                            here, while code is generated
    a structure of tensors, () for no gradient       a tree of atoms, None for zeros
    a value of D' (`relay.ir.derivative`)            an atom of D_cotangent (`cotangents`), which may be Zero

A zero of a data type has the constructors of the value that it belongs to, so that values are gone through beside their
cotangents, by a function for each data type.
"""

from __future__ import annotations

from collections.abc import Sequence

from relay.ad.cotangents import Cotangent, Cotangents, primed_constructor, type_of
from relay.errors import InternalError
from relay.ir.derivative import cotangent_type
from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Call,
    Construct,
    Exit,
    Function,
    Global,
    LoopLabel,
    MakeTuple,
    Match,
    MatchArm,
    Project,
    Var,
    Yield,
)
from relay.ir.types import UNIT, DataDefinition, DataType, FunctionType, TupleType, Type, prune
from relay.operator import Emitter


class Interface:
    """The two directions, with the functions for data types that they need."""

    def __init__(self, cotangents: Cotangents) -> None:
        self._cotangents = cotangents
        self._outward: dict[DataDefinition, Global] = {}
        self._inward: dict[DataDefinition, Global] = {}

    def external_cotangent(self, emitter: Emitter, type_: Type, cotangent: Cotangent, value: Atom) -> Atom:
        """The cotangent of a value in the form of a program: dense, with unit where there is no gradient."""
        type_ = prune(type_)  # type: ignore[assignment]
        if isinstance(type_, TupleType):
            parts = cotangent if isinstance(cotangent, tuple) else (None,) * len(type_.items)
            items = []
            for position, (item, part) in enumerate(zip(type_.items, parts, strict=True)):
                inner = value
                if not isinstance(item, TupleType) or item.items:
                    inner = emitter.bind(Project(value, position, emitter.span), item, "part").atom
                items.append(self.external_cotangent(emitter, item, part, inner))
            return make_tuple(emitter, items)
        if cotangent_type(type_) == UNIT or not self._cotangents.exists(type_):
            return make_tuple(emitter, [])
        dense = self._cotangents.dense(emitter, cotangent, type_, None)[0]
        if not isinstance(type_, DataType):
            return dense
        call = Call(self._outward_function(type_.definition), (value, dense), emitter.span)
        return emitter.bind(call, cotangent_type(type_), "gradient").atom

    def internal_cotangent(self, emitter: Emitter, type_: Type, atom: Atom) -> Cotangent:
        """The cotangent of a value of this type that a program passes."""
        type_ = prune(type_)  # type: ignore[assignment]
        if not self._cotangents.exists(type_):
            return None
        match type_:
            case TupleType(items):
                return tuple(
                    self.internal_cotangent(
                        emitter, t, emitter.bind(Project(atom, i, emitter.span), cotangent_type(t), "part").atom
                    )
                    if self._cotangents.exists(t)
                    else None
                    for i, t in enumerate(items)
                )
            case DataType(definition):
                call = Call(self._inward_function(definition), (atom,), emitter.span)
                return emitter.bind(call, DataType(self._cotangents.cotangent_definition(definition)), "cotangent").atom
            case _:
                return atom

    # ---- data types

    def _outward_function(self, definition: DataDefinition) -> Global:
        """fn(x: D, d: D_cotangent) -> D'"""
        found = self._outward.get(definition)
        if found is not None:
            return found
        cotangents = self._cotangents
        primed, made = cotangents.cotangent_definition(definition), _gradients(definition)
        types = (DataType(definition), DataType(primed))
        name = cotangents.fresh_name(f"gradient_of_{definition.name}")
        found = self._outward[definition] = Global(name, FunctionType(types, DataType(made)))
        value, cotangent, result = Var("x", types[0]), Var("d", types[1]), Var("gradient", DataType(made))
        label, arms = LoopLabel(name), []
        for constructor in definition.constructors:
            fields = tuple(Var("field", t) for t in constructor.fields)
            leaf_types = [leaf for t in constructor.fields for leaf in cotangents.leaves(t)]
            leaves = [Var("dfield", t) for t in leaf_types]
            emitter = Emitter()
            if leaves:
                inner = [
                    _arm(
                        c.name, c.fields, c.name == primed_constructor(constructor.name), constructor.fields, cotangents
                    )
                    for c in primed.constructors
                ]
                emitter.emit(tuple(leaves), Match(cotangent, tuple(inner)))
            rest = list(leaves)
            parts = []
            for field, type_ in zip(fields, constructor.fields, strict=True):
                own = [rest.pop(0) for _ in cotangents.leaves(type_)]
                parts.append(self.external_cotangent(emitter, type_, cotangents.unflatten(own, type_), field))
            whole = emitter.bind(Construct(made, constructor.name, tuple(parts)), DataType(made), "gradient").atom
            arms.append(MatchArm(constructor.name, fields, Block(tuple(emitter.bindings), Yield((whole,)))))
        block = Block((Binding((result,), Match(value, tuple(arms))),), Exit(label, (result,)))
        cotangents.functions[name] = Function(name, (value, cotangent), block, label, DataType(made))
        return found

    def _inward_function(self, definition: DataDefinition) -> Global:
        """fn(g: D') -> D_cotangent"""
        found = self._inward.get(definition)
        if found is not None:
            return found
        cotangents = self._cotangents
        primed, made = cotangents.cotangent_definition(definition), _gradients(definition)
        name = cotangents.fresh_name(f"cotangent_of_{definition.name}")
        found = self._inward[definition] = Global(name, FunctionType((DataType(made),), DataType(primed)))
        given, result, label = Var("g", DataType(made)), Var("cotangent", DataType(primed)), LoopLabel(name)
        arms = []
        for constructor, own in zip(definition.constructors, made.constructors, strict=True):
            fields = tuple(Var("field", t) for t in own.fields)
            emitter = Emitter()
            leaves: list[Atom] = []
            for field, type_ in zip(fields, constructor.fields, strict=True):
                inner = self.internal_cotangent(emitter, type_, field)
                leaves += cotangents.dense(emitter, inner, type_, None)
            whole = Construct(primed, primed_constructor(constructor.name), tuple(leaves))
            atom = emitter.bind(whole, DataType(primed), "cotangent").atom
            arms.append(MatchArm(constructor.name, fields, Block(tuple(emitter.bindings), Yield((atom,)))))
        block = Block((Binding((result,), Match(given, tuple(arms))),), Exit(label, (result,)))
        cotangents.functions[name] = Function(name, (given,), block, label, DataType(primed))
        return found


def _arm(name: str, types: Sequence[Type], same: bool, fields: Sequence[Type], cotangents: Cotangents) -> MatchArm:
    """The leaves of a cotangent's fields; zeros where it has another constructor, which is Zero."""
    bound = tuple(Var("dfield", t) for t in types)
    if same:
        return MatchArm(name, bound, Block((), Yield(bound)))
    emitter = Emitter()
    zeros = tuple(z for t in fields for z in cotangents.zeros(emitter, t, None))
    return MatchArm(name, bound, Block(tuple(emitter.bindings), Yield(zeros)))


def _gradients(definition: DataDefinition) -> DataDefinition:
    type_ = cotangent_type(DataType(definition))
    if not isinstance(type_, DataType):
        raise InternalError(f"{definition.name} has no gradient")
    return type_.definition


def make_tuple(emitter: Emitter, items: Sequence[Atom]) -> Atom:
    """A tuple."""
    type_ = TupleType(tuple(type_of(i) for i in items))
    return emitter.bind(MakeTuple(tuple(items), emitter.span), type_, "gradients").atom
