"""Number formats of few bits, simulated: float8, fixed point, and formats of the user's own; and the search for the
cheapest precision of each value of a program.

    posit = NumberFormat("posit8", 8, decode)
    y = posit(x)                                        in programs and in Python
    f8 = relay.numbers.with_products_in(E4M3, f, x)     the function with the operands of its products in a format
"""

from relay.api.numbers.formats import E4M3, E5M2, NumberFormat, fixed_point
from relay.api.numbers.precision import BindingPrecision, PrecisionChoice, choose_precision, with_products_in

__all__ = [
    "E4M3",
    "E5M2",
    "BindingPrecision",
    "NumberFormat",
    "PrecisionChoice",
    "choose_precision",
    "fixed_point",
    "with_products_in",
]
