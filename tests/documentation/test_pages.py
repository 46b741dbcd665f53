"""The documentation: its programs run and print exactly what the page says, and its links lead somewhere.

The Python blocks of a page run in order, in one namespace. A text block right after one has its whole output. A block
marked `python error` must raise a RelayError; the text block after it has lines of the diagnostic.
"""

from __future__ import annotations

import codeop
import linecache
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import attrs
import pytest

from relay import get_env
from relay.errors import RelayError
from relay.typecheck.elaboration.library import overloads

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("[a-z]*/README.md")), *sorted((ROOT / "docs").rglob("*.md"))]
FENCES = re.compile(r"^```python( error)?\n(.*?)^```$(?:\s*^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


@attrs.frozen
class Block:
    """A fenced Python program of a page."""

    line: int  # of its first line of code
    program: str
    fails: bool
    output: str | None  # the text block after it


def blocks(text: str) -> list[Block]:
    """All Python blocks of a page, in order."""
    return [
        Block(text.count("\n", 0, found.start(2)) + 1, found[2], found[1] is not None, found[3])
        for found in FENCES.finditer(text)
    ]


class Runner:
    """Runs the blocks of a page. Their source is found under the page's path, at the page's line numbers."""

    def __init__(self, page: Path, parts: list[Block]) -> None:
        self.page = page
        self._compile = codeop.Compile()  # keeps `from __future__` from one block to the next
        self.module = ModuleType(f"documentation_{page.stem}")
        self.module.__file__ = str(page)
        sys.modules[self.module.__name__] = self.module
        lines: list[str] = []
        for part in parts:
            lines += ["\n"] * (part.line - 1 - len(lines)) + part.program.splitlines(keepends=True)
        linecache.cache[str(page)] = (sum(map(len, lines)), None, lines, str(page))

    def run(self, block: Block) -> RelayError | None:
        """Execute a block; the error that it raised, if it is marked as one that does."""
        code = self._compile("\n" * (block.line - 1) + block.program, str(self.page), "exec")
        try:
            exec(code, vars(self.module))
        except RelayError as error:
            if not block.fails:
                raise
            return error
        return None

    def close(self) -> None:
        """Forget the page's module and source."""
        del sys.modules[self.module.__name__], linecache.cache[str(self.page)]


@pytest.fixture
def operators() -> Iterator[None]:
    """Operators and overloads that a page registers are gone afterwards."""
    before, table = get_env().names(), dict(overloads._table)
    yield
    overloads._table.clear()
    overloads._table.update(table)
    for name in set(get_env().names()) - set(before):
        del get_env()._operators[name]


@pytest.mark.usefixtures("operators")
@pytest.mark.parametrize(
    "page", [p for p in PAGES if blocks(p.read_text(encoding="utf-8"))], ids=lambda p: p.relative_to(ROOT).as_posix()
)
def test_programs_print_what_the_page_says(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parts = blocks(page.read_text(encoding="utf-8"))
    runner = Runner(page, parts)
    try:
        for block in parts:
            where = f"{page.name}:{block.line}"
            error = runner.run(block)
            printed = capsys.readouterr().out
            if block.fails:
                assert error is not None, f"{where} raises no error"
                assert block.output, f"{where} has no text block with its error"
                for line in block.output.splitlines():
                    assert line in str(error), where
            else:
                assert printed == (block.output or ""), where
    finally:
        runner.close()


def test_readme_has_an_example() -> None:
    assert blocks((ROOT / "README.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "page", [p for p in PAGES if p.name != "operators.md"], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_prose_is_wrapped_at_110_characters(page: Path) -> None:
    """On all pages but the generated one."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert [line for line in prose.splitlines() if len(line) > 110 and not line.startswith(("|", "    "))] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_blocks_and_headings_begin_a_line(page: Path) -> None:
    """A page whose lines were joined has programs that no test sees."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert [line for line in prose.splitlines() if "```" in line or re.search(r"\S ##+ ", line)] == []


def test_the_table_of_the_page_about_debugging() -> None:
    """All of it but numbers, their units and places is what a profile prints."""
    page = ROOT / "docs" / "debugging.md"
    text = page.read_text(encoding="utf-8")
    (table,) = re.findall(r"^```text\n( *time .*?)^```$", text, re.MULTILINE | re.DOTALL)
    parts = [block for block in blocks(text) if "import relay" in block.program or "sort(squares)" in block.program]
    runner = Runner(page, [parts[0], parts[-1]])
    try:
        runner.run(parts[0])
        runner.run(parts[-1])
        printed = str(runner.module.found)
    finally:
        runner.close()

    def words(line: str) -> list[str]:  # which peak is nearer depends on the machine
        return re.findall(r"(?<=\s)[a-z]\w{2,}\S*", re.sub(r"\S+\.(?:py|md):\d+|memory |compute ", "", line))

    missing = [line for line in table.splitlines() if words(line) not in map(words, printed.splitlines())]
    assert missing == [], printed


def slugs(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text(encoding="utf-8")):
        linked = page.parent / target if target else page
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in slugs(linked.read_text(encoding="utf-8")), f"{page.name} links to {target}#{anchor}"


@pytest.mark.parametrize("name", ["architecture", "decisions"])
def test_pages_about_the_compiler_name_files_that_exist(name: str) -> None:
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    files = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py") if ".venv" not in path.parts}
    for named in set(re.findall(r"`([a-z_/]+\.py)`", page)):
        assert any(f"/{file}".endswith(f"/{named}") for file in files), f"{name}.md names {named}"


def test_the_map_names_every_room() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = {path.parent.name for path in (ROOT / "relay").glob("*/__init__.py")}
    assert {room for room in rooms if not re.search(rf"\b{room}\b", page)} == set()
