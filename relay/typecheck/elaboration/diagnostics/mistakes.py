"""Error recovery: errors are collected, their dependents are poisoned, and all are reported together."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from relay.errors import (
    FrontendError,
    InternalError,
    Label,
    RelayError,
    ShapeError,
    Span,
    TypeCheckError,
    TypeMismatch,
    combine_errors,
)
from relay.ir.expr import Expr, LoopLabel
from relay.ir.sizes.facts import DimConstraint, counterexample
from relay.ir.types import (
    FLOAT32,
    INT32,
    BaseClass,
    TensorType,
    TupleType,
    Type,
    TypeId,
    Unknown,
    prune,
    show,
)
from relay.operator.relation import Undetermined
from relay.typecheck.elaboration.abstract_values import (
    AbortElaboration,
    AbstractValue,
    DependsOnPoison,
    DynamicValue,
    LocalFunction,
    is_of_template,
)
from relay.typecheck.elaboration.argument_sources import ArgumentSources, ArgumentsSpecialize, Places
from relay.typecheck.elaboration.effects.effect_notes import EffectNotes
from relay.typecheck.elaboration.restarts import Assumptions, NumbersSpecialize, ParameterPlace
from relay.typecheck.guards import DataDependentGuard, Guards
from relay.typecheck.type_differences import differences, name_unknowns
from relay.typecheck.unification import Clash, resolve

if TYPE_CHECKING:
    pass

MANY_ERRORS = 100
"""Elaboration ends after this many mistakes."""


class SchemeOnly(TypeCheckError):
    """Something that needs a shape, met while only a scheme is sought: the program is fine, its type comes with a
    call."""

    def __init__(self, span: Span | None, what: str) -> None:
        super().__init__(f"{what} is not known here", span, help="annotate the parameter")


def reportable_error(
    error: RelayError | DependsOnPoison | Undetermined | Clash, span: Span | None
) -> RelayError | DependsOnPoison:
    """The error to report: a size that is needed where there is no call is one that only a call gives, and a type
    that cannot be another one is a mismatch."""
    if isinstance(error, Clash):
        return TypeMismatch(error.reason or f"{error.left} is not {error.right}", span)
    if not isinstance(error, Undetermined):
        return error
    example = None if error.question is None else counterexample(error.question)
    if error.question is not None and example is not None:
        return not_for_all(error.question, example, span)
    return SchemeOnly(span, "a size that this depends on")


def not_for_all(question: DimConstraint, example: str, span: Span | None, notes: tuple[str, ...] = ()) -> ShapeError:
    """The mistake that something does not hold for all sizes that the annotations allow."""
    lone = all(isinstance(d, TypeId) for d in (question.left, question.right))
    first = "annotate both with one variable, or" if lone else "annotate sizes for which it holds, or"
    help = f"{first} leave an annotation out: then each call's sizes are checked"
    return ShapeError(f"cannot show that {question}: it fails for {example}", span, notes=notes, help=help)


def display_type(type_: Type) -> str:
    """A type for a message. That of a number whose dtype is still open is what users call it."""
    match resolve(type_):
        case TensorType(Unknown() as base, ()) if base.literals:
            whole = base.classes is None or BaseClass.INTEGER in base.classes
            return "an integer" if whole and all(isinstance(n.value, int) for n in base.literals) else "a number"
        case known:
            return show(with_defaults(known))


def with_defaults(type_: Type) -> Type:
    """A type in which numbers whose dtype is still open, in tuples, have the dtype that they get alone."""
    match type_:
        case TupleType(items, form):
            return TupleType(tuple(map(with_defaults, items)), form)
        case TensorType(Unknown() as base, shape) if base.literals:
            whole = all(isinstance(n.value, int) for n in base.literals)
            return TensorType(INT32 if whole else FLOAT32, shape, type_.axes)
        case _:
            return type_


def clash_notes(clash: Clash, found: Type, expected: Type) -> tuple[str, ...]:
    """Notes on why two types differ: the smallest parts that do. Their variables get letters, so that they can be
    shown."""
    name_unknowns(found, expected)
    return (clash.reason,) if clash.reason else differences(found, expected)


class DiagnosticCollector(EffectNotes):
    """The mistakes of an elaboration, and its current place."""

    hints: Guards  # of the elaboration, with the place at hand

    def __init__(self, generic: bool, decisions: Assumptions) -> None:
        super().__init__()
        self.generic = generic
        self.decisions = decisions
        self.sources = ArgumentSources(decisions.candidates)
        self.errors: list[RelayError] = []
        self.failures = 0  # also those that follow from an error
        self.left_open: list[RelayError] = []  # what was left open until a function's result is known
        self.is_incomplete = False  # a scheme's body has exits that were not looked at
        self.is_partial = False  # a scheme's body was not looked at where a call's types decide what it means
        self.unknown: DependsOnPoison | None = None  # of a subclass: what depends on a name that the scope cannot tell
        self.uncopied: set[LoopLabel] = set()  # loops that fill lists, and might be unrolled (loop_copies.py)
        self.configured: set[LoopLabel] = set()  # in a scheme: loops whose rounds are as many as an argument says
        self.unrollable: set[LoopLabel] = set()  # loops over known numbers that are elaborated once
        self.blamed: set[LoopLabel] = set()  # of those, in whose bodies there are mistakes
        self.blamed_texts: set[LoopLabel] = set()  # recursive functions around mistakes whose results hold strings
        self.blamed_numbers: set[ParameterPlace] = set()  # known numbers that calls around mistakes pass on
        self._guesses: list[object] = []
        self._meaningless: set[str] = set()  # names and objects without a meaning that are reported already
        self.before_raising: Callable[[], None] = lambda: None  # looks for more of them
        # local functions whose bodies were not looked at
        self.unseen_functions: dict[int, tuple[LocalFunction, Expr]] = {}

    def is_open(self, entity: AbstractValue) -> bool:
        """True if nothing is known of a value since only a scheme is sought: it may be a tensor, or a structure."""
        return self.generic and isinstance(entity, DynamicValue) and isinstance(prune(entity.type), Unknown)

    def guess(self, type_: object) -> None:
        """Note that nothing but an attribute tells that an argument is a tensor or a reference."""
        if self.generic:
            self._guesses.append(type_)

    def refuse_guess(self, type_: Type, span: Span | None, described: str) -> None:
        """Raise SchemeOnly for a type that is a guess only: an argument may be a value that has the attribute."""
        if any(type_ is guess for guess in self._guesses):
            raise SchemeOnly(span, f"the type of {described}")

    def specialize_to_numbers(self) -> None:
        """Start again, where a number is needed at compile time, if a call around this writes one."""
        for instance in reversed(self.frame.active):
            if new := instance.numbers - self.decisions.specializing:
                raise NumbersSpecialize(new)

    def specialize_arguments(self, needed: Iterable[object], error: TypeCheckError | None = None) -> None:
        """Begin again with static arguments, if the values that are needed at compile time come from arguments."""
        found = Places().union(*map(self.sources.sources_of, needed))
        if found and not self.generic:
            raise ArgumentsSpecialize(found, error)

    def report(self, error: RelayError | DependsOnPoison, labels: tuple[Label, ...] | None = None) -> None:
        """Note a mistake and go on. `labels`: the call in which it arose, if that is not the present one.

        Raises NumbersSpecialize or ArgumentsSpecialize where known numbers may avoid the mistake.
        """
        if isinstance(error, TypeCheckError) and error.needs_value:
            self.specialize_to_numbers()
            self.specialize_arguments(error.needed, error)
        if isinstance(error, DataDependentGuard):  # nobody has found an answer
            error = ShapeError(error.message, error.span, notes=error.notes, help=error.help, labels=error.labels)
        self.failures += 1
        if isinstance(error, DependsOnPoison):
            if self.unknown is None and type(error) is not DependsOnPoison:
                self.unknown = error
            return
        if isinstance(error, SchemeOnly):
            if self.generic:
                self.is_partial = self.is_incomplete = True
                self.failures -= 1
                return
            error = TypeCheckError(error.message, error.span, labels=error.labels, help=error.help)
        if is_of_template(error.span):
            calls = [label.span for label in (self.frame.labels() if labels is None else labels)]
            own = [span for span in calls if not is_of_template(span)]
            here = None if is_of_template(self.hints.span) else self.hints.span
            error.span, error.labels = own[0] if own else here, ()
        elif isinstance(error, TypeCheckError) and not error.labels:
            calls_of = self.frame.labels() if labels is None else labels
            error.labels = tuple(c for c in calls_of if not is_of_template(c.span))[:1]
        self.blamed.update(self.frame.filling)
        for instance in self.frame.active:
            if instance.returned_text is not None and instance.calls_itself:
                self.blamed_texts.add(instance.returned_text)
            self.blamed_numbers.update(instance.numbers - self.decisions.specializing)
        if isinstance(error, FrontendError):
            if error.message in self._meaningless:
                return
            self._meaningless.add(error.message)
        self.errors.append(error)
        if len(self.errors) >= MANY_ERRORS:
            raise AbortElaboration

    def stop(self) -> None:
        """Raise the errors that were found."""
        if self.errors:
            with contextlib.suppress(AbortElaboration):
                self.before_raising()
            raise combine_errors(self.errors)
        if self.unknown is not None:
            raise self.unknown
        if self.failures:
            raise InternalError("something follows from a mistake, but there is none")

    def visible_span(self, span: Span | None) -> Span | None:
        """A place, or the innermost call that led there where it is in the text of a template."""
        if not is_of_template(span):
            return span
        return next((label.span for label in self.frame.labels() if not is_of_template(label.span)), span)


MOST_ELEMENTS = 1 << 18
"""The most elements that are written out one by one."""


def refuse_many(count: int, span: Span | None) -> None:
    """Raise TypeCheckError for more elements than a program can name one by one."""
    if count > MOST_ELEMENTS:
        raise TypeCheckError(
            f"these are {count} elements, which would be written out one by one; there may be {MOST_ELEMENTS}",
            span,
            help="loop over them, or fill a list in a loop: [i for i in range(n)]; relay.arange(n) is a tensor",
        )
