"""The language server: which message asks for what.

Texts are analyzed in one thread of their own, so that messages are answered meanwhile. A request waits for the analysis
of the text as it is; while someone types, documents are analyzed when nothing has come for a moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import attrs
from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

import relay
from relay.cli.lsp import completion, definitions, hints, symbols
from relay.cli.lsp import diagnostics as problems
from relay.cli.lsp import hover as hovering
from relay.cli.lsp.analysis import Analysis, Analyzer
from relay.cli.lsp.documents import Text

PAUSE = 0.03
"""The seconds without a change before a document is analyzed. Changes during an analysis wait for its end, so a
short pause costs no more than one core, and errors are shown while one types."""

log = logging.getLogger("relay.lsp")
_T = TypeVar("_T")


@attrs.define(eq=False)
class Document:
    """An open document: its text, its last analysis, and the one that is running."""

    uri: str
    filename: str
    text: Text
    version: int | None
    analysis: Analysis | None = None
    pending: asyncio.Future[Analysis] | None = None
    pending_text: Text | None = None
    waiting: asyncio.Task[None] | None = None


class Server(LanguageServer):
    """The server, with the documents that are open."""

    def __init__(self) -> None:
        super().__init__("relay", relay.__version__)
        self.documents: dict[str, Document] = {}
        self.pages = definitions.OperatorPages()
        self.worker = ThreadPoolExecutor(1, "relay-analysis")
        self.tasks: set[asyncio.Task[None]] = set()
        self.has_ended = False  # the client has said so
        self._analyzer: Analyzer | None = None
        self._texts: dict[str, str] = {}  # of open documents, by the real path

    # ---- documents

    def open(self, uri: str, text: str, version: int | None) -> None:
        """A document is opened, perhaps once more."""
        name = to_fs_path(uri) if uri.startswith("file:") else None
        encoding = str(getattr(self.workspace.position_encoding, "value", "utf-16"))
        self.documents[uri] = Document(uri, name or uri, Text(text, encoding), version)
        self._note_text(self.documents[uri])

    def change(self, uri: str, changes: list[types.TextDocumentContentChangeEvent], version: int | None) -> None:
        """A document changes. Changes of one that is not open are ignored."""
        document = self.documents.get(uri)
        if document is not None:
            for change in changes:
                document.text = document.text.with_change(change)
            document.version = version
            self._note_text(document)

    def close(self, uri: str) -> None:
        """A document is closed: the file on disk counts again."""
        document = self.documents.pop(uri, None)
        if document is not None:
            self._texts.pop(os.path.realpath(document.filename), None)
            if document.waiting is not None:
                document.waiting.cancel()

    def _note_text(self, document: Document) -> None:
        self._texts[os.path.realpath(document.filename)] = document.text.text

    def _text_of(self, path: Path) -> str | None:
        return self._texts.get(os.path.realpath(path))

    # ---- analyses

    def _analyze(self, text: Text, filename: str) -> Analysis:
        if self._analyzer is None:
            folders = [p for f in self.workspace.folders.values() if (p := to_fs_path(f.uri)) is not None]
            self._analyzer = Analyzer(folders, self._text_of)
        return self._analyzer.analyze(text, filename)

    async def analysis(self, uri: str) -> Analysis | None:
        """The analysis of a document as it is; None if it is not open, or was closed meanwhile."""
        while (document := self.documents.get(uri)) is not None:
            if document.analysis is not None and document.analysis.text is document.text:
                return document.analysis
            if document.pending is None or document.pending_text is not document.text:
                loop, text = asyncio.get_running_loop(), document.text
                document.pending_text = text
                document.pending = loop.run_in_executor(self.worker, self._analyze, text, document.filename)
            text = document.text
            found = await asyncio.shield(document.pending)
            if found.text is document.text:
                document.analysis = found
        return None

    async def asked(self, uri: str, answer: Callable[[Analysis], _T]) -> _T | None:
        """The answer to a request about a document, once it is analyzed; None if it is not open."""
        found = await self.analysis(uri)
        if found is None:
            return None
        return await asyncio.get_running_loop().run_in_executor(self.worker, answer, found)

    def schedule(self, uri: str, pause: float) -> None:
        """Publish the diagnostics of a document, unless it changes again before."""
        document = self.documents.get(uri)
        if document is None:
            return
        if document.waiting is not None:
            document.waiting.cancel()
        document.waiting = asyncio.ensure_future(self._publish(uri, pause))
        self._keep(document.waiting)

    def schedule_others(self, uri: str | None) -> None:
        """The files that documents may import have changed."""
        for other, document in self.documents.items():
            if other != uri:
                document.analysis, document.text = None, Text(document.text.text, document.text.encoding)
                self.schedule(other, PAUSE)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _publish(self, uri: str, pause: float) -> None:
        await asyncio.sleep(pause)
        document = self.documents.get(uri)
        if document is None:
            return
        version = document.version
        try:
            found = await self.asked(uri, problems.diagnostics)
        except Exception:  # of ours: the server goes on
            log.exception("the analysis of %s failed", uri)
            return
        if found is not None and uri in self.documents:
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))


def make_server() -> Server:
    """The server with what it answers."""
    server = Server()
    _add_documents(server)
    _add_requests(server)
    return server


def _add_documents(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def on_open(params: types.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        server.open(document.uri, document.text, document.version)
        server.schedule(document.uri, 0)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def on_change(params: types.DidChangeTextDocumentParams) -> None:
        server.change(params.text_document.uri, list(params.content_changes), params.text_document.version)
        server.schedule(params.text_document.uri, PAUSE)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def on_save(params: types.DidSaveTextDocumentParams) -> None:
        server.schedule_others(params.text_document.uri)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def on_file_change(params: types.DidChangeWatchedFilesParams) -> None:
        server.schedule_others(None)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def on_close(params: types.DidCloseTextDocumentParams) -> None:
        server.close(params.text_document.uri)
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(params.text_document.uri, []))

    @server.feature(types.SHUTDOWN)
    def on_end(*nothing: object) -> None:
        server.has_ended = True


def _add_requests(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        return await server.asked(params.text_document.uri, lambda a: hovering.hover(a, params.position))

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    async def inlay_hints(params: types.InlayHintParams) -> list[types.InlayHint] | None:
        return await server.asked(params.text_document.uri, lambda a: hints.hints(a, params.range))

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def definition(params: types.DefinitionParams) -> types.Location | None:
        return await server.asked(
            params.text_document.uri, lambda a: definitions.definition(a, server.pages, params.position)
        )

    @server.feature(types.TEXT_DOCUMENT_IMPLEMENTATION)
    async def implementation(params: types.ImplementationParams) -> types.Location | None:
        return await server.asked(
            params.text_document.uri,
            lambda a: definitions.definition(a, server.pages, params.position, implementation=True),
        )

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=["."]))
    async def completions(params: types.CompletionParams) -> types.CompletionList | None:
        def answer(found: Analysis) -> types.CompletionList:
            return completion.complete(found, found.text, params.position)

        return await server.asked(params.text_document.uri, answer)

    @server.feature(types.TEXT_DOCUMENT_SIGNATURE_HELP, types.SignatureHelpOptions(trigger_characters=["(", ","]))
    async def signature(params: types.SignatureHelpParams) -> types.SignatureHelp | None:
        def answer(found: Analysis) -> types.SignatureHelp | None:
            return completion.signature_help(found, found.text, params.position)

        return await server.asked(params.text_document.uri, answer)

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def outline(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol] | None:
        return await server.asked(params.text_document.uri, symbols.symbols)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions([types.CodeActionKind.QuickFix]))
    async def actions(params: types.CodeActionParams) -> list[types.CodeAction] | None:
        uri = params.text_document.uri
        return await server.asked(uri, lambda a: problems.fixes(a, uri, params.context.diagnostics))


def serve() -> int:
    """Serve over standard input and output until the client leaves; 0, or 1 if it did not say so before. What anything
    prints meanwhile goes to standard error."""
    server = make_server()
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as out, contextlib.redirect_stdout(sys.stderr):
        try:
            server.start_io(stdout=out)
        finally:
            server.pages.close()
            server.worker.shutdown(wait=False, cancel_futures=True)
    return 0 if server.has_ended else 1
