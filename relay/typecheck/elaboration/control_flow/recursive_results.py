"""Recursive-result inference: results that are used before they are inferred.

    match tree:
        case Tree.Leaf(row): state = row
        case Tree.Node(left, right): state = f(left)[2:] + f(right)[:2]
    return state

The type of `f(left)` follows from the other arm only, later. A binding that needs it is left open, and if the
function's result is known in the end, elaboration starts again with it, as if it were annotated: every path is unified
with it.
"""

from __future__ import annotations

from collections.abc import Callable

from relay.errors import RelayError
from relay.ir.dims import Dim, resolve_dim, substitute
from relay.ir.expr import Binding, LoopLabel
from relay.ir.types import Kind, Type, TypeId, Unknown, map_dims
from relay.typecheck.elaboration.abstract_values import Context, DependsOnPoison
from relay.typecheck.elaboration.checker import Checker, Instance
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.restarts import Assumptions, Restart
from relay.typecheck.elaboration.schemes import stuck_terms
from relay.typecheck.unification import is_known, resolve


class ResultIsKnown(Restart):
    """A function's result is known, and was needed before. The number is that of its instance."""

    def __init__(self, number: int, label: LoopLabel, result: Type) -> None:
        super().__init__()
        self.number, self.label, self.result = number, label, result

    def note(self, decisions: Assumptions) -> None:
        decisions.results[self.number] = self.label, self.result


def note_recursive_use(checker: Checker, instance: Instance) -> None:
    """Note that a function calls itself, and that its result is not known then."""
    instance.calls_itself |= instance.build is None
    if instance.build is None and not is_known(instance.result):
        instance.used_early = True
        checker.used_early.append(instance)


def leave_open(checker: Checker, context: Context, binding: Binding, error: RelayError | DependsOnPoison) -> bool:
    """Leave a binding open that may need a result which is not known yet; False if there is none such."""
    if checker.generic or not isinstance(error, SchemeOnly) or not any(i.used_early for i in checker.frame.active):
        return False
    stuck_terms.open_binding(checker, context, binding)
    checker.left_open.append(error)
    return True


def earlier_result(checker: Checker, number: int, label: LoopLabel) -> Type | None:
    """The result of an instance, if an earlier elaboration has found it."""
    found = checker.decisions.results.get(number)
    if found is None or found[0] is not label:
        return None
    dims = {dim.name: dim for dim in checker.hints.dims}
    return map_dims(found[1], _dim_replacement(lambda v: dims.get(v.name, v) if isinstance(v, TypeId) else v))


def restart_if_used_early(checker: Checker, number: int, label: LoopLabel, instance: Instance, opened: int) -> None:
    """Start again if bindings in a function (since the checker had this many open ones) needed its result, and it is
    known now."""
    left = len(checker.scheme.opened) > opened
    if not left or not instance.used_early or number in checker.decisions.results or not is_known(instance.result):
        return
    result = map_dims(resolve(instance.result), _dim_replacement(_by_name))
    raise ResultIsKnown(number, label, result)


def _by_name(variable: TypeId | Unknown) -> Dim:
    return TypeId(variable.name, Kind.Dim) if isinstance(variable, Unknown) else variable


def _dim_replacement(change: Callable[[TypeId | Unknown], Dim]) -> Callable[[Dim], Dim]:
    return lambda dim: substitute(resolve_dim(dim), change)
