"""Parts of programs: what some results need, from some inputs on."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from relay.ir.analysis.reachability import mentioned_functions
from relay.ir.expr import Binding, Block, Exit, Function, MakeTuple, Module, Var
from relay.ir.traverse import free_variables
from relay.ir.types import TupleType, Type
from relay.transform.cleanup.dead_code import eliminate_dead_code
from relay.transform.core.rebuilding import with_functions
from relay.transform.module_pass import module_pass


@module_pass
def select_outputs(module: Module, inputs: Sequence[str] = (), outputs: Sequence[str] = ()) -> Module:
    """The part of a structured module between variables of its entry: it takes the `inputs`, computes the `outputs`,
    and keeps nothing else. Inputs are parameters, or results of bindings, which are parameters then; parameters that
    the outputs need beside these stay. Several outputs are a tuple. Without outputs the result is the module's own.

    Raises ValueError for a name that no variable at the top of the entry has, or several.
    """
    main = module.main
    if any(main.name in mentioned_functions(f) for f in module.functions.values() if isinstance(f, Function)):
        raise ValueError(f"{main.name} calls itself, so its inputs and outputs stay as they are")
    defined: dict[str, list[Var]] = {}
    for variable in (*main.parameters, *(t for b in main.body.bindings for t in b.targets)):
        defined.setdefault(variable.name, []).append(variable)
    given = [_variable(defined, name) for name in inputs]
    results = [_variable(defined, name) for name in outputs]
    bindings = [b for b in main.body.bindings if not b.targets or not all(t in given for t in b.targets)]
    for binding in bindings:
        if any(target in given for target in binding.targets):
            names = ", ".join(t.name for t in binding.targets)
            raise ValueError(f"the variables {names} are made together, so all or none of them are inputs")
    terminator = main.body.terminator
    result: Type | None = main.result
    if results:
        atom = results[0]
        result = results[0].type
        if len(results) > 1:
            result = TupleType(tuple(r.type for r in results if r.type is not None))
            atom = Var("results", result)
            bindings.append(Binding((atom,), MakeTuple(tuple(results))))
        terminator = Exit(main.label, (atom,))
    body = Block(tuple(bindings), terminator)
    everything = (*given, *(p for p in main.parameters if p not in given))
    module = eliminate_dead_code(_with_main(module, everything, body, result))
    read = free_variables(module.main.body)
    parameters = (*given, *(p for p in main.parameters if p in read and p not in given))
    return _with_main(module, parameters, module.main.body, result)


def _with_main(module: Module, parameters: tuple[Var, ...], body: Block, result: Type | None) -> Module:
    main = module.main
    made = Function(main.name, parameters, body, main.label, result, (), main.documentation, main.span)
    return with_functions(module, {**module.functions, main.name: made})


def _variable(defined: dict[str, list[Var]], name: str) -> Var:
    found = defined.get(name, [])
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(f"{len(found)} variables are named {name!r}; in the program's text each has its own name")
    near = difflib.get_close_matches(name, list(defined), n=1)
    raise ValueError(f"the program has no variable {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
