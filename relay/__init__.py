"""Relay: a differentiable, functional language embedded in Python.

`import relay; @relay` and `from relay import relay; @relay` are the same object: this module, which is callable. It
also carries the types, the transforms and every registered operator (`relay.tanh`).
"""

from __future__ import annotations

import sys as _sys
import types as _types
import typing as _typing
from collections.abc import Callable as _Callable
from collections.abc import Mapping as _Mapping
from collections.abc import Sequence as _Sequence
from importlib import import_module as _import_module
from typing import Any as _Any
from typing import Generic as _Generic
from typing import ParamSpec as _ParamSpec
from typing import TypeVar as _TypeVar
from typing import dataclass_transform as _dataclass_transform
from typing import overload as _typed_overload

import relay.ops as _ops  # noqa: F401  (registers the operators)
import relay.support.foreign_names as _foreign_names
import relay.support.logs as _logs
from relay import errors, ir, random, transform
from relay.api import tree
from relay.api.batching import vmap
from relay.api.devices import device_put
from relay.api.differentiation import checkpoint, grad, hessian, jacobian, jvp, value_and_grad, vjp
from relay.api.effects import params, rng
from relay.api.effects.params import param
from relay.api.function import RelayFunction, explain
from relay.api.function import data_class as _data_class
from relay.api.function import decorate as _decorate
from relay.api.gradient_check import check_gradient
from relay.api.modules import from_module
from relay.api.overloading import overload
from relay.api.plain_functions import from_source, jit
from relay.api.python_mode import as_python
from relay.api.quantization import to_int8
from relay.api.tuning import tune
from relay.calling import checks as _checks
from relay.calling.array import Array
from relay.calling.array import aligned_array as _aligned_array
from relay.calling.executable import Executable, load
from relay.calling.executable import compile_module as compile
from relay.compilation import hooks as _hooks
from relay.compilation.ahead_of_time import compile_library
from relay.compilation.options import Options as _Options
from relay.compilation.options import options as _options
from relay.compilation.stages import DEFAULT_LEVEL as _DEFAULT_LEVEL
from relay.errors import (
    CompileError,
    DifferentiationError,
    ExecutionError,
    FrontendError,
    InternalError,
    RegistrationError,
    RelayError,
    RelayWarning,
    ShapeError,
    TypeCheckError,
    TypeMismatch,
)
from relay.frontend.annotations import base_type_var, dims, shape_var, type_var
from relay.frontend.data.values import replace as _replace
from relay.ir.annotations.annotation import Ref as _Ref
from relay.ir.axes import CHW, HWC, HWIO, NCDHW, NCHW, NCW, NDHWC, NHWC, NWC, OIHW
from relay.ir.structure import register_tree
from relay.ir.types import ANY as Any
from relay.ir.types import BFLOAT16 as BFloat16
from relay.ir.types import BOOL as Bool
from relay.ir.types import FLOAT16 as Float16
from relay.ir.types import FLOAT32 as Float32
from relay.ir.types import FLOAT64 as Float64
from relay.ir.types import INT8 as Int8
from relay.ir.types import INT16 as Int16
from relay.ir.types import INT32 as Int32
from relay.ir.types import INT64 as Int64
from relay.ir.types import UINT8 as UInt8
from relay.ir.types import UINT16 as UInt16
from relay.ir.types import UINT32 as UInt32
from relay.ir.types import UINT64 as UInt64
from relay.operator import (
    LOOP,
    UNDEFINED,
    Algebra,
    Batching,
    Columns,
    Indexing,
    IndexKind,
    InPlace,
    Memory,
    Numerics,
    Pattern,
    Relation,
    Requirement,
    composite,
    get_env,
    pure_callback,
    register_op,
    resolve_name,
)
from relay.operator.definition import use_results as _use_results
from relay.operator.packs import load_packs as _load_packs
from relay.ops.placeholders import func_ty_to_placeholders
from relay.support import python_mode as _python_mode
from relay.support.tracebacks import install as _install
from relay.text.parser import parse
from relay.text.printer import to_text
from relay.transform.pipeline import optimize

_P = _ParamSpec("_P")
_T = _TypeVar("_T")
_Value = _TypeVar("_Value")

if _typing.TYPE_CHECKING:
    from relay.api.plain_functions import Decorated as _Decorated
    from relay.api.plain_functions import Decorator as _Decorator
    from relay.ops.signatures import *  # noqa: F403
    from relay.ops.signatures import Operators as _Operators

    MYPY = False  # which mypy takes for true
    if MYPY:

        class _Notation:
            """`Tensor[Float, (3,)]` as an expression; in annotations it needs the plugin."""

            def __getitem__(self, item: _Any) -> _Any: ...

        Tensor = _Notation()
        Fn = _Notation()
        Forall = _Notation()
        PureFn = _Notation()
        Ref = _Notation()
    else:  # others have no plugin: what stands in annotations may be anything
        from typing import Annotated as Forall
        from typing import Annotated as Tensor
        from typing import Callable as Fn  # noqa: UP035
        from typing import Callable as PureFn  # noqa: UP035

        class Ref(_Generic[_T]):
            """A cell."""

            value: _T

        Float16: _typing.TypeAlias = _Any
        Float32: _typing.TypeAlias = _Any
        Float64: _typing.TypeAlias = _Any
        Float: _typing.TypeAlias = _Any
        BFloat16: _typing.TypeAlias = _Any
        Bool: _typing.TypeAlias = _Any
        Int: _typing.TypeAlias = _Any
        Int8: _typing.TypeAlias = _Any
        Int16: _typing.TypeAlias = _Any
        Int32: _typing.TypeAlias = _Any
        Int64: _typing.TypeAlias = _Any
        UInt8: _typing.TypeAlias = _Any
        UInt16: _typing.TypeAlias = _Any
        UInt32: _typing.TypeAlias = _Any
        UInt64: _typing.TypeAlias = _Any

else:
    from relay.frontend.annotations import Fn, Forall, PureFn, Ref, Tensor

    _Operators = object

Float, Int = Float32, Int32


def _inside_only(name: str, documentation: str) -> _Callable[..., _Any]:
    def function(*arguments: _Any) -> _Any:
        mode = _python_mode.active.get()
        if mode is not None and (found := mode.builtin(name, arguments)) is not NotImplemented:
            return found
        raise TypeCheckError(f"relay.{name} works inside decorated functions only")

    function.__name__ = name
    function.__doc__ = documentation
    function.__relay_builtin__ = name  # type: ignore[attr-defined]
    return function


def ref(content: _Any) -> _Any:
    """A new mutable cell with this content. Programs may read and write cells that were created outside of them."""
    return _Ref(content)


ref.__relay_builtin__ = "ref"  # type: ignore[attr-defined]
read = _inside_only("read", "The content of a cell; also `cell.value`.")
rename_axes = _inside_only(
    "rename_axes",
    "rename_axes(x, names): x with other names for its axes, a layout or a tuple of names; None for no names.",
)
align = _inside_only(
    "align",
    "align(x, like): x with its named axes in the order of those of a tensor, of a layout or of a tuple of names, and"
    " an axis of extent 1 for each name that it lacks.",
)
breakpoint = _inside_only(
    "breakpoint",
    "Stop here when the program runs in the debugger (`relay.debug.step`, `relay debug`); elsewhere it does nothing.",
)
psum = _inside_only(
    "psum",
    "psum(x, axis_name): the sum of x of all examples along an axis of `relay.vmap(f, axis_name=..)`, or along a tuple"
    " of axes; x is a tensor or a structure of tensors.",
)
pmean = _inside_only("pmean", "pmean(x, axis_name): the mean of x of all examples along an axis; see `psum`.")
pmax = _inside_only("pmax", "pmax(x, axis_name): the largest of x of all examples along an axis; see `psum`.")
pmin = _inside_only("pmin", "pmin(x, axis_name): the smallest of x of all examples along an axis; see `psum`.")
all_gather = _inside_only(
    "all_gather",
    "all_gather(x, axis_name, axis=0, tiled=False): x of all examples, along a new axis; `tiled`: one after the other"
    " along an axis that x has. See `psum`.",
)
axis_index = _inside_only("axis_index", "axis_index(axis_name): the number of the example along an axis, an int32.")
write = _inside_only("write", "write(cell, value): replace the content; also `cell.value = value`.")


@_dataclass_transform(frozen_default=True)
def data(cls: type[_T]) -> type[_T]:
    """Make a class a data type, for programs and for Python.

    Annotated fields make a record; nested classes make the constructors of a sum, each with its fields. A field's
    type may be a string, and mention the class itself or a later one. `type_var`s in the fields' types are parameters:
    `Tree[A]`. Functions in the class take a value as their first parameter and are called as methods.

    Raises FrontendError for what a data type cannot have.
    """
    _data_class(cls, _sys._getframe(1))
    return cls


def replace(value: _Value, /, **fields: _Any) -> _Value:
    """The value of a data type with other fields. In Python also of any constructor of a sum."""
    return _replace(value, **fields)  # type: ignore[return-value]


replace.__relay_builtin__ = "replace"  # type: ignore[attr-defined]


class _Relay(_types.ModuleType, _Operators):
    """The module, callable: the decorator."""

    @_typed_overload
    def __call__(self, function: _Callable[_P, _Any], /) -> _Decorated[_P, _Any]: ...
    @_typed_overload
    def __call__(
        self,
        /,
        *,
        target: str = ...,
        opt_level: int = ...,
        static_argnames: str | _Sequence[str] = ...,
        dynamic: bool | None = ...,
        pure: bool = ...,
        donate_argnames: str | _Sequence[str] = ...,
        donate_argnums: int | _Sequence[int] = ...,
        fallback: str | None = ...,
        check: str | None = ...,
        precision: str = ...,
        schedule: _Mapping[str, _Mapping[str, _Any]] = ...,
    ) -> _Decorator: ...
    def __call__(
        self,
        function: _Callable[..., _Any] | None = None,
        /,
        *,
        target: str = "cpu",
        opt_level: int = _DEFAULT_LEVEL,
        static_argnames: str | _Sequence[str] = (),
        dynamic: bool | None = None,
        pure: bool = False,
        donate_argnames: str | _Sequence[str] = (),
        donate_argnums: int | _Sequence[int] = (),
        fallback: str | None = None,
        check: str | None = None,
        precision: str = "float32",
        schedule: _Mapping[str, _Mapping[str, _Any]] | None = None,
        **others: _Any,
    ) -> _Any:
        """Make a Python function one of the language. Raises FrontendError at its line, CompileError for an option.

        A function is compiled for the sizes of its first call, and for all sizes when others come; `dynamic=True`: for
        all sizes at once; `dynamic=False`: for each call's sizes. `pure`: a program that prints, asserts or uses
        references is an error. `donate_argnames`, `donate_argnums`: parameters whose memory results may take; an
        `Array` given to them cannot be used afterwards. `fallback="interpret"`: a program that cannot be compiled, by a
        bug of Relay, runs on the interpreter, with a RelayWarning; with "error" it raises InternalError, whatever
        RELAY_FALLBACK says. `check="nan"`: a NaN or infinity in the result of a compiled call is an ExecutionError that
        tells where it comes from, as `relay.debug.find_nan` finds it. `precision="float16"` or "bfloat16": products and
        convolutions of float32 compute in it, with sums in float32, and what loses digits there stays in float32
        (`relay.transform.to_mixed_precision`); parameters and results keep their types.
        `schedule={"y": {"tile": (8, 32)}}`: the values of these names are computed by kernels with these loops, which
        are options of `relay.schedule`.
        """
        __tracebackhide__ = True
        if others:
            _options(others)
        chosen = _Options(
            target,
            opt_level,
            static_argnames,
            dynamic,
            pure,
            donate_argnames,
            donate_argnums,
            fallback,
            check,
            precision,
            schedule or {},
        )
        if function is not None:
            return _decorate(function, chosen, _sys._getframe(1))
        return lambda python: _decorate(python, chosen, _sys._getframe(1))


_PRELUDE = ("List", "Option", "Tree", "prelude")
_TOOLS = {
    "amp": "relay.library.amp",
    "builder": "relay.api.builder",
    "debug": "relay.debug",
    "lax": "relay.library.lax",
    "nn": "relay.library.nn",
    "numbers": "relay.api.numbers",
    "prob": "relay.library.probability",
    "testing": "relay.testing",
}
"""Modules over everything, which are imported when they are first used."""


def __getattr__(name: str) -> _Any:
    if name in _PRELUDE:
        prelude = _import_module("relay.prelude")  # written in the language, so it comes after this module
        return prelude if name == "prelude" else getattr(prelude, name)
    if name in _TOOLS:
        return _import_module(_TOOLS[name])
    operator = resolve_name(name)
    if operator is None:
        instead = _foreign_names.MODULE.get(name)
        raise AttributeError(f"module 'relay' has no attribute {name!r}" + (f": {instead}" if instead else ""))
    return operator


def __dir__() -> list[str]:
    return sorted({*__all__, *_PRELUDE, *_TOOLS, *get_env().names()})


_sys.modules[__name__].__class__ = _Relay
relay: _Relay = _sys.modules[__name__]  # type: ignore[assignment]
_hooks.install()
_use_results(_aligned_array)
transform.SEARCHES["choose_precision"] = lambda: _import_module("relay.api.numbers").choose_precision
_checks.use_finder(lambda *call: _import_module("relay.debug").error_of_call(*call))
_install()
get_env().reserve({*globals(), *_PRELUDE, *_TOOLS})
_import_module("relay.library")  # written in the language, so it comes after this module
_load_packs()

_logs.configure()

__version__ = "0.1.0"

__all__ = [
    "CHW",
    "HWC",
    "HWIO",
    "LOOP",
    "NCDHW",
    "NCHW",
    "NCW",
    "NDHWC",
    "NHWC",
    "NWC",
    "OIHW",
    "UNDEFINED",
    "Algebra",
    "Any",
    "Array",
    "BFloat16",
    "Batching",
    "Bool",
    "Columns",
    "CompileError",
    "DifferentiationError",
    "Executable",
    "ExecutionError",
    "Float",
    "Float16",
    "Float32",
    "Float64",
    "Fn",
    "Forall",
    "FrontendError",
    "InPlace",
    "IndexKind",
    "Indexing",
    "Int",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "InternalError",
    "Memory",
    "Numerics",
    "Pattern",
    "PureFn",
    "Ref",
    "RegistrationError",
    "Relation",
    "RelayError",
    "RelayFunction",
    "RelayWarning",
    "Requirement",
    "ShapeError",
    "Tensor",
    "TypeCheckError",
    "TypeMismatch",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "align",
    "all_gather",
    "as_python",
    "axis_index",
    "base_type_var",
    "breakpoint",
    "check_gradient",
    "checkpoint",
    "compile",
    "compile_library",
    "composite",
    "data",
    "device_put",
    "dims",
    "errors",
    "explain",
    "from_module",
    "from_source",
    "func_ty_to_placeholders",
    "get_env",
    "grad",
    "hessian",
    "ir",
    "jacobian",
    "jit",
    "jvp",
    "load",
    "optimize",
    "overload",
    "param",
    "params",
    "parse",
    "pmax",
    "pmean",
    "pmin",
    "psum",
    "pure_callback",
    "random",
    "read",
    "ref",
    "register_op",
    "register_tree",
    "relay",
    "rename_axes",
    "replace",
    "rng",
    "shape_var",
    "to_int8",
    "to_text",
    "transform",
    "tree",
    "tune",
    "type_var",
    "value_and_grad",
    "vjp",
    "vmap",
    "write",
]  # fmt: skip
