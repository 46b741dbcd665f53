"""The builder of programs, for programs that make programs: compilers of other languages, importers, generators.

    b = FunctionBuilder("axpy")
    a, x, y = (b.parameter(n, "Tensor[float32, (3,)]") for n in "axy")
    axpy = relay.from_module(b.module(a * x + y))

Values have Python's operators, and every operator of Relay's takes them: `relay.tanh(x)`. Control flow takes functions
that build its blocks. Types are checked as each operator is applied, and the module when it is finished. The nodes of
the representation, and functions that go through them, are here, too.
"""

from relay.api.builder.functions import FunctionBuilder
from relay.api.builder.rewriting import replace_calls
from relay.ir.expr import (
    Arm,
    Assert,
    Atom,
    Binding,
    Block,
    Call,
    Constant,
    Construct,
    Exit,
    Expr,
    Function,
    Global,
    If,
    Loop,
    MakeTuple,
    Match,
    MatchArm,
    Module,
    Next,
    OpCall,
    Print,
    Project,
    Terminator,
    Var,
    Yield,
)
from relay.ir.traverse import all_blocks, bound_variables, free_variables, operands, terminator_operands, walk
from relay.operator.symbolic import Value

__all__ = [
    "Arm",
    "Assert",
    "Atom",
    "Binding",
    "Block",
    "Call",
    "Constant",
    "Construct",
    "Exit",
    "Expr",
    "Function",
    "FunctionBuilder",
    "Global",
    "If",
    "Loop",
    "MakeTuple",
    "Match",
    "MatchArm",
    "Module",
    "Next",
    "OpCall",
    "Print",
    "Project",
    "Terminator",
    "Value",
    "Var",
    "Yield",
    "all_blocks",
    "bound_variables",
    "free_variables",
    "operands",
    "replace_calls",
    "terminator_operands",
    "walk",
]
