"""The page of `relay show --html` in a headless browser: it loads by itself, and every link leads to a line in sight.

Without Chromium, or where memory is limited so that it does not start, this is skipped; but not where CI runs, unless
RELAY_NO_BROWSER says that there is none to be had.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from relay.cli import main

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)

PROGRAM = '''
from relay import relay, Float64, Tensor


@relay
def layer(x, w):
    return relay.tanh(x @ w)


@relay
def f(x: Tensor[Float64, (3, 4)], w: Tensor[Float64, (4, 5)]):
    """Has <b>markup</b> & a loop."""
    y = layer(x, w)
    unused = y + 1.0
    for i in range(30):
        y = y * 0.5 + relay.sin(y)
    return (y * y).sum()
'''

SCRIPT = """
<script>
const errors = [];
addEventListener("error", e => errors.push(String(e.message)));
addEventListener("load", async () => {
  const seen = [];
  for (const link of document.querySelectorAll("a")) {
    link.click();
    await new Promise(done => setTimeout(done, 0));
    const target = document.getElementById(link.getAttribute("href").slice(1));
    const box = target ? target.getBoundingClientRect() : null;
    seen.push({
      href: link.getAttribute("href"),
      reached: target !== null && target.matches(":target"),
      inside: box !== null && box.left < innerWidth && box.right > 0 && box.top < innerHeight && box.bottom > 0,
      marked: target !== null && getComputedStyle(target).backgroundColor,
    });
  }
  const report = {
    seen, errors,
    title: document.title,
    columns: document.querySelectorAll("section").length,
    side_by_side: [...document.querySelectorAll("section")].every((s, i, all) =>
      i === 0 || s.getBoundingClientRect().left >= all[i - 1].getBoundingClientRect().right - 1),
    bold: document.querySelectorAll("pre b").length,
    loaded: performance.getEntriesByType("resource").length,
  };
  document.body.textContent = "REPORT" + JSON.stringify(report) + "END";
});
</script>
"""


@pytest.fixture
def browser() -> str:
    """The path of a browser."""
    if BROWSER is not None and not _is_limited():
        return BROWSER
    if os.environ.get("CI") and not os.environ.get("RELAY_NO_BROWSER"):
        pytest.fail("CI tests pages in a browser: install chromium-headless-shell, or set RELAY_NO_BROWSER=1")
    pytest.skip("there is no Chromium, or not enough memory for it")


def _is_limited() -> bool:
    """Whether the addresses of a process are limited for good: browsers reserve far more than they use."""
    if sys.platform != "linux":
        return False
    import resource

    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    return hard != resource.RLIM_INFINITY


def dom(browser: str, page: Path, folder: Path) -> str:
    """The text of a page after its scripts."""

    def unlimited() -> None:
        if sys.platform == "linux":
            import resource

            hard = resource.getrlimit(resource.RLIMIT_AS)[1]
            resource.setrlimit(resource.RLIMIT_AS, (hard, hard))

    command = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1600,900",
        f"--user-data-dir={folder}", "--virtual-time-budget=20000", "--dump-dom", page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, preexec_fn=unlimited)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_link_leads_to_a_line_in_sight(browser: str, tmp_path: Path) -> None:
    source, page = tmp_path / "model.py", tmp_path / "page.html"
    source.write_text(PROGRAM)
    assert main(["show", f"{source}:f", "--html", "-o", str(page)]) == 0
    text = page.read_text()
    page.write_text(text.replace("</head>", f"{SCRIPT}</head>"))
    found = re.search("<body>REPORT(.*)END", html.unescape(dom(browser, page, tmp_path / "browser")), re.DOTALL)
    assert found is not None
    report = json.loads(found[1])
    assert report["title"].endswith("model.py:f")
    assert report["errors"] == [] and report["loaded"] == 0, "the page is one file"
    assert report["columns"] >= 5 and report["side_by_side"]
    assert report["bold"] == 0, "markup of the program is text"
    links = report["seen"]
    assert len(links) == text.count("<a ") > 50
    assert [link for link in links if not link["reached"] or not link["inside"]] == []
    lines = [link for link in links if re.fullmatch(r"#[ls]\d+-\d+", link["href"])]
    assert {link["marked"] for link in lines} == {"rgb(255, 221, 136)"}
