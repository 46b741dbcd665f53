"""Functions under `functools.cache` and `lru_cache`, which keep their results in a dict.

    @cache                            def fib(n):
    def fib(n):                           cached__fib = {}
        ..fib(n - 1)..                    def computed__fib(n):
                                              ..fib(n - 1)..
                                          def fib(n):
                                              if n not in cached__fib:
                                                  cached__fib[n] = computed__fib(n)
                                              return cached__fib[n]
                                          return fib(n)

A function within another one has the dict of its place; one of a file has a dict for each call from outside of it.
"""

from __future__ import annotations

import ast
import copy

from relay.frontend.analysis.rewriting import NameMeanings, own_nodes, own_statement_lists, place

_CACHES = ("functools.cache", "functools.lru_cache")


def with_dicts(tree: ast.Module) -> None:
    """Rewrite the cached functions of a text."""
    names = NameMeanings(tree)
    for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
        for body in own_statement_lists(function):
            body[:] = [made for statement in body for made in _cached(statement, names)]
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef) and is_cached(statement, names):
            _cache_calls(statement, names)


def is_cached(function: ast.FunctionDef, names: NameMeanings) -> bool:
    """True for a function of parameters by position, under nothing but a cache."""
    if len(function.decorator_list) != 1:
        return False
    decorator = function.decorator_list[0]
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    given = function.args
    is_plain = not (given.vararg or given.kwarg or given.kwonlyargs or given.defaults or given.posonlyargs)
    return names.meaning(called) in _CACHES and is_plain and bool(given.args)


def _cached(statement: ast.stmt, names: NameMeanings) -> list[ast.stmt]:
    """A cached function as its dict, what computes its results, and what looks them up; another statement as it is."""
    if not isinstance(statement, ast.FunctionDef) or not is_cached(statement, names):
        return [statement]
    name, parameters = statement.name, ", ".join(a.arg for a in statement.args.args)
    kept, computed = f"cached__{name}", f"computed__{name}"
    key = parameters if len(statement.args.args) == 1 else f"({parameters})"
    text = f"""
{kept} = {{}}
def {computed}({parameters}):
    pass
def {name}({parameters}):
    if {key} not in {kept}:
        {kept}[{key}] = {computed}({parameters})
    return {kept}[{key}]
"""
    made = [place(part, statement) for part in ast.parse(text).body]
    computing = made[1]
    assert isinstance(computing, ast.FunctionDef)
    computing.body = statement.body
    return made


def _cache_calls(function: ast.FunctionDef, names: NameMeanings) -> None:
    """Let a function of a file, if it calls itself, be one that has a cached function in it."""
    if not any(isinstance(node, ast.Name) and node.id == function.name for node in own_nodes(function)):
        return
    inner = copy.copy(function)
    parameters = ", ".join(a.arg for a in function.args.args)
    final = ast.parse(f"return {function.name}({parameters})").body[0]
    function.body = [*_cached(inner, names), place(final, function.body[-1])]
