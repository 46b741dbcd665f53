"""Late bindings between layers: functions that a lower layer calls and an upper one provides.

    called by                        provided by                        what
    relay.ir.validation              relay.operator                     the type of an operator's call
    relay.ir.analysis.metering       relay.operator                     the arithmetic operations of a call
    relay.operator.composition       relay.compilation.composites       the bodies of composite operators
    relay.ir.expr                    relay.text                         the text of a module
    relay.typecheck.elaboration      relay.frontend.library             functions written in the language
    relay.frontend.changes           relay.support, relay.typecheck     what code is the user's

`import relay` sets them, before anything else of the package can be used. Three are of layers above this one, and set
there: the arrays that operators outside of programs give and the search for the cause of a NaN in `relay/__init__.py`,
the data type of strings where it is written, in `relay/library/texts.py`.
"""

from __future__ import annotations

from relay.compilation.composites import Composer
from relay.frontend.changes.parameters import use_user_code
from relay.frontend.library import definition, library_definition, tree_function
from relay.frontend.lower import lower_function
from relay.ir.analysis.metering import use_work
from relay.ir.analysis.module_text import use_printer
from relay.ir.validation.check import use_operators
from relay.operator import lookup, type_of
from relay.operator.composition import use_composer
from relay.support.user_code import is_user_file
from relay.text.printer import to_text
from relay.typecheck.elaboration.library import overloads, trees, undecorated
from relay.typecheck.elaboration.library.library_calls import use_library


def install() -> None:
    """Set all of them."""
    use_operators(type_of)
    use_work(lambda call, types, result: lookup(call.operator).flops(types, result))
    use_printer(to_text)
    use_composer(Composer())
    use_library(definition)
    trees.use_library(tree_function)
    overloads.use_translation(library_definition)
    use_user_code(undecorated.is_read, is_user_file)
    undecorated.use_translation(lambda python: lower_function(python, annotated=False))  # they are of Python
