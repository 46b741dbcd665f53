"""Cell elimination: cells that are never written again become what they hold.

    c = ref v;  x = read c        c = v;  x = c

The elements of lists are such cells (`typecheck/elaboration/dynamic_lists/dynamic_lists.py`), so a list becomes a
stack of its elements, which takes less memory and gives it back where an element is replaced. What is decided is
the same for all references of a type: one of them that is written, has a shadow, or is passed to or from Python
keeps all. The cells of a list that is passed to or from Python are its own: nobody else sees them, and the caller
passes either form (`codegen/runtime/marshalling.py`).

Before a module is differentiated, cells are of use: the derivative of a cell is a cell, so that what is read often
costs no more backwards. So only those go whose lists become tensors at once (`tape_allocation.py`), which have that
property, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Derivative,
    Expr,
    Function,
    Global,
    Module,
    OpCall,
    RefNew,
    RefRead,
    RefWrite,
    Shadow,
    StackNew,
    Var,
)
from relay.ir.rebuild import map_parts, map_terminator
from relay.ir.traverse import operands, walk
from relay.ir.types import (
    DataDefinition,
    DataType,
    FunctionType,
    RefType,
    StackType,
    TupleType,
    Type,
    map_type_parts,
    mentioned_definitions,
    prune,
    types_in,
)
from relay.transform.aggregates.flat_types import module_types
from relay.transform.memory.tape_allocation import allocate_tapes
from relay.transform.module_pass import pass_about


@pass_about(RefNew, RefRead, RefWrite, StackNew)
def eliminate_cells(module: Module) -> Module:
    """The module with values in place of references whose content never changes."""
    found = _read_only_references(module)
    if not found:
        return module
    if any(isinstance(f, Derivative) for f in module.functions.values()):
        return _with_tensors_for_lists(module, found)
    return _without_cells(module, found)


def _without_cells(module: Module, gone: set[RefType]) -> Module:
    types = _ContentTypes(gone)
    functions = {
        n: _CellElimination(types, f).function() if isinstance(f, Function) else f for n, f in module.functions.items()
    }
    return Module(functions, module.entry, module.data, module.where)


def _with_tensors_for_lists(module: Module, found: set[RefType]) -> Module:
    """The module with tensors in place of the lists that have a known capacity, where all lists of a type have one."""
    for function in module.functions.values():
        if isinstance(function, Function):
            found -= set(_references((*(p.type for p in function.parameters), function.result)))
    choices = [found, *({one} for one in sorted(found, key=str))] if len(found) > 1 else [found]
    for gone in filter(None, choices):
        changed, types = allocate_tapes(_without_cells(module, gone)), _ContentTypes(gone)
        elements = {types.content_type(reference) for reference in gone}
        if not any(isinstance(t, StackType) and t.element in elements for t in _all_types(changed)):
            module = changed
    return module


def _all_types(module: Module) -> Iterator[Type]:
    """The types of a module's variables, and their components."""
    pending, met = list(module_types(module)), set[Type]()
    while pending:
        type_ = pending.pop()
        type_ = prune(type_)  # type: ignore[assignment]
        if type_ in met:
            continue
        met.add(type_)
        yield type_
        match type_:
            case RefType(inside) | StackType(inside):
                pending.append(inside)
            case TupleType(items):
                pending += items
            case _:
                pass


def _read_only_references(module: Module) -> set[RefType]:
    """The types of references that are created and read only."""
    functions = [f for f in module.functions.values() if isinstance(f, Function)]
    entry = module.functions[module.entry]  # a pending derivative shares what its function does
    outside = (*(p.type for p in entry.parameters), entry.result) if isinstance(entry, Function) else ()
    found = {*_references(_content(module)), *_references(outside)}
    if not found:
        return found
    found -= set(_shared_references(outside))
    definitions = _all_definitions(module)
    found -= set(_references(t for d in definitions for c in d.constructors for t in c.fields))
    for function in functions:
        for binding in walk(function.body):
            match binding.value:
                case RefWrite(Var(type=type_)):
                    found -= set(_references((type_,), inside=False))
                case Shadow() as shadow:
                    variables = (*binding.targets, *operands(shadow))
                    found -= set(_references((v.type for v in variables if isinstance(v, Var)), inside=False))
                case OpCall(_, arguments):
                    found -= set(_references((a.type for a in arguments if isinstance(a, Var)), inside=False))
                case _:
                    pass
    return found


def _content(module: Module) -> Iterator[Type]:
    """The types of the contents of references that are created."""
    for function in module.functions.values():
        if isinstance(function, Function):
            for binding in walk(function.body):
                if isinstance(binding.value, RefNew) and binding.targets[0].type is not None:
                    yield binding.targets[0].type


def _all_definitions(module: Module) -> set[DataDefinition]:
    found: set[DataDefinition] = set()
    pending = list(mentioned_definitions(module_types(module)))
    while pending:
        definition = pending.pop()
        if definition not in found:
            found.add(definition)
            pending += mentioned_definitions(t for c in definition.constructors for t in c.fields)
    return found


def _references(types: Iterable[Type | None], inside: bool = True) -> Iterator[RefType]:
    """The types of references among types, and `inside` of them."""
    for type_ in types:
        if type_ is not None:
            yield from (t for t in (types_in(type_) if inside else [prune(type_)]) if isinstance(t, RefType))


def _shared_references(types: Iterable[Type | None]) -> Iterator[RefType]:
    """The types of references among what is passed to or from Python that are not the cells of lists: references of
    the user's. Where a list holds these, its cells stay, too, which tells both apart."""
    pending: list[tuple[Type | None, bool]] = [(type_, False) for type_ in types]
    while pending:
        type_, in_list = pending.pop()
        match None if type_ is None else prune(type_):
            case RefType(content) as reference:
                if not in_list or isinstance(prune(content), RefType):
                    yield reference
                pending.append((content, False))
            case StackType(element):
                pending.append((element, True))
            case TupleType(items):
                pending += ((item, False) for item in items)
            case FunctionType(parameters, result):
                pending += ((part, False) for part in (*parameters, result))
            case _:
                pass


class _ContentTypes:
    """Types with contents in place of some references."""

    def __init__(self, gone: set[RefType]) -> None:
        self._gone = gone
        self._made: dict[Type, Type] = {}

    def is_gone(self, type_: Type | None) -> bool:
        return type_ is not None and prune(type_) in self._gone

    def content_type(self, type_: Type) -> Type:
        found = self._made.get(type_)
        if found is None:
            found = self._made[type_] = self._map(prune(type_))  # type: ignore[arg-type]
        return found

    def _map(self, type_: Type) -> Type:
        match type_:
            case RefType(content) if type_ in self._gone:
                return self.content_type(content)
            case DataType():
                return type_
            case _:
                return map_type_parts(type_, self.content_type)


class _CellElimination:
    """One function."""

    def __init__(self, types: _ContentTypes, function: Function) -> None:
        self.types = types
        self.source = function
        self.vars: dict[Var, Var] = {}

    def function(self) -> Function:
        source = self.source
        assert source.result is not None
        parameters, result = tuple(map(self.var, source.parameters)), self.types.content_type(source.result)
        return attrs.evolve(source, parameters=parameters, result=result, body=self.block(source.body))  # type: ignore[misc]

    def var(self, var: Var) -> Var:
        """The variable at its new type."""
        if var not in self.vars:
            same = var.type is None or self.types.content_type(var.type) == var.type
            self.vars[var] = var if same else Var(var.name, self.types.content_type(var.type), var.span)  # type: ignore[arg-type]
        return self.vars[var]

    def atom(self, atom: Atom) -> Atom:
        if isinstance(atom, Global) and atom.type is not None:
            return Global(atom.name, self.types.content_type(atom.type), atom.span)
        return self.var(atom) if isinstance(atom, Var) else atom

    def block(self, block: Block) -> Block:
        bindings = [Binding(tuple(map(self.var, b.targets)), self._expression(b)) for b in block.bindings]
        return Block(tuple(bindings), map_terminator(block.terminator, self.atom))

    def _expression(self, binding: Binding) -> Expr:
        match binding.value:
            case RefNew(content) if self.types.is_gone(binding.targets[0].type):
                return self.atom(content)
            case RefRead(Var() as reference) if self.types.is_gone(reference.type):
                return self.atom(reference)
            case StackNew(element, span):
                return StackNew(self.types.content_type(element), span)
            case value:
                return map_parts(value, atom=self.atom, block=self.block, var=self.var)
