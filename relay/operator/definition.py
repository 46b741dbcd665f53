"""One operator: its type, meaning, derivative, code and documentation in one object."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from relay.errors import DifferentiationError, InternalError, RelayError, TypeMismatch
from relay.ir.dims import Dim, maximum, product
from relay.ir.expr import AttributeValue
from relay.ir.literals import misfit_text
from relay.ir.sizes.facts import DimConstraint
from relay.ir.types import (
    BASE_TYPES,
    BOOL,
    FLOAT32,
    INT32,
    BaseClass,
    BaseType,
    FunctionType,
    QuantifiedType,
    TensorType,
    TupleType,
    Type,
    base_of_dtype,
)
from relay.operator.composition import Composition
from relay.operator.facets import Algebra, Batching, Indexing, Memory, Numerics
from relay.operator.relation import Relation, apply_types, infer_function_type, infer_relation
from relay.operator.symbolic import Value
from relay.operator.undetermined import Undetermined
from relay.support import python_mode
from relay.support.foreign_names import argument_help, own_name
from relay.support.gradients import Gradients


class Pattern(enum.Enum):
    """Patterns of operators for fusion with their neighbors, from the freest to the strictest."""

    ELEMENTWISE = "elementwise"  # output element i needs input element i
    BROADCAST = "broadcast"  # the same, after broadcasting
    INJECTIVE = "injective"  # each output element needs one input element, somewhere
    REDUCTION = "reduction"  # many input elements for one output element
    OUTPUT_FUSABLE = "output-fusable"  # matmul, convolution: elementwise consumers may join
    OPAQUE = "opaque"  # never fused


REQUIRED: Any = inspect.Parameter.empty
"""The default of an attribute that has none."""


@attrs.frozen
class Requirement:
    """A condition that the operands must satisfy at run time, or the program stops with an ExecutionError.

    `holds(*operands, **attributes)` is written with Relay operators on symbolic values and returns a rank-0 bool, or
    None where nothing can go wrong (for floats, say).
    """

    holds: Callable[..., Value | None]
    message: str


@attrs.frozen(eq=False, slots=True, repr=False)
class Operator:
    """A registered operator.

    Attributes:
        name: unique in the registry.
        operands: the names of the tensor parameters; a variadic operator has one, which stands for a sequence.
        attributes: the other parameters with their defaults (`REQUIRED` if none).
        variadic: whether the one operand is a sequence; if `spread`, a call gives its items one by one, after the
            attributes without default; the others are given by name.
        relation: the type: a `Relation`, a quantified function type, or a function from the operands' (known) types
            and the attributes to the result type, which raises TypeMismatch.
        reference: the meaning, on NumPy arrays: `reference(*operands, **attributes)`. What the interpreter runs.
        gradient: `gradient(*operands, out, dout, **attributes)` on symbolic values; returns one cotangent for each
            operand (None: no gradient flows there), in a tuple, or bare for a single operand. Where it is registered,
            it may have other names for `out` and `dout`, after the operands. A cotangent that still has the broadcast
            shape is summed back by the AD. For a variadic operator the first argument is the tuple of operands and the
            result is the tuple of their cotangents.
        no_gradient: why there is no gradient, where there is none.
        compute: `compute(*operands, **attributes)` on te tensors (a variadic operator: on the tuple of them), returns
            a te tensor; None if `external`, and for a composition that is compiled as what it is composed of.
        external: makes a native function for the given function type, called with inputs and then the output buffer.
        composition: the body, in the language, of a composite operator; it gives whichever of relation, reference,
            gradient and compute has no hand-made form.
        layouts: `layouts(**attributes)`, the layouts that the operands must have and then the result's, for an operator
            to which it matters what an axis is: ("NCHW", "OIHW", "NCHW"). Raises ShapeError for attributes that
            name no layout. An attribute `layout` that a call leaves out is its first operand's.
        requirements: run-time conditions on the operands.
        algebra, indexing, memory, batching, numerics: what passes need to know; see `relay.operator.facets`.
        sizes: the attributes that are sizes or hold them, and may be symbolic dims.
        on_dims: what the operator is on integer scalars that are dims: the dim that the result is, or the constraint
            that a comparison asks; None where it is neither. Integers wrap and dims do not: the caller must exclude it.
        sampler: for the tests: `sampler(rng, dtype)` yields calls as (operands, attributes) where the defaults would
        not do.
    """

    name: str
    operands: tuple[str, ...]
    relation: Relation | QuantifiedType | FunctionType | Callable[..., Type]
    reference: Callable[..., Any]
    attributes: Mapping[str, Any] = attrs.field(factory=dict)
    variadic: bool = False
    spread: bool = False
    pattern: Pattern = Pattern.OPAQUE
    gradient: Callable[..., Any] | None = None
    no_gradient: str | None = None
    compute: Callable[..., Any] | None = None
    external: Callable[[FunctionType], Callable[..., Any]] | None = None
    composition: Composition | None = None
    layouts: Callable[..., Sequence[Sequence[str | None]]] | None = None
    requirements: tuple[Requirement, ...] = ()
    algebra: Algebra = attrs.field(factory=Algebra)
    indexing: Indexing = attrs.field(factory=Indexing)
    memory: Memory = attrs.field(factory=Memory)
    batching: Batching = attrs.field(factory=Batching)
    numerics: Numerics = attrs.field(factory=Numerics)
    sizes: frozenset[str] = frozenset()
    on_dims: Callable[..., Dim | DimConstraint | None] | None = None
    sampler: Callable[..., Any] | None = None
    documentation: str = ""

    @property
    def effects(self) -> tuple[str, ...]:
        """The effects of a call besides its result, in the words of function types: it may fail an assertion, its
        requirements. There are no others, so equal calls are merged and unused ones are dropped: printing and
        references are not operators but part of the language.
        """
        return ("assert",) if self.requirements else ()

    @property
    def is_builtin(self) -> bool:
        """True if it is Relay's own, which each process has."""
        defined = self.composition.function if self.composition is not None else self.reference
        module = getattr(defined, "__module__", None) or ""
        return module == "relay" or module.startswith("relay.")

    @property
    def __name__(self) -> str:
        return self.name

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        return self.documentation

    def __repr__(self) -> str:
        return f"<relay operator {self.name}>"

    def infer(self, types: Sequence[Type], attributes: Mapping[str, AttributeValue]) -> Type:
        """The result type for operands whose types are completely known. Raises TypeMismatch without a span."""
        if not self.variadic and len(types) != len(self.operands):
            raise TypeMismatch(f"{self.name} takes {len(self.operands)} operands, found {len(types)}")
        if isinstance(self.relation, Relation):
            result = infer_relation(self.name, self.relation, self.variadic, types, attributes)
            if self.composition is not None:
                self.composition.body(types, attributes)  # which may have no type where the relation has one
            return result
        if isinstance(self.relation, QuantifiedType | FunctionType):
            return infer_function_type(self.name, self.relation, types)
        inferred = apply_types(self.name, self.relation, (tuple(types),) if self.variadic else types, attributes)
        if isinstance(inferred, TupleType):
            self._check_several()
        return inferred

    def _check_several(self) -> None:
        """Raises TypeMismatch if an operator of several results is more than what it is composed of."""
        own = ("gradient", "no_gradient", "compute", "external")
        if self.composition is None or any(getattr(self, part) is not None for part in own):
            raise TypeMismatch(
                f"{self.name} has several results, which only the body of a composite operator gives",
                help="make it one, without `gradient`, `no_gradient` and `compute`, or an operator for each result",
            )

    @property
    def is_layout_agnostic(self) -> bool:
        """True if op(transpose(x), ..) = transpose(op(x, ..)), for operands of one rank."""
        return self.pattern in (Pattern.ELEMENTWISE, Pattern.BROADCAST)

    def flops(self, types: Sequence[Type], result: Type) -> int:
        """The floating-point operations of a call. Raises TypeError where a dim is not a number."""
        count = self.flop_count(types, result)
        if not isinstance(count, int):
            raise TypeError(f"the operations of {self.name} are {count}")
        return count

    def flop_count(self, types: Sequence[Type], result: Type) -> Dim:
        """The floating-point operations of a call, and the multiplications and additions of a product of integers: a
        number, or a formula where sizes are symbolic."""
        shapes = [t.shape for t in types if isinstance(t, TensorType)]
        if not isinstance(result, TensorType) or not isinstance(result.base, BaseType):
            return 0
        if self.numerics.work is not None:
            return self.numerics.work(shapes, result.shape)
        if not result.base.is_float:
            return 0
        if self.pattern in (Pattern.ELEMENTWISE, Pattern.BROADCAST):
            return product(result.shape)
        if self.pattern is Pattern.INJECTIVE:
            return 0
        return maximum(*map(product, (*shapes, result.shape)))

    def bind(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Sort a Python call's arguments into operands and attributes, with defaults filled in.

        For a variadic operator the one operand is the sequence, returned spread. Raises TypeMismatch.
        """
        if self.spread:
            before = [value for value in self.attributes.values() if value is REQUIRED]
            count = min(len(before), len(arguments))
            first = dict(zip(self.attributes, arguments[:count], strict=False))
            arguments, keywords = [tuple(arguments[count:])], {**first, **keywords}
        names = (*self.operands, *self.attributes)
        if len(arguments) > len(names):
            least = len(self.operands) + sum(value is REQUIRED for value in self.attributes.values())
            expected = f"{least} to {len(names)}" if least < len(names) else f"{least}"
            raise TypeMismatch(f"wrong number of arguments to {self.name}: expected {expected}, found {len(arguments)}")
        given = dict(zip(names, arguments, strict=False))
        for written, value in keywords.items():
            name = own_name(written, names)
            if name not in names:
                message = f"{self.name} has no argument {name!r}; it has {', '.join(names)}"
                raise TypeMismatch(message, help=argument_help(name, names))
            if name in given:
                raise TypeMismatch(f"{self.name} got two values for {name!r}")
            given[name] = value
        for name in self.operands:
            if name not in given:
                raise TypeMismatch(f"{self.name} needs a value for {name!r}")
        attributes = {name: given.get(name, default) for name, default in self.attributes.items()}
        for name, value in attributes.items():
            if value is REQUIRED:
                raise TypeMismatch(f"{self.name} needs a value for {name!r}")
        operands = tuple(given[name] for name in self.operands)
        if self.variadic:
            operands = tuple(operands[0])
        return operands, attributes

    def evaluate(self, operands: Sequence[np.ndarray], attributes: Mapping[str, AttributeValue]) -> Any:
        """Run the reference on arrays: an array, or a tuple of several, of exactly the inferred type."""
        types = [TensorType(base_of_dtype(a.dtype), a.shape) for a in operands]  # type: ignore[arg-type]
        expected = self.infer(types, attributes)
        with np.errstate(all="ignore"):
            result = self.reference(*((tuple(operands),) if self.variadic else operands), **attributes)
        return self.conform_result(result, expected)

    def conform_result(self, result: Any, expected: Type) -> Any:
        """The reference's result, as arrays of the inferred dtypes. Raises TypeMismatch if a shape differs."""
        if isinstance(expected, TupleType):
            return tuple(self.conform_result(r, t) for r, t in zip(result, expected.items, strict=True))
        assert isinstance(expected, TensorType)
        array = np.asarray(result, dtype=expected.dtype)
        if array.shape != expected.dims:
            raise TypeMismatch(f"the reference of {self.name} returned shape {array.shape}, its type says {expected}")
        return array

    def cotangents(
        self, operands: Sequence[Value], out: Value, dout: Value, attributes: Mapping[str, AttributeValue]
    ) -> list[Value | None]:
        """The gradient's cotangent for each operand. Raises DifferentiationError, without a span, where there is no
        gradient."""
        assert self.gradient is not None
        given = (tuple(operands),) if self.variadic else operands
        try:
            found = self.gradient(*given, out=out, dout=dout, **attributes)
        except (RelayError, InternalError, Undetermined):
            raise
        except Exception as error:
            raise DifferentiationError(f"the gradient of {self.name} failed: {error}") from error
        parts = list(found) if isinstance(found, tuple | list) else [found]
        if len(parts) != len(operands):
            raise DifferentiationError(
                f"the gradient of {self.name} has {len(parts)} parts for {len(operands)} operands"
            )
        for part, operand in zip(parts, operands, strict=True):
            if part is not None and not isinstance(part, Value):
                raise DifferentiationError(
                    f"the gradient of {self.name} has {part!r} for an operand, neither a symbolic value nor None"
                )
            if part is not None and (part.base != operand.base or part.ndim < operand.ndim):
                raise DifferentiationError(
                    f"the gradient of {self.name} has a cotangent of type {part.type} for an operand of {operand.type}"
                )
        return parts

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """On symbolic values: emit the call. On arrays and numbers: compute it at once with the reference; the result
        is an array, or a tuple of arrays, as the result of a program is."""
        operands, attributes = self.bind(arguments, keywords)
        for operand in operands:
            if isinstance(operand, Value):
                return operand.emitter.call(self, operands, attributes)
            if isinstance(operand, Gradients):
                operand.refuse(f"relay.{self.name}")
        if (mode := python_mode.active.get()) is not None:
            return mode.apply(self, operands, attributes)
        return _result(self.compute_at_once(operands, attributes))

    def compute_at_once(self, operands: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
        """The reference's value for arrays and numbers."""
        bases = [None if isinstance(o, bool | int | float) else base_of_dtype(np.asarray(o).dtype) for o in operands]
        arrays = [
            np.asarray(o) if base is not None else literal_array(o, self.literal_base(position, o, bases))
            for position, (o, base) in enumerate(zip(operands, bases, strict=True))
        ]
        return self.evaluate(arrays, attributes)

    def literal_base(self, position: int, literal: bool | int | float, bases: Sequence[BaseType | None]) -> BaseType:
        """The base type of a Python number among the operands, whose base types are given (None for the numbers).

        It is the one in the signature at that place, or that of the operands of the same variable.
        """
        if isinstance(literal, bool):
            return BOOL
        if isinstance(self.relation, Relation):
            signature = self.relation.base
            token = signature.token(position)
            if token.text in BASE_TYPES:
                return BASE_TYPES[token.text]
            bases = [b for i, b in enumerate(bases) if signature.token(i).text == token.text]
        default = FLOAT32 if isinstance(literal, float) else INT32
        return next((b for b in bases if b is not None), default)


_present: Callable[[np.ndarray], Any] = np.asarray


def use_results(present: Callable[[np.ndarray], Any]) -> None:
    """Say what callers outside of programs get for an array."""
    global _present
    _present = present


def _result(computed: Any) -> Any:
    return tuple(map(_result, computed)) if isinstance(computed, tuple) else _present(np.asarray(computed))


def literal_array(literal: bool | int | float, base: BaseType) -> np.ndarray:
    """A Python number as a rank-0 array. Raises TypeMismatch if the base type does not hold it."""
    fits = base.is_float or not isinstance(literal, float)
    if fits and base.base_class is BaseClass.INTEGER:
        limits = np.iinfo(base.name)
        fits = limits.min <= literal <= limits.max
    if not fits:
        raise TypeMismatch(misfit_text(base, literal))
    return np.asarray(literal, dtype=base.dtype)
