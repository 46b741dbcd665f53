"""`match`: patterns become a decision tree of `Match` and `If`.

The cases are rows of a matrix; a row's patterns belong to occurrences, the parts of the matched value that are known so
far. Row by row, from left to right:

    the first row has no test left       it is taken; a guard becomes an If, with the other rows in its else
    .. a tuple, or a record              the occurrence is replaced by its components in all rows; no test
    .. a constructor                     a Match; in its arm for C are the rows that have C or no pattern there
    .. a literal                         an If; in its arm for v are the rows that have v or no pattern there
    no row is left                       a value is not covered; the tests on the path name it

A pattern for another structure than the value's, which is static, does not fit, as in Python: its case
is left out where others remain, and a mistake where none does.

What the checker knows (a number, a string, None) is decided at once. A case that is reached in one place has its body
there; one that is reached in several is after a loop that runs once, which these places leave.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import assert_never

from relay.errors import InternalError, Span, TypeCheckError
from relay.ir.definition import complete_definition
from relay.ir.expr import Arm, Block, Dead, Expr, If, Match, MatchArm, Var, Yield
from relay.ir.structure import is_record_class
from relay.ir.surface import (
    CapturePattern,
    ClassPattern,
    OrPattern,
    Pattern,
    PatternMatch,
    TuplePattern,
    ValuePattern,
    WildcardPattern,
)
from relay.ir.traverse import bound_variables
from relay.ir.types import NONE, Constructor, DataDefinition, DataType, Kind, TupleType, Unknown, prune
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DeferredBinding,
    DependsOnPoison,
    DynamicValue,
    PythonObject,
    Text,
    Tuple,
    TypedBlockBuilder,
    is_constant_bool,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.control_flow import optionals
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists
from relay.typecheck.elaboration.expressions.atoms import atom_entity
from relay.typecheck.elaboration.expressions.conditions import require_bool
from relay.typecheck.elaboration.patterns.literals import (
    describe_value,
    equals_literal,
    is_something,
    literal_of,
    rows_by_literal,
)
from relay.typecheck.elaboration.patterns.pattern_rows import (
    Occurrence,
    Path,
    Row,
    component_patterns,
    known_value,
    mapping_fields,
    pattern_fields,
    row_alternatives,
    simple_rows,
)
from relay.typecheck.elaboration.values import data, texts
from relay.typecheck.elaboration.values.data import is_string
from relay.typecheck.elaboration.values.expansion import expand, settle
from relay.typecheck.elaboration.values.labels import members_of_run


class DecisionTree:
    """The tests of one match. `leaves` are the places where each case is reached, with what its variables mean there.

    `decided`: the checker has left out a case, because it knows the value. `tests`: how many were written; `deepest`:
    how deep they nest.
    """

    def __init__(self, checker: Checker, context: Context, node: PatternMatch) -> None:
        self.checker = checker
        self.context = context
        self.node = node
        self.leaves: dict[int, list[tuple[TypedBlockBuilder, tuple[AbstractValue, ...]]]] = {}
        self.decided = False
        self.tests = 0
        self.deepest = 0
        self.depth = 0
        self.opened: list[tuple[Occurrence, AbstractValue]] = []
        self.known: dict[Path, tuple[str, int] | None] = {}
        self.misfit: TypeCheckError | None = None  # the first pattern that fits no value here
        self.for_others: set[int] = set()  # cases that values of other structures reach

    def write(self, out: TypedBlockBuilder) -> None:
        """Write the tests. Raises TypeCheckError for values that no case covers, and for cases that others cover."""
        root = Occurrence(atom_entity(self.context, self.node.value), ())
        rows = [row_alternatives(Row(i, ((root, case.pattern),))) for i, case in enumerate(self.node.cases)]
        self._compile([row for alternatives in rows for row in alternatives], out)
        for position, case in enumerate(self.node.cases):
            if position not in self.leaves and not self.decided and position not in self.for_others:
                raise TypeCheckError("this case is never reached: those above cover it", case.span, help="remove it")

    def variables(self, case: int) -> tuple[Var, ...]:
        """The variables that the pattern of a case binds."""
        return tuple(dict.fromkeys(bound_variables(self.node.cases[case].pattern)))

    def _compile(self, rows: Sequence[Row], out: TypedBlockBuilder) -> None:
        if not rows:
            raise self._missing_cases()
        first = rows[0]
        if not first.patterns:
            self._leaf(first, rows[1:], out)
            return
        occurrence, pattern = first.patterns[0]
        if optionals.may_be_none(occurrence.entity):
            self._optional(occurrence, rows, out)
            return
        match pattern:
            case TuplePattern() | ClassPattern() if known_value(occurrence.entity) == (None,):
                self._decide(occurrence, None, rows, out)
            case TuplePattern():
                self._tuple(occurrence, pattern, rows, out)
            case ClassPattern():
                self._class(occurrence, pattern, rows, out)
            case ValuePattern():
                self._value(occurrence, pattern, rows, out)
            case WildcardPattern() | CapturePattern() | OrPattern():
                raise InternalError("a pattern that tests nothing")
            case _:
                assert_never(pattern)

    def _leaf(self, row: Row, others: Sequence[Row], out: TypedBlockBuilder) -> None:
        """The first row fits."""
        meaning = {variable: occurrence.entity for variable, occurrence in row.bound}
        variables = self.variables(row.case)
        entities = tuple(meaning[v] for v in variables)
        guard = self.node.cases[row.case].guard
        if guard is None:
            self.leaves.setdefault(row.case, []).append((out, entities))
            return
        self.context.assign(variables, entities)
        condition = self._guard(guard, out)
        known = is_constant_bool(condition)
        if known is not None:
            self.decided = True
            if known:
                self.leaves.setdefault(row.case, []).append((out, entities))
            else:
                self._compile(others, out)
            return
        body, otherwise = TypedBlockBuilder(), TypedBlockBuilder()
        self.leaves.setdefault(row.case, []).append((body, entities))
        test = TypedBlockBuilder()
        test.terminator = Yield((condition.atom,), self.node.span)
        self._test(out, lambda: If((Arm(test.block(), body.block()),), otherwise.block(), self.node.span))
        with self._arm_scope():
            self._compile(others, otherwise)

    def _guard(self, block: Block, out: TypedBlockBuilder) -> DynamicValue:
        found: list[DynamicValue] = []

        def on_yield(place: TypedBlockBuilder, entities: tuple[AbstractValue, ...], at: Span | None) -> None:
            known = is_constant_bool(entities[0])
            typed = require_bool(self.checker, place, entities[0], at, "a guard")
            found.append(typed if known is None else DynamicValue(typed.atom, typed.type, known))

        self.checker.engine.elaborate_block(self.checker, self.context, block, out, on_yield)
        if not found:
            raise DependsOnPoison
        return found[0]

    def _test(self, out: TypedBlockBuilder, build: Callable[[], Expr]) -> None:
        """Write a test, which ends the block."""
        self.tests += 1
        self.deepest = max(self.deepest, self.depth + 1)
        out.items.append(DeferredBinding((), build))
        out.terminator = Dead()

    def _arm_scope(self) -> _ArmScope:
        return _ArmScope(self)

    def _open(
        self, occurrence: Occurrence, entity: AbstractValue, items: Sequence[AbstractValue]
    ) -> tuple[Occurrence, ...]:
        """Note the components of an occurrence, which are visible up to the end of this arm."""
        self.opened.append((occurrence, occurrence.entity))
        occurrence.entity = entity
        occurrence.items = tuple(Occurrence(e, (*occurrence.path, i)) for i, e in enumerate(items))
        return occurrence.items

    def _leave_out(self, error: TypeCheckError) -> None:
        """A case whose pattern cannot fit the value, for this reason."""
        self.decided = True
        self.misfit = self.misfit or error

    # ---- what may be None

    def _optional(self, occurrence: Occurrence, rows: Sequence[Row], out: TypedBlockBuilder) -> None:
        """A test whether a value is None; then it is None, or its content."""
        entity, span = occurrence.entity, self.node.span
        assert isinstance(entity, DynamicValue)
        test, missing, present = TypedBlockBuilder(), TypedBlockBuilder(), TypedBlockBuilder()
        test.terminator = Yield((optionals.is_nothing(self.checker, test, entity, span).atom,), span)
        self._test(out, lambda: If((Arm(test.block(), missing.block()),), present.block(), span))
        with self._arm_scope():
            self._open(occurrence, optionals.NONE, ())
            self._compile(rows, missing)
        with self._arm_scope():
            found = optionals.content(self.checker, present, entity, "the matched value", span, is_certain=True)
            self.opened.append((occurrence, occurrence.entity))
            occurrence.entity = found
            self._compile(rows, present)

    # ---- tuples

    def _tuple(
        self, occurrence: Occurrence, pattern: TuplePattern, rows: Sequence[Row], out: TypedBlockBuilder
    ) -> None:
        self._note_others(occurrence, rows)
        items = self._items(occurrence, pattern, rows, out)
        if items is None:
            self._compile([row for row in rows if not isinstance(row.pattern_at(occurrence), TuplePattern)], out)
            return
        new: list[Row] = []
        for row in rows:
            found = row.pattern_at(occurrence)
            match found:
                case None:
                    new.append(row)
                case TuplePattern(parts, star, span):
                    fits = (len(parts) == len(items)) if star is None else len(parts) - 1 <= len(items)
                    if not fits and dynamic_lists.is_literal(occurrence.entity):
                        self.decided = True  # other lists have other lengths
                        continue
                    if not fits:
                        has = f"the pattern has {len(parts) - (star is not None)}"
                        self._leave_out(TypeCheckError(f"the tuple has {len(items)} components, {has}", span))
                        continue
                    new += row_alternatives(row.replace_pattern(occurrence, component_patterns(items, parts, star)))
                case ValuePattern() if literal_of(self.context, found) is None:
                    self.decided = True
                case ClassPattern(span=span) | ValuePattern(span=span):
                    self._leave_out(TypeCheckError("this pattern cannot match: the value is a tuple", span))
                case _:
                    raise InternalError("a pattern that tests nothing")
        self.known[occurrence.path] = ("", len(items))
        self._compile(new, out)
        del self.known[occurrence.path]

    def _note_others(self, occurrence: Occurrence, rows: Sequence[Row]) -> None:
        """Note the cases that a value would reach that is not a tuple: up to one that takes everything."""
        for row in rows:
            if row.pattern_at(occurrence) is None:
                self.for_others.add(row.case)
                if not row.patterns and self.node.cases[row.case].guard is None:
                    return

    def _items(
        self, occurrence: Occurrence, pattern: TuplePattern, rows: Sequence[Row], out: TypedBlockBuilder
    ) -> tuple[Occurrence, ...] | None:
        """The components of the value. None: it is not a tuple, and another case may fit."""
        if occurrence.items is not None:
            return occurrence.items
        entity = occurrence.entity
        if isinstance(entity, DynamicValue):
            if isinstance(prune(entity.type), Unknown):
                if self.checker.is_open(entity) and not _all_alike(pattern, rows, occurrence):
                    raise SchemeOnly(pattern.span, "the type of the matched value")
                if pattern.star is not None:
                    raise TypeCheckError("the length of the tuple is not known here", pattern.span, help="annotate it")
                parts = TupleType(tuple(self.checker.solver.fresh_variable(Kind.Type) for _ in pattern.items))
                self.checker.unify_at(entity.type, parts, pattern.span, "the matched value")
            entity = expand(self.checker, out, entity, pattern.span)
        if not isinstance(entity, Tuple):
            help = "unpack it before: `a, b = x`"
            if dynamic_lists.is_growing(entity):
                help = "test its length: `if len(xs) == 0:`, then read xs[0]"
            message = f"this pattern is a tuple, the value is {describe_value(entity)}"
            misfit = TypeCheckError(message, pattern.span, help=help)
            if dynamic_lists.is_growing(entity):
                raise misfit
            self._leave_out(misfit)
            return None
        return self._open(occurrence, entity, entity.items)

    # ---- constructors

    def _class(
        self, occurrence: Occurrence, pattern: ClassPattern, rows: Sequence[Row], out: TypedBlockBuilder
    ) -> None:
        entity = occurrence.entity
        if isinstance(entity, DynamicValue) and isinstance(prune(entity.type), TupleType):
            entity = expand(self.checker, out, entity, pattern.span)
        if isinstance(entity, Tuple):
            self._record(occurrence, entity, rows, out)
            return
        if (cls := self._scalar_class(pattern)) is not None:
            self._python_class(occurrence, cls, pattern, rows, out)
            return
        if self._is_other_record(occurrence.entity, pattern):
            shown = describe_value(occurrence.entity)
            self._leave_out(TypeCheckError(f"this pattern cannot match: the value is {shown}", pattern.span))
            self._compile(rows[1:], out)
            return
        typed, type_ = self._data(occurrence, pattern)
        definition = type_.definition
        if len(definition.constructors) == 1 and occurrence.items is None:
            positions = range(len(definition.constructors[0].fields))
            fields = data.read_fields(self.checker, out, typed, type_, positions, pattern.span)
            self._open(occurrence, typed, fields)
        if occurrence.items is not None:
            (constructor,) = definition.constructors
            self._arm(occurrence, occurrence.items, definition, constructor, rows, out)
            return
        arms: list[tuple[Constructor, tuple[Var, ...], TypedBlockBuilder]] = []
        value = typed.atom
        self._test(
            out,
            lambda: Match(
                value, tuple(MatchArm(c.name, fields, body.block()) for c, fields, body in arms), self.node.span
            ),
        )
        for constructor in definition.constructors:
            names = constructor.names or tuple("field" for _ in constructor.fields)
            types = data.field_types(self.checker, type_, constructor)
            variables = tuple(self.checker.variable(n, t, pattern.span) for n, t in zip(names, types, strict=True))
            body = TypedBlockBuilder()
            arms.append((constructor, variables, body))
            items = tuple(
                Occurrence(expand(self.checker, body, DynamicValue(v, t), pattern.span), (*occurrence.path, i))
                for i, (v, t) in enumerate(zip(variables, types, strict=True))
            )
            with self._arm_scope():
                self._arm(occurrence, items, definition, constructor, rows, body)

    def _is_other_record(self, entity: AbstractValue, pattern: ClassPattern) -> bool:
        """True if a pattern is for a dict, dataclass or named tuple, and the value is known to be none of them."""
        wanted = atom_entity(self.context, pattern.function)
        cls = wanted.value if isinstance(wanted, PythonObject) else None
        is_record = cls is dict or (isinstance(cls, type) and is_record_class(cls) and not data.is_data_class(cls))
        return is_record and not (isinstance(entity, DynamicValue) and isinstance(prune(entity.type), Unknown))

    def _scalar_class(self, pattern: ClassPattern) -> type | None:
        """The class of numbers or text that a pattern names, if it does."""
        wanted = atom_entity(self.context, pattern.function)
        value = wanted.value if isinstance(wanted, PythonObject) else None
        return value if isinstance(value, type) and value in (bool, int, float, str) else None

    def _python_class(
        self, occurrence: Occurrence, cls: type, pattern: ClassPattern, rows: Sequence[Row], out: TypedBlockBuilder
    ) -> None:
        """`case int():` and the like, of a value that the checker knows."""
        static = known_value(occurrence.entity)
        if static is None or pattern.items or pattern.keywords:
            raise TypeCheckError(
                f"whether a tensor is a Python {cls.__name__} is not part of the program",
                pattern.span,
                help="dtypes are compile-time values: `if x.dtype == relay.Int32:`",
            )
        self.decided = True
        fits = isinstance(static[0], cls)
        self._compile(simple_rows(rows, occurrence, fits), out)

    def _record(self, occurrence: Occurrence, entity: Tuple, rows: Sequence[Row], out: TypedBlockBuilder) -> None:
        """A dataclass, named tuple or other structure, whose class the checker knows."""
        cls: type = tuple if entity.form is None else entity.form.cls
        items = occurrence.items
        if items is None:
            items = self._open(occurrence, entity, entity.items)
        constructor = Constructor(cls.__name__, (), () if entity.form is None else entity.form.names)
        new: list[Row] = []
        for row in rows:
            found = row.pattern_at(occurrence)
            match found:
                case None:
                    new.append(row)
                case ClassPattern(span=span):
                    wanted = atom_entity(self.context, found.function)
                    if not isinstance(wanted, PythonObject) or not isinstance(wanted.value, type):
                        raise TypeCheckError("this is not a class", span)
                    if not issubclass(cls, wanted.value):
                        self.decided = True
                    elif wanted.value is dict:
                        fields = mapping_fields(found, entity, items)
                        if fields is None:
                            self.decided = True
                        else:
                            new += row_alternatives(row.replace_pattern(occurrence, fields))
                    elif is_record_class(cls):
                        new += row_alternatives(
                            row.replace_pattern(occurrence, pattern_fields(found, constructor, items))
                        )
                    elif found.items or found.keywords:
                        raise TypeCheckError(f"a {cls.__name__} has no fields", span, help="write the items: (a, b)")
                    else:
                        new += row_alternatives(row.replace_pattern(occurrence, ()))
                case TuplePattern(parts, star, span) if issubclass(cls, tuple | list):
                    if (len(parts) != len(items)) if star is None else len(parts) - 1 > len(items):
                        self.decided = True
                    else:
                        new += row_alternatives(row.replace_pattern(occurrence, component_patterns(items, parts, star)))
                case TuplePattern(span=span) | ValuePattern(span=span):
                    message = f"this pattern cannot match: the value is a {cls.__name__}"
                    self._leave_out(TypeCheckError(message, span))
                case _:
                    raise InternalError("a pattern that tests nothing")
        self.known[occurrence.path] = (constructor.name, len(items))
        self._compile(new, out)
        del self.known[occurrence.path]

    def _data(self, occurrence: Occurrence, pattern: ClassPattern) -> tuple[DynamicValue, DataType]:
        """The value and its type, which the pattern may tell."""
        found = atom_entity(self.context, pattern.function)
        unknown = isinstance(found, PythonObject) and not data.is_data_class(found.value)
        if unknown and self.checker.is_open(occurrence.entity):
            raise SchemeOnly(pattern.span, "the type of the matched value")
        owner, _ = self._constructor(pattern)
        entity = occurrence.entity
        if not isinstance(entity, DynamicValue):
            raise TypeCheckError(f"this case is for {owner.name}, the value is {describe_value(entity)}", pattern.span)
        if data.data_type(entity) is None:
            expected = data.fresh_type(self.checker, owner)
            self.checker.unify_at(entity.type, expected, pattern.span, "the matched value")
        type_ = data.data_type(entity)
        assert type_ is not None
        complete_definition(type_.definition)
        return entity, type_

    def _constructor(self, pattern: ClassPattern) -> tuple[DataDefinition, Constructor]:
        entity = atom_entity(self.context, pattern.function)
        if not isinstance(entity, PythonObject):
            raise TypeCheckError("this is not a class of a data type", pattern.span)
        owner, constructor = data.constructor_of(entity.value, pattern.span)
        return owner.definition, constructor

    def _arm(
        self,
        occurrence: Occurrence,
        items: tuple[Occurrence, ...],
        definition: DataDefinition,
        constructor: Constructor,
        rows: Sequence[Row],
        out: TypedBlockBuilder,
    ) -> None:
        """The rows that fit a constructor."""
        new: list[Row] = []
        for row in rows:
            found = row.pattern_at(occurrence)
            match found:
                case None:
                    new.append(row)
                case ClassPattern():
                    owner, wanted = self._constructor(found)
                    if owner is not definition:
                        raise TypeCheckError(
                            f"this case is for {owner.name}, the value is of {definition.name}", found.span
                        )
                    if wanted is constructor:
                        new += row_alternatives(row.replace_pattern(occurrence, pattern_fields(found, wanted, items)))
                case ValuePattern() if literal_of(self.context, found) is None:
                    self.decided = True
                case TuplePattern(span=span) | ValuePattern(span=span):
                    help = f"write {definition.name}.{definition.constructors[0].name}(..)"
                    message = f"this pattern cannot match: the value is a {definition.name}"
                    self._leave_out(TypeCheckError(message, span, help=help))
                case _:
                    raise InternalError("a pattern that tests nothing")
        single = len(definition.constructors) == 1
        self.known[occurrence.path] = (
            constructor.name if single else f"{definition.name}.{constructor.name}",
            len(items),
        )
        self._compile(new, out)
        del self.known[occurrence.path]

    # ---- values

    def _value(
        self, occurrence: Occurrence, pattern: ValuePattern, rows: Sequence[Row], out: TypedBlockBuilder
    ) -> None:
        entity = occurrence.entity
        static = known_value(entity)
        if static is not None:
            self._decide(occurrence, static[0], rows, out)
            return
        literal = literal_of(self.context, pattern)
        if literal is None and isinstance(entity, DynamicValue):
            entity = settle(self.checker, out, entity, pattern.span)
            if isinstance(entity, PythonObject):
                self._decide(occurrence, None, rows, out)
                return
        if literal is None and is_something(entity):
            self.decided = True
            self._compile([row for row in rows if not self._wants_none(row.pattern_at(occurrence))], out)
            return
        if isinstance(literal, enum.Enum) and isinstance(entity, DynamicValue):
            entity = expand(self.checker, out, entity, pattern.span)
        if (members := members_of_run(entity)) is not None:
            assert isinstance(entity, Tuple)
            place = self.checker.materialize(out, entity.items[0], pattern.span)
            self._chain(occurrence, place, pattern, rows, out, members)
            return
        if isinstance(entity, Text):
            entity = texts.string(self.checker, out, entity, pattern.span)
        if not isinstance(entity, DynamicValue):
            self._leave_out(TypeCheckError(f"{describe_value(entity)} cannot be compared with a value", pattern.span))
            self._compile([row for row in rows if not isinstance(row.pattern_at(occurrence), ValuePattern)], out)
            return
        mixed = any(isinstance(row.pattern_at(occurrence), TuplePattern | ClassPattern) for row in rows)
        if self.checker.is_open(entity) and (literal is None or isinstance(literal, str) or mixed):  # a call will tell
            raise SchemeOnly(pattern.span, "the type of the matched value")
        if literal is None:
            self.checker.unify_at(entity.type, NONE, pattern.span, "the matched value")
            self._decide(occurrence, None, rows, out)
            return
        if isinstance(literal, enum.Enum) or (isinstance(literal, str) and not is_string(entity)):
            raise TypeCheckError(f"this pattern cannot match: the value is {describe_value(entity)}", pattern.span)
        self._chain(occurrence, entity, pattern, rows, out)

    def _wants_none(self, pattern: Pattern | None) -> bool:
        return isinstance(pattern, ValuePattern) and literal_of(self.context, pattern) is None

    def _decide(self, occurrence: Occurrence, value: object, rows: Sequence[Row], out: TypedBlockBuilder) -> None:
        """The checker knows the value at an occurrence, so the cases for other values are allowed to be idle."""
        self.decided = True
        new = []
        for row in rows:
            found = row.pattern_at(occurrence)
            if found is None:
                new.append(row)
            elif isinstance(found, ValuePattern):
                literal = literal_of(self.context, found)
                both_numbers = isinstance(literal, int | float) and isinstance(value, int | float)
                if literal == value and (both_numbers or type(literal) is type(value)):
                    new.append(row.replace_pattern(occurrence, ()))
            elif isinstance(found, ClassPattern) and (cls := self._scalar_class(found)) is not None:
                if isinstance(value, cls):
                    new.append(row)
            elif value is not None:
                raise TypeCheckError(f"this pattern cannot match: the value is {value!r}", found.span)
        if not new:
            raise TypeCheckError(f"no case matches the value {value!r}", self.node.span, help="add `case _:`")
        self._compile(new, out)

    def _chain(
        self,
        occurrence: Occurrence,
        typed: DynamicValue,
        pattern: ValuePattern,
        rows: Sequence[Row],
        out: TypedBlockBuilder,
        members: type[enum.Enum] | None = None,
    ) -> None:
        """An If with an arm for each literal that the rows have here; for members of an enumeration, `typed` is the
        position."""
        literals: list[tuple[Row, object]] = []
        for row in rows:
            found = row.pattern_at(occurrence)
            if found is not None:
                if not isinstance(found, ValuePattern):
                    message = f"this pattern cannot match: the value is {describe_value(typed)}"
                    if isinstance(found, ClassPattern):
                        raise TypeCheckError(message, found.span)
                    self._leave_out(TypeCheckError(message, found.span))
                    continue
                literal = literal_of(self.context, found)
                if literal is None:
                    self.decided = True
                    continue
                if members is not None:
                    if not isinstance(literal, members):
                        raise TypeCheckError(f"this pattern cannot match: it is a {members.__name__}", found.span)
                    literals.append((row, list(members).index(literal)))
                    continue
                if isinstance(literal, str) is not is_string(typed):
                    raise TypeCheckError(f"this pattern cannot match: the value is {describe_value(typed)}", found.span)
                literals.append((row, literal))
            else:
                literals.append((row, None))
        values, others = rows_by_literal(literals, occurrence)
        truths = {value for (is_bool, value), _ in values if is_bool}
        if truths == {True, False} or (members is not None and len(values) == len(members)):  # the last needs no test
            others = values.pop()[1]
        arms: list[tuple[TypedBlockBuilder, TypedBlockBuilder]] = []
        otherwise = TypedBlockBuilder()
        for position, ((is_bool, value), _) in enumerate(values):
            test = TypedBlockBuilder()
            condition = equals_literal(self.checker, typed, is_bool, value, test if position else out, pattern.span)
            test.terminator = Yield((condition.atom,), self.node.span)
            arms.append((test, TypedBlockBuilder()))
        self._test(
            out, lambda: If(tuple(Arm(c.block(), b.block()) for c, b in arms), otherwise.block(), self.node.span)
        )
        for (_, body), ((_, value), group) in zip(arms, values, strict=True):
            self.known[occurrence.path] = (repr(value), -1)
            with self._arm_scope():
                self._compile(group, body)
        rest = {True, False} - {v for v in truths if any(v is value for (_, value), _ in values)}
        self.known[occurrence.path] = (repr(rest.pop()), -1) if truths and len(rest) == 1 else None
        with self._arm_scope():
            self._compile(others, otherwise)
        del self.known[occurrence.path]

    # ---- errors

    def _missing_cases(self) -> TypeCheckError:
        if self.misfit is not None:
            return self.misfit
        shown = self._witness(())
        guarded = any(case.guard is not None for case in self.node.cases)
        notes = ("a case with a guard does not count: its guard may not hold",) if guarded else ()
        help = "add `case _:`" if shown == "_" else f"add `case {shown}:`, or `case _:`"
        return TypeCheckError(f"no case covers {shown}", self.node.span, notes=notes, help=help)

    def _witness(self, path: Path) -> str:
        found = self.known.get(path)
        if found is None:
            return "_"
        name, count = found
        if count < 0:
            return name
        inside = ", ".join(self._witness((*path, i)) for i in range(count))
        return f"({inside},)" if not name and count == 1 else f"{name}({inside})"


def _all_alike(pattern: TuplePattern, rows: Sequence[Row], occurrence: Occurrence) -> bool:
    """True if all rows have tuples of one length there, so that the value has to be one."""
    others = [row.pattern_at(occurrence) for row in rows]
    return pattern.star is None and all(
        isinstance(p, TuplePattern) and p.star is None and len(p.items) == len(pattern.items) for p in others
    )


class _ArmScope:
    """While an arm is written: counts how deep tests nest, and forgets afterwards what was read inside of the arm."""

    def __init__(self, tree: DecisionTree) -> None:
        self.tree = tree
        self.opened = len(tree.opened)

    def __enter__(self) -> None:
        self.tree.depth += 1

    def __exit__(self, *error: object) -> None:
        self.tree.depth -= 1
        while len(self.tree.opened) > self.opened:
            occurrence, entity = self.tree.opened.pop()
            occurrence.entity, occurrence.items = entity, None
