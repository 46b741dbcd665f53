"""Simplification: one walk over each function that replaces expressions by ones that are already there.

x = a                               x becomes a
(a, b).0                            a
if false -> b elif ..               without that arm; a certain arm is the else, or replaces the if
if .. yield a .. yield a            a, where all arms yield the same
match C(a, ..) {C(x, ..) -> b}      b with a for x
loop (p = a) .. next L p            a for p
assert true                         nothing
operators                           the table `algebra.RULES`, from the facts in their definitions, and `ops.equations`
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_not
from weakref import WeakKeyDictionary, WeakSet

import attrs

from relay.ir.expr import (
    Arm,
    Assert,
    Atom,
    Binding,
    Block,
    Constant,
    Construct,
    Exit,
    Expr,
    Function,
    Global,
    If,
    Loop,
    LoopLabel,
    MakeTuple,
    Match,
    MatchArm,
    Module,
    Next,
    OpCall,
    Project,
    Static,
    Terminator,
    Var,
    Yield,
)
from relay.ir.rebuild import map_atoms, map_branch, map_terminator, rebind, rebuild_block
from relay.ir.traverse import all_blocks, yields
from relay.operator import Operator, lookup
from relay.operator.rewriting import Application, Equation, Exactness, equations_of
from relay.transform.cleanup.algebra import Rule, rules_for
from relay.transform.core.rebuilding import map_bodies, select
from relay.transform.module_pass import module_pass


@module_pass
def simplify(module: Module, fast_math: bool = False) -> Module:
    """The module with the equations above used from left to right, until none of them fits.

    With `fast_math` also those that hold for real numbers only: not for infinities, NaNs and the signs of zeros.
    """
    kinds = frozenset(Exactness) if fast_math else frozenset({Exactness.EXACT})
    return _with_equations(module, kinds)


@module_pass
def reduce_strength(module: Module) -> Module:
    """The same, also with equations that change the rounding of results: x ** 2 = x * x, x / 3 = x * (1 / 3)."""
    kinds = frozenset({Exactness.EXACT, Exactness.ROUNDING})
    return _with_equations(module, kinds)


def _with_equations(module: Module, kinds: frozenset[Exactness]) -> Module:
    settled = _SETTLED.setdefault(kinds, WeakSet())

    def change(function: Function) -> Block:
        made = _simplify_body(function.body, kinds)
        settled.add(made)
        return made

    return map_bodies(module, change, settled)


def _simplify_body(body: Block, kinds: frozenset[Exactness]) -> Block:
    while True:
        simplifier = _Simplifier(body, kinds)
        made = simplifier.block(body)
        if not simplifier.changed:
            return body
        body = made


_SETTLED: dict[frozenset[Exactness], WeakSet[Block]] = {}
"""The bodies in which no equation of these kinds fits."""


@attrs.frozen(eq=False)
class _CheckedCall:
    """A call that none of the equations of these kinds fits, where its operands were bound to calls that had been
    checked as here (None: to something else). Equations depend on nothing else."""

    call: OpCall
    kinds: frozenset[Exactness]
    operands: tuple[object, ...]
    mark: object  # what stands for this among the operands of others


_CHECKED: WeakKeyDictionary[Var, _CheckedCall] = WeakKeyDictionary()
"""The last check of the call that a variable is bound to."""


class _Simplifier:
    """A walk over a body. `changed`: an equation fitted somewhere."""

    def __init__(self, body: Block, kinds: frozenset[Exactness]) -> None:
        self.kinds = kinds
        self.equations: dict[str, tuple[Equation, ...]] = {}
        self.changed = False
        self.atoms: dict[Var, Atom] = {}
        self.definitions: dict[Var, MakeTuple | OpCall | Construct] = {}
        self.marks: dict[Atom, object] = {}  # of the variables that are bound to calls which no equation fits
        self.dropped: dict[LoopLabel, tuple[tuple[bool, ...], tuple[bool, ...]]] = {}  # what Next and Exit keep
        self.rounds: dict[LoopLabel, list[tuple[Atom, ...]]] = {}
        self.exits: dict[LoopLabel, list[tuple[Atom, ...]]] = {}
        self.rules: dict[str, tuple[Operator, tuple[Rule, ...]]] = {}
        for block in all_blocks(body):
            match block.terminator:
                case Next(label, values):
                    self.rounds.setdefault(label, []).append(values)
                case Exit(label, values):
                    self.exits.setdefault(label, []).append(values)
                case _:
                    pass

    def atom(self, atom: Atom) -> Atom:
        return self.atoms.get(atom, atom) if isinstance(atom, Var) else atom

    def equate(self, variable: Var, atom: Atom) -> None:
        """Read an atom in place of a variable from now on."""
        self.atoms[variable] = atom
        self.changed = True

    def definition(self, atom: Atom) -> OpCall | None:
        found = self.definitions.get(atom) if isinstance(atom, Var) else None
        return found if isinstance(found, OpCall) else None

    def block(self, block: Block) -> Block:
        out: list[Binding] = []
        end = self.bindings(block.bindings, out)
        return rebuild_block(block, out, self.terminator(block.terminator) if end is None else end)

    def terminator(self, terminator: Terminator) -> Terminator:
        made = map_terminator(terminator, self.atom)
        match made:
            case Next(label, values, span) if label in self.dropped:
                return Next(label, select(values, self.dropped[label][0]), span)
            case Exit(label, values, span) if label in self.dropped:
                return Exit(label, select(values, self.dropped[label][1]), span)
            case _:
                return made

    def bindings(self, bindings: Sequence[Binding], out: list[Binding]) -> Terminator | None:
        """Append the simplified bindings to `out`. A terminator is returned if the block ends early with it."""
        for binding in bindings:
            value, targets = binding.value, binding.targets
            match value:
                case OpCall() | MakeTuple() | Construct() | Project():
                    made = map_atoms(value, self.atom)
                    given = made
                    if isinstance(made, OpCall) and self.is_checked(made, targets[0]):
                        self.definitions[targets[0]] = made
                        out.append(rebind(binding, made))
                        continue
                    known = self.equal_atom(made, targets[0])
                    if known is not None:
                        self.equate(targets[0], known)
                        continue
                    if isinstance(made, OpCall):
                        made = self.rewrite_call(made, targets[0], out)
                        if not isinstance(made, OpCall):
                            self.equate(targets[0], made)
                            continue
                        if made is given:
                            self.check_off(made, targets[0])
                    if not isinstance(made, Project):
                        assert isinstance(made, OpCall | MakeTuple | Construct)
                        self.definitions[targets[0]] = made
                    out.append(rebind(binding, made))
                case If():
                    end = self.branch(value, targets, out)
                    if end is not None:
                        return end
                case Match():
                    end = self.match(value, targets, out)
                    if end is not None:
                        return end
                case Loop():
                    self.loop(value, targets, out)
                case Var() | Constant() | Global() | Static():
                    self.equate(targets[0], self.atom(value))
                case Assert(condition) if _is_true(self.atom(condition)):
                    self.changed = True
                case _:
                    out.append(rebind(binding, map_atoms(value, self.atom)))
        return None

    def is_checked(self, call: OpCall, target: Var) -> bool:
        """True if it is known that no equation fits a call."""
        found = _CHECKED.get(target)
        if found is None or found.call is not call or not self.kinds <= found.kinds:
            return False
        if any(map(is_not, map(self.marks.get, call.arguments), found.operands)):
            return False
        self.marks[target] = found.mark
        return True

    def check_off(self, call: OpCall, target: Var) -> None:
        """Note that no equation fits a call."""
        self.marks[target] = mark = object()
        _CHECKED[target] = _CheckedCall(call, self.kinds, tuple(map(self.marks.get, call.arguments)), mark)

    def equal_atom(self, value: Expr, target: Var) -> Atom | None:
        """The atom that an expression equals, if there is one."""
        match value:
            case Project(Var() as whole, index):
                found = self.definitions.get(whole)
                return found.items[index] if isinstance(found, MakeTuple) else None
            case OpCall(name, _):
                entry = self.rules.get(name)
                if entry is None:
                    operator = lookup(name)
                    entry = self.rules[name] = (operator, rules_for(operator))
                assert target.type is not None
                for rule in entry[1]:
                    result = rule.result(entry[0], value, target.type, self.definition)
                    if result is not None:
                        return result
                return None
            case _:
                return None

    def rewrite_call(self, call: OpCall, target: Var, out: list[Binding]) -> OpCall | Atom:
        """The value that a call equals by the table: itself, another call, whose operands are bound in `out`, or an
        atom."""
        known = self.equations.get(call.operator)
        if known is None:
            known = self.equations[call.operator] = equations_of(lookup(call.operator).name, self.kinds)
        if not known:
            return call
        application = Application(call, self.definition)
        for each in known:
            try:
                found = application.rewrite_by(each)
            except TypeError:  # a dim that is not a number
                continue
            if found is None or found.type != target.type:
                continue
            self.changed = True
            for binding in application.emitter.bindings:
                if binding.targets[0] is found.atom:
                    assert isinstance(binding.value, OpCall)
                    return binding.value
                assert isinstance(binding.value, OpCall)
                self.definitions[binding.targets[0]] = binding.value
                out.append(binding)
            return found.atom
        return call

    # ---- branches

    def branch(self, branch: If, targets: tuple[Var, ...], out: list[Binding]) -> Terminator | None:
        arms: list[Arm] = []
        orelse: Block | None = None
        for arm in branch.arms:
            condition = self.block(arm.condition)
            certain = _known_condition(condition)
            self.changed |= certain is not None
            if certain is None:
                arms.append(Arm(condition, self.block(arm.body)))
            elif certain:
                orelse = arm.body
                break
        chosen = branch.orelse if orelse is None else orelse
        if not arms:
            return self.splice(chosen, targets, out)
        made = If(tuple(arms), self.block(chosen), branch.span)
        self.join(made, targets, out)
        return None

    def match(self, match_: Match, targets: tuple[Var, ...], out: list[Binding]) -> Terminator | None:
        value = self.atom(match_.value)
        known = self.definitions.get(value) if isinstance(value, Var) else None
        if isinstance(known, Construct):
            arm = next(a for a in match_.arms if a.constructor == known.constructor)
            self.changed = True
            self.atoms.update(zip(arm.fields, known.arguments, strict=True))
            return self.splice(arm.body, targets, out)
        arms = tuple(MatchArm(a.constructor, a.fields, self.block(a.body)) for a in match_.arms)
        self.join(Match(value, arms, match_.span), targets, out)
        return None

    def splice(self, block: Block, targets: tuple[Var, ...], out: list[Binding]) -> Terminator | None:
        """A block in place of the branch that it belongs to."""
        self.changed = True
        end = self.bindings(block.bindings, out)
        if end is not None and not isinstance(end, Yield):
            return end
        if end is None:
            end = self.terminator(block.terminator)
        if not isinstance(end, Yield):
            return end
        self.atoms.update(zip(targets, end.values, strict=True))
        return None

    def join(self, made: If | Match, targets: tuple[Var, ...], out: list[Binding]) -> None:
        """Append a branch, without those targets that get the same atom from every arm."""
        ends = yields(made)
        if len(ends) >= 2 and targets:
            # A variable that several arms yield is bound outside of all of them.
            keep = tuple(any(not _is_same_atom(v[i], ends[0][i]) for v in ends) for i in range(len(targets)))
            if not all(keep):
                for i, target in enumerate(targets):
                    if not keep[i]:
                        self.equate(target, ends[0][i])
                targets = select(targets, keep)
                made = _map_yields(made, keep)
        out.append(Binding(targets, made))

    # ---- loops

    def loop(self, loop: Loop, targets: tuple[Var, ...], out: list[Binding]) -> None:
        initial = tuple(self.atom(a) for a in loop.initial)
        count = None if loop.counter is None else attrs.evolve(loop.counter, count=self.atom(loop.counter.count))  # type: ignore[misc]
        arrivals = list(self.rounds.get(loop.label, ()))
        if loop.counter is not None:
            arrivals += self.exits.get(loop.label, ())
        keep = tuple(
            any(not (v[i] is p or _is_same_atom(self.atom(v[i]), a)) for v in arrivals)
            for i, (p, a) in enumerate(zip(loop.parameters, initial, strict=True))
        )
        results = tuple(True for _ in targets) if loop.counter is None else keep
        if not all(keep):
            for i, parameter in enumerate(loop.parameters):
                if not keep[i]:
                    self.equate(parameter, initial[i])
                    if loop.counter is not None:
                        self.atoms[targets[i]] = initial[i]
            exit_keep = keep if loop.counter is not None else tuple(True for _ in targets)
            self.dropped[loop.label] = (keep, exit_keep)
        body = self.block(loop.body)
        made = Loop(loop.label, select(loop.parameters, keep), select(initial, keep), body, count, loop.span)
        out.append(Binding(select(targets, results), made))


def _is_true(atom: Atom) -> bool:
    return isinstance(atom, Constant) and bool(atom.value)


def _known_condition(condition: Block) -> bool | None:
    """The value of a condition that is known."""
    if condition.bindings or not isinstance(condition.terminator, Yield):
        return None
    (value,) = condition.terminator.values
    return bool(value.value) if isinstance(value, Constant) else None


def _map_yields(made: If | Match, keep: tuple[bool, ...]) -> If | Match:
    """The branch with some of the values of each yield."""

    def change(body: Block) -> Block:
        end = body.terminator
        return Block(body.bindings, Yield(select(end.values, keep), end.span)) if isinstance(end, Yield) else body

    return map_branch(made, change)


def _is_same_atom(one: Atom, other: Atom) -> bool:
    if one is other:
        return True
    if isinstance(one, Constant) and isinstance(other, Constant):
        a, b = one.value, other.value
        return a.dtype == b.dtype and a.shape == b.shape and a.size <= 64 and a.tobytes() == b.tobytes()
    return False
