"""The tuple of gradients that `relay.grad(f)` returns for a function of several parameters."""

from __future__ import annotations

from typing import Any, NoReturn

_HELP = "take one, g[0], or differentiate with respect to one parameter: relay.grad(f, wrt=0)"


class Gradients(tuple[Any, ...]):
    """A tuple, with one gradient for each parameter. An operation of arrays, which for tuples means something else or
    nothing, raises an error that says so.

    Other libraries of trees take it as a named tuple, without names.
    """

    __slots__ = ()

    def __new__(cls, *gradients: Any) -> Gradients:
        return super().__new__(cls, gradients)

    def __reduce__(self) -> tuple[Any, ...]:
        return Gradients, tuple(self)

    @property
    def _fields(self) -> tuple[str, ...]:
        return tuple(f"_{position}" for position in range(len(self)))

    def _message(self, use: str) -> str:
        return f"{use} needs one gradient, found a tuple of {len(self)}, one for each parameter: {_HELP}"

    def refuse(self, use: str) -> NoReturn:
        """Raise the TypeError for a use of the tuple as one gradient."""
        raise TypeError(self._message(use))

    def __getitem__(self, place: Any) -> Any:
        try:
            return super().__getitem__(place)
        except TypeError:
            raise TypeError(self._message(f"g[{place!r}]")) from None

    def __getattr__(self, name: str) -> Any:
        use = self._message(f"g.{name}") if not name.startswith("_") else f"'tuple' object has no attribute {name!r}"
        raise AttributeError(use, name=name, obj=self)

    def __add__(self, other: Any) -> Any:
        if type(other) is tuple:
            return tuple(self) + other
        self.refuse("`+`")

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        self.refuse(f"np.{ufunc.__name__}")

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        self.refuse(f"np.{function.__name__}")


def _refusal(symbol: str) -> Any:
    def refuse(self: Gradients, *operands: Any) -> Any:
        self.refuse(f"`{symbol}`")

    return refuse


_SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "pow": "**", "matmul": "@", "mod": "%",
}  # fmt: skip

for _name, _symbol in _SYMBOLS.items():
    setattr(Gradients, f"__r{_name}__", _refusal(_symbol))
    if _name != "add":
        setattr(Gradients, f"__{_name}__", _refusal(_symbol))
for _name in ("neg", "abs"):
    setattr(Gradients, f"__{_name}__", _refusal("-" if _name == "neg" else "abs"))
