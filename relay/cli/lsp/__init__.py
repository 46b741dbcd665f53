"""`relay lsp`: the language server, which editors start and talk to over standard input and output.

    documents.py      open documents: their texts, and positions in the client's units
    recovery.py       texts with syntax errors, as far as they can be read
    analysis.py       the analysis of one text: its check, its syntax tree, the types at its places
    scope.py          the syntax around a place: expressions, calls, names in scope
    hover.py, hints.py, completion.py, definitions.py, symbols.py, diagnostics.py     what editors ask for
    server.py         the server: which message asks for what

Nothing of a document is executed: it is read as `relay check` reads files.
"""

from __future__ import annotations

import argparse
import importlib

from relay.cli.refusal import Refusal

NAME = "lsp"
HELP = "the language server, for editors: errors while typing, types, completion"

EXTRA = "the language server needs pygls: pip install 'relay-lang[lsp]'"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "--stdio", action="store_true", help="use standard input and output (the default, and the only way)"
    )


def run(options: argparse.Namespace) -> int:
    """Serve until the editor leaves; 0."""
    try:
        server = importlib.import_module("relay.cli.lsp.server")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol", "cattrs"):
            raise
        raise Refusal(EXTRA) from None
    code: int = server.serve()
    return code
