"""Restarts: assumptions that elaboration refutes, and the new run under corrected ones."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Set
from typing import TypeAlias

import attrs

from relay.errors import RelayError, Span
from relay.ir.expr import LoopLabel
from relay.ir.types import BaseType, Type

Place: TypeAlias = tuple[LoopLabel, tuple[int, ...]]
"""A parameter of a loop, or a component of one; or the result of a function, or, at -1, one of its parameters."""


ParameterPlace: TypeAlias = tuple[LoopLabel, int]
"""A parameter: the label of its function, which stays when the function is rebuilt, and its position."""


ArgumentPlace: TypeAlias = tuple[int, tuple[int, ...]]
"""A number among the arguments of a call: the position of the parameter, and the path to it in a structure."""


@attrs.frozen(eq=False)
class Assumptions:
    """Facts that an elaboration found out too late, for the next one: where lists are of dynamic length, and whether
    the lists in such lists are of that kind, too; and for which parameters functions are specialized to the numbers
    that calls write."""

    candidates: frozenset[ArgumentPlace] = frozenset()  # arguments that are static where their values are needed
    growing: set[Place | None] = attrs.field(factory=set)
    varying: dict[Place, set[int]] = attrs.field(factory=dict)  # axes of tensors there whose size changes
    widened: dict[Place | None, BaseType] = attrs.field(factory=dict)  # integers that larger ones join; None: in lists
    specializing: set[ParameterPlace] = attrs.field(factory=set)
    holding: list[bool] = attrs.field(factory=list)  # whether results of the program, or of calls, held functions
    labeled: list[object] = attrs.field(factory=list)  # results of the program that hold strings which are known
    returning: bool = False  # the result holds functions, of which the program returns what they have captured
    kept: set[LoopLabel] = attrs.field(factory=set)  # functions whose results stay run-time values there
    results: dict[int, tuple[LoopLabel, Type]] = attrs.field(factory=dict)  # of functions, by their instances' numbers

    caught: list[bool] = attrs.field(factory=list)  # the program catches errors: their texts are values
    choosing_texts: set[LoopLabel] = attrs.field(factory=set)  # functions whose strings differ between their results
    differing: set[int] = attrs.field(factory=set)  # functions that return other types if they call themselves

    of_all_sizes: set[Place] = attrs.field(factory=set)  # parameters that are functions, called at several sizes
    unrolled: set[LoopLabel] = attrs.field(factory=set)  # `while` loops whose rounds are known, of several types
    by_call: set[LoopLabel] = attrs.field(factory=set)  # those whose rounds only a call knows, in a scheme
    sampled: set[LoopLabel] = attrs.field(factory=set)  # `for` loops that are tried with some rounds, in a scheme
    endless: set[LoopLabel] = attrs.field(factory=set)  # those that have too many rounds for that
    copied: set[LoopLabel] = attrs.field(factory=set)  # `for` loops whose rounds have their own types
    peeled: set[LoopLabel] = attrs.field(factory=set)  # `for` loops whose first round changes types: of numbers, None
    optional: dict[Place, Type | None] = attrs.field(factory=dict)  # what is None or a value, of which type
    cells: dict[Span, Type] = attrs.field(factory=dict)  # what is in references that begin as None
    counting: set[ParameterPlace] = attrs.field(factory=set)  # whose integers from Python have to be integers
    of_several_types: set[ParameterPlace] = attrs.field(factory=set)  # unannotated ones that are functions
    idle: set[LoopLabel] = attrs.field(factory=set)  # `for` loops without rounds, whose bodies do not fit the sizes
    elements: dict[Span, Type] = attrs.field(factory=dict)  # what is appended to lists that begin with nothing
    long_integers: list[bool] = attrs.field(factory=list)  # undecided integers are int64, for one has to be
    tables: set[object] = attrs.field(factory=set)  # where dicts are made whose keys are known at run time only

    def content(self) -> tuple[object, ...]:
        """The content, to be compared with a later one."""
        places = frozenset(self.growing), frozenset(self.of_all_sizes)
        parameters = (frozenset(found) for found in (self.specializing, self.of_several_types, self.counting))
        functions = frozenset(self.kept), frozenset(self.differing), frozenset(self.choosing_texts)
        found_out = len(self.caught), len(self.long_integers)
        marked = (self.unrolled, self.by_call, self.endless, self.copied, self.peeled, self.idle)
        loops = tuple(frozenset(found) for found in marked)
        varying = {place: frozenset(axes) for place, axes in self.varying.items()}
        found_types = (
            dict(self.results),
            dict(self.widened),
            frozenset(self.elements),
            frozenset(self.optional),
            frozenset(self.cells),
            frozenset(self.tables),
        )
        return (*places, *parameters, *functions, *found_out, *loops, varying, dict(self.widened), *found_types)

    @property
    def has_nested_growth(self) -> bool:
        """True if lists that are elements of growing lists, or parts of elements, grow themselves."""
        return None in self.growing


class Restart(Exception):
    """The elaboration has found out something that it should have known before."""

    @abstractmethod
    def note(self, decisions: Assumptions) -> None:
        """Let the next elaboration know it."""


class SeveralRestarts(Restart):
    """Facts from one round of a loop about several of its variables."""

    def __init__(self, restarts: Iterable[Restart]) -> None:
        super().__init__()
        self.restarts = tuple(restarts)

    def note(self, decisions: Assumptions) -> None:
        for restart in self.restarts:
            restart.note(decisions)


class CalledAtSizes(Restart):
    """A parameter that is a function, for tensors with `Any`, is called at several sizes."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place

    def note(self, decisions: Assumptions) -> None:
        decisions.of_all_sizes.add(self.place)


class LoopUnrolls(Restart):
    """A `while` changes the types of its variables, and its condition is known at compile time: each round is typed for
    itself. `by_call`: in a scheme, only a call knows it. `is_endless`: it is not, for there are too many rounds."""

    def __init__(self, label: LoopLabel, by_call: bool = False, is_endless: bool = False) -> None:
        super().__init__()
        self.label, self.by_call, self.is_endless = label, by_call, is_endless

    def note(self, decisions: Assumptions) -> None:
        if self.is_endless:
            decisions.unrolled.discard(self.label)
            decisions.endless.add(self.label)
        elif self.by_call:
            decisions.by_call.add(self.label)
        else:
            decisions.unrolled.add(self.label)


class FirstRoundDiffers(Restart):
    """A variable enters a `for` as a number and is an array after a round, or as None: the first round is typed for
    itself."""

    def __init__(self, label: LoopLabel) -> None:
        super().__init__()
        self.label = label

    def note(self, decisions: Assumptions) -> None:
        decisions.peeled.add(self.label)


class IsOptional(Restart):
    """A variable enters a loop as None and gets values in its rounds, of these types; or some of a function's results
    are None, and others are not."""

    def __init__(self, types: Mapping[Place, Type | None]) -> None:
        super().__init__()
        self.types = types

    def note(self, decisions: Assumptions) -> None:
        decisions.optional.update(self.types)


class CellReadEarly(Restart):
    """The content of a reference that begins as None is used before, in the text, anything is written to it."""

    def __init__(self, cells: Mapping[Span, Type]) -> None:
        super().__init__()
        self.cells = cells

    def note(self, decisions: Assumptions) -> None:
        decisions.cells.update(self.cells)


class NeverRuns(Restart):
    """A `for` of this call has no rounds, and its body is wrong at these sizes, as `x[0]` of nothing is: it is left
    out, as Python does not run it."""

    def __init__(self, label: LoopLabel) -> None:
        super().__init__()
        self.label = label

    def note(self, decisions: Assumptions) -> None:
        decisions.idle.add(self.label)


class RoundsDiffer(Restart):
    """The rounds of loops that fill lists have their own types: their bodies are copied for each round."""

    def __init__(self, labels: Iterable[LoopLabel]) -> None:
        super().__init__()
        self.labels = frozenset(labels)

    def note(self, decisions: Assumptions) -> None:
        decisions.copied.update(self.labels)


class CalledAtTypes(Restart):
    """An unannotated parameter is called at several types: its argument is typed again at each use."""

    def __init__(self, place: ParameterPlace) -> None:
        super().__init__()
        self.place = place

    def note(self, decisions: Assumptions) -> None:
        decisions.of_several_types.add(self.place)


class NumbersSpecialize(Restart):
    """Numbers that calls write are needed at compile time, as are axes and strides: they specialize the functions."""

    def __init__(self, places: Set[ParameterPlace]) -> None:
        super().__init__()
        self.places = places

    def note(self, decisions: Assumptions) -> None:
        decisions.specializing.update(self.places)


class NumberCounts(Restart):
    """An integer from Python became a float, for it met some, and is needed as an integer: it converts where it meets
    floats."""

    def __init__(self, place: ParameterPlace) -> None:
        super().__init__()
        self.place = place

    def note(self, decisions: Assumptions) -> None:
        decisions.counting.add(self.place)


class ListGrows(Restart):
    """A list of known length gets another one at a place that has been passed already. None: in some other list."""

    def __init__(self, place: Place | None) -> None:
        super().__init__()
        self.place = place

    def note(self, decisions: Assumptions) -> None:
        decisions.growing.add(self.place)


class ElementsReadEarly(Restart):
    """A field of an element is read where nothing has been appended to the list yet, which begins with nothing."""

    def __init__(self, elements: Mapping[Span, Type]) -> None:
        super().__init__()
        self.elements = elements

    def note(self, decisions: Assumptions) -> None:
        decisions.elements.update(self.elements)


class ErrorsAreCaught(Restart):
    """The program catches errors, whose texts are run-time values then."""

    def note(self, decisions: Assumptions) -> None:
        decisions.caught.append(True)


class IntegersAreLong(Restart):
    """A number that an int32 does not hold meets integers that are int32 because nothing else decided: they are all
    int64. The error is reported where that does not help."""

    def __init__(self, error: RelayError) -> None:
        super().__init__()
        self.error = error

    def note(self, decisions: Assumptions) -> None:
        decisions.long_integers.append(True)


class KeysOfRun(Restart):
    """Dicts that are made at these places have keys that are known at run time only."""

    def __init__(self, origins: Iterable[object]) -> None:
        super().__init__()
        self.origins = frozenset(origins)

    def note(self, decisions: Assumptions) -> None:
        decisions.tables.update(self.origins)


class TextsDiffer(Restart):
    """A function returns other strings on other paths: they are run-time values."""

    def __init__(self, function: LoopLabel) -> None:
        super().__init__()
        self.function = function

    def note(self, decisions: Assumptions) -> None:
        decisions.choosing_texts.add(self.function)


class SizeVaries(Restart):
    """A tensor gets another size, which is data-dependent, at a place that has been passed already: at these axes."""

    def __init__(self, place: Place, axes: set[int]) -> None:
        super().__init__()
        self.place = place
        self.axes = axes

    def note(self, decisions: Assumptions) -> None:
        decisions.varying.setdefault(self.place, set()).update(self.axes)


class IntegersWiden(Restart):
    """A place that has been passed already with integers of one dtype gets those of another one: they have the dtype
    that holds both. None: the elements of lists."""

    def __init__(self, place: Place | None, dtype: BaseType) -> None:
        super().__init__()
        self.place, self.dtype = place, dtype

    def note(self, decisions: Assumptions) -> None:
        decisions.widened[self.place] = self.dtype
