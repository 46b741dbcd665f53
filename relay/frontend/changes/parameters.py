"""Parameters that functions change: the least fixed point over the texts of a function and of those that it calls.

A call is marked with the arguments that it changes, so that the variable, field or item that was passed gets what
comes back. Only texts are read, and names are looked up: where a call cannot be told from its text, nothing is marked,
and the check of aliases refuses the program if that makes a difference.
"""

from __future__ import annotations

import ast
import contextlib
import types
from collections.abc import Callable, Iterable, Iterator, Mapping

import attrs
import numpy as np

from relay.errors import FrontendError
from relay.frontend.analysis.names import changed_place
from relay.frontend.changes.facts import RECEIVER, Facts, PassedPlaces, Position, facts, root
from relay.frontend.scope import FunctionScope, NamedScope, ParameterScope, TextScope
from relay.frontend.source import FunctionNode, SourceFile, find_function, statements
from relay.frontend.static.static_functions import SourceFunction
from relay.frontend.static.unknown_names import UnknownValue
from relay.ir.definition import MISSING, Definition, Scope

_OF_VALUES = frozenset({*dir(np.ndarray), "value"})
"""The attributes of arrays and references, which are no methods of unknown classes."""

_is_read: Callable[[types.FunctionType], bool]
_is_user_file: Callable[[str], bool]


def use_user_code(is_read: Callable[[types.FunctionType], bool], is_user_file: Callable[[str], bool]) -> None:
    """Say which Python functions programs may call without a decorator, and which files are the user's."""
    global _is_read, _is_user_file
    _is_read, _is_user_file = is_read, is_user_file


def is_user_file(name: str) -> bool:
    """True if a file, or a text, is the user's, and not of Relay's library, which is written for values."""
    return not name.startswith("<relay.") and _is_user_file(name)


@attrs.frozen(eq=False)
class Mark:
    """The changes of a call: its arguments, by position, each with the place that was passed. `is_local`: the callee is
    a function inside of the caller, which gives back all of its parameters that it changes; some may be no places, and
    those that are `returned` have a way from its result."""

    places: tuple[tuple[Position, ast.expr | None], ...]
    is_local: bool
    returned: Mapping[Position, tuple[int, ...]] = types.MappingProxyType({})

    @property
    def variables(self) -> list[str]:
        """The variables that get a new value."""
        return [name for _, place in self.places if place is not None and (name := root(place)) is not None]


@attrs.define(eq=False)
class Text:
    """A function as it is written. `changed`: the variables that it is known to change, those of functions around it
    among them."""

    file: SourceFile
    node: FunctionNode
    scope: Scope
    around: Text | None
    facts: Facts
    changed: set[str]
    callees: dict[ast.Call, list[tuple[Text | Definition, int]]] = attrs.field(factory=dict)

    def changed_parameters(self) -> tuple[int, ...]:
        """The positions of the parameters that it changes, if they are the same objects to its end."""
        names = self.facts.parameters
        return tuple(i for i, p in enumerate(names) if p in self.changed and p not in self.facts.rebound)

    def returned(self) -> dict[int, tuple[int, ...]]:
        """Those of them that are in its result, with their ways from that."""
        names, ways = self.facts.parameters, self.facts.returned
        return {p: ways[names[p]] for p in self.changed_parameters() if names[p] in ways}

    def defines(self, name: str) -> bool:
        """True if a name is local to this function, or to one around it."""
        return name in self.facts.local or (self.around is not None and self.around.defines(name))

    def local_function(self, name: str) -> tuple[FunctionNode, Text] | None:
        """The function in this one, or in one around it, that a name means; None for other variables."""
        if name in self.facts.local:
            node = self.facts.named.get(name)
            return None if node is None else (node, self)
        return None if self.around is None else self.around.local_function(name)


class Changes:
    """The changes of a function, and of all that it calls."""

    def __init__(self, file: SourceFile, scope: Scope, node: FunctionNode) -> None:
        self._texts: dict[FunctionNode, Text] = {}
        self._classes: dict[int, list[type]] = {}  # the user's classes that scopes see
        self.function = self._text(file, node, scope, None)
        known = list(self._texts.values())
        while known:
            text = known.pop()
            before = len(self._texts)
            for inner in text.facts.inner:
                self._text(text.file, inner, text.scope, text)
            for passed in text.facts.calls:
                if passed.places:
                    text.callees[passed.call] = list(self._callees(text, passed))
            known += list(self._texts.values())[before:]
        self._solve()

    def _text(self, file: SourceFile, node: FunctionNode, scope: Scope, around: Text | None) -> Text:
        found = self._texts.get(node)
        if found is None:
            said = file.facts.get(node)
            if said is None:
                said = file.facts[node] = facts(node)
            assert isinstance(said, Facts)
            found = self._texts[node] = Text(file, node, scope, around, said, set())
        return found

    def _solve(self) -> None:
        again = True
        while again:
            again = False
            for text in self._texts.values():
                found = set(text.facts.changed)
                for passed in text.facts.calls:
                    found.update(name for _, place in self._changed_places(text, passed) if (name := root(place)))
                for inner in text.facts.inner:
                    nested = self._texts[inner]
                    found |= nested.changed - nested.facts.local
                found = {whole for name in found for whole in text.facts.wholes(name)}
                if not found <= text.changed:
                    text.changed |= found
                    again = True

    def _changed_places(self, text: Text, passed: PassedPlaces) -> Iterator[tuple[Position, ast.expr]]:
        """The arguments of a call that are places, and that one of its callees changes."""
        positions = {
            p for callee, shift in text.callees.get(passed.call, ()) for p in _changed_arguments(callee, shift)
        }
        yield from ((p, place) for p, place in passed.places.items() if p in positions)

    # ---- what a call means

    def _callees(self, text: Text, passed: PassedPlaces) -> Iterator[tuple[Text | Definition, int]]:
        """The functions that a call may be one of, with the number of parameters before its first argument."""
        match passed.call.func:
            case ast.Name(id=name):
                local = text.local_function(name)
                if local is not None:
                    node, around = local
                    yield self._text(around.file, node, around.scope, around), 0
                elif not text.defines(name):
                    yield from ((found, 0) for found in self._global_functions(text, name))
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if not text.defines(name):
                owner = text.scope.resolve(name)
                if isinstance(owner, types.ModuleType | type):
                    found = self._function(getattr(owner, attribute, MISSING))
                    yield from () if found is None else ((found, 0),)
                elif owner is MISSING:  # a class of this text, which is not there yet
                    yield from ((found, 0) for found, _ in self._methods(text, attribute))
            case ast.Attribute(attr=method):
                yield from self._methods(text, method)
            case _:
                pass

    def _global_functions(self, text: Text, name: str) -> Iterator[Text | Definition]:
        """The functions that a global name may mean: itself, or one of the file for a name without a value yet."""
        own = text.node
        if isinstance(own, ast.FunctionDef) and own.name == name and id(own) not in text.file.methods:
            yield text
            return
        found = text.scope.resolve(name)
        if found is MISSING:
            for node in statements(text.file.tree):
                if isinstance(node, ast.FunctionDef) and node.name == name and id(node) not in text.file.methods:
                    yield self._text(text.file, node, text.scope, None)
        elif (known := self._function(found)) is not None:
            yield known

    def _function(self, found: object) -> Text | Definition | None:
        """A Python object as a function that a program may call."""
        if isinstance(found, UnknownValue):  # a file that is not imported does not tell what it is
            return None
        definition = found if isinstance(found, Definition) else getattr(found, "__relay__", None)
        if isinstance(definition, Definition):
            return definition
        if isinstance(found, SourceFunction):
            return self._text(found.file, found.node, found.scope, None)
        if not isinstance(found, types.FunctionType) or not _is_read(found):
            return None
        try:
            file, node = find_function(found)
        except FrontendError:  # which is said where it is called
            return None
        return self._text(file, node, FunctionScope.from_function(found), None)

    def _methods(self, text: Text, name: str) -> Iterator[tuple[Text | Definition, int]]:
        """The methods of a name, of the classes in the file and of those that the function sees, with the number of
        parameters before the first argument."""
        for node in text.file.methods.values():
            if node.name == name:
                yield self._text(text.file, node, text.scope, None), not _is_static(node)
        if id(text.scope) not in self._classes:
            self._classes[id(text.scope)] = list(_visible_classes(text.scope))
        for cls in self._classes[id(text.scope)]:
            member = vars(cls).get(name, MISSING)
            found = self._function(getattr(member, "__func__", member))
            if found is not None:
                yield found, not isinstance(member, staticmethod)

    # ---- marks

    def marks(self) -> tuple[dict[ast.Call, Mark], dict[FunctionNode, tuple[int, ...]]]:
        """The marks of calls in the function, and of functions in it with the parameters that these give back."""
        calls: dict[ast.Call, Mark] = {}
        changed: dict[FunctionNode, tuple[int, ...]] = {}
        waiting = [self.function]
        while waiting:
            text = waiting.pop()
            waiting += [self._texts[inner] for inner in text.facts.inner]
            for node in text.facts.named.values():
                inner_text = self._texts[node]
                assert isinstance(node, ast.FunctionDef)
                if node.name not in text.facts.values and (positions := inner_text.changed_parameters()):
                    changed[node] = positions
        waiting = [self.function]
        while waiting:
            text = waiting.pop()
            waiting += [self._texts[inner] for inner in text.facts.inner]
            for passed in text.facts.calls:
                mark = self._mark(text, passed, changed)
                if mark is not None:
                    calls[passed.call] = mark
        back = {key: [p for p in found if p not in self._texts[key].returned()] for key, found in changed.items()}
        return calls, {key: tuple(found) for key, found in back.items()}

    def _mark(self, text: Text, passed: PassedPlaces, functions: dict[FunctionNode, tuple[int, ...]]) -> Mark | None:
        callees = text.callees.get(passed.call, ())
        local = next((c for c, _ in callees if isinstance(c, Text) and c.around is not None), None)
        if local is not None:
            ways = local.returned()
            given = {_position(local, passed, i): i for i in functions.get(local.node, ())}
            returned = {p: ways[i] for p, i in given.items() if i in ways}
            places = tuple((p, _local_place(text, passed.places.get(p))) for p in given)
            return Mark(places, True, returned) if places else None
        found = [(p, place) for p, place in self._changed_places(text, passed) if _local_place(text, place)]
        if not callees and _may_change_receiver(text, passed):
            found.append((RECEIVER, passed.places[RECEIVER]))
        return Mark(tuple(found), False) if found else None


def _changed_arguments(callee: Text | Definition, shift: int) -> Iterator[Position]:
    """The arguments that a function changes, as its calls give them."""
    positions: Iterable[int]
    if isinstance(callee, Definition):
        positions, names = callee.changes, [p.name for p in callee.function.parameters]
    else:
        positions, names = callee.changed_parameters(), list(callee.facts.parameters)
    for position in positions:
        yield RECEIVER if position < shift else position - shift
        yield names[position]


def _position(callee: Text, passed: PassedPlaces, parameter: int) -> Position:
    """The argument of a local function's parameter."""
    name = callee.facts.parameters[parameter]
    return name if name in passed.places else parameter


def _local_place(text: Text, place: ast.expr | None) -> ast.expr | None:
    """A place of which the variable is one of the function's, or of those around it."""
    name = None if place is None else root(place)
    return place if name is not None and text.defines(name) else None


def _may_change_receiver(text: Text, passed: PassedPlaces) -> bool:
    """True for a method that is called for its effect alone, of a class of which nothing is known."""
    is_method = passed.is_statement and RECEIVER in passed.places and changed_place(ast.Expr(passed.call)) is None
    if isinstance(passed.call.func, ast.Attribute) and passed.call.func.attr in _OF_VALUES:
        return False
    return is_method and _local_place(text, passed.places[RECEIVER]) is not None


def _is_static(node: ast.FunctionDef) -> bool:
    return any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)


def has_method(file: SourceFile, scope: Scope, name: str) -> bool:
    """True if a class in the file, or one of the user's that a function sees, has a method of this name."""
    if not is_user_file(file.source.filename):
        return False
    if any(node.name == name for node in file.methods.values()):
        return True
    return any(isinstance(vars(cls).get(name), types.FunctionType) for cls in _visible_classes(scope))


def _visible_classes(scope: Scope) -> Iterator[type]:
    """The user's classes among the names around a function, and those above them."""
    seen: set[type] = set()
    for value in _visible_values(scope):
        if isinstance(value, type) and value not in seen:
            yield from (base for base in value.__mro__[:-1] if base not in seen)
            seen.update(value.__mro__)


def _visible_values(scope: Scope) -> Iterator[object]:
    match scope:
        case FunctionScope(cells, names):
            yield from list(names.values())
            for cell in cells.values():
                with contextlib.suppress(ValueError):  # it has no value yet
                    yield cell.cell_contents
        case TextScope(definitions, names):
            yield from [*definitions.values(), *names.values()]
        case ParameterScope(further, around) | NamedScope(further, around):
            yield from further.values()
            yield from _visible_values(around)
        case _:
            pass
