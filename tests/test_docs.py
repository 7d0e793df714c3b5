"""The documentation says what is true: its Python blocks run, their printed output is the one that
is shown, its links lead somewhere.

Blocks of one file run in order in one namespace, in an empty folder. Fences: `python` is run;
`text output` after it is what it prints (a number may be a quarter off: it is measured, and another
processor rounds otherwise); every other language is left alone. A fence without a language fails.
"""

import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from itertools import zip_longest
from pathlib import Path

import polars as pl
import pytest

from dynavg.operators import OPERATORS
from dynavg.operators.augmentation import STRATEGIES

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```\s*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\((?!https?:|mailto:)(?P<path>[^)#\s]*)(?:#(?P<anchor>[^)\s]*))?\)")
NUMBER = re.compile(r"(?<![\w.])[-+−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@dataclass(frozen=True)
class Block:
    info: str
    body: str
    line: int


def blocks(text: str) -> list[Block]:
    return [
        Block(match["info"].strip(), match["body"], text.count("\n", 0, match.start()) + 2)
        for match in FENCE.finditer(text)
    ]


def run(text: str, name: str) -> None:
    """Run the Python blocks of a page; check what they print where the page shows it."""
    namespace: dict[str, object] = {"__name__": "docs"}
    found = blocks(text)
    for block, after in zip_longest(found, found[1:]):
        if block.info != "python":
            continue
        printed = StringIO()
        source = "\n" * (block.line - 1) + block.body  # so that tracebacks name the page's line
        with redirect_stdout(printed):
            exec(compile(source, name, "exec"), namespace)
        if after is not None and after.info == "text output":
            difference = unlike(after.body, printed.getvalue())
            assert not difference, f"{name}, line {after.line}: {difference}"


def unlike(shown: str, printed: str) -> str:
    """How a page's output differs from the real one; empty if it does not."""
    words = [re.sub(r"[\s─]+", " ", NUMBER.sub("#", text)).strip() for text in (shown, printed)]
    if words[0] != words[1]:
        return f"the page shows\n{shown}\nbut printed was\n{printed}"
    for one, other in zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True):
        a, b = (float(number.replace(",", "").replace("−", "-")) for number in (one, other))
        if abs(a - b) > max(0.25 * abs(b), 2e-3 if "." in one else 2):
            return f"the page shows {one}, but printed was {other}"
    return ""


def anchors(text: str) -> set[str]:
    """The places in a page that a link can name, as GitHub names them."""
    headings = re.findall(r"^#+ +(.+)$", FENCE.sub("", text), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in plain}


@pytest.fixture(autouse=True)
def undisturbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Files go to an empty folder; additions to the project's tables are taken back."""
    monkeypatch.chdir(tmp_path)
    tables = [(table, dict(table)) for table in (OPERATORS, STRATEGIES)]
    with pl.Config(tbl_width_chars=96, tbl_rows=12):
        yield
    for table, before in tables:
        table.clear()
        table.update(before)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_python_block_runs_and_prints_what_the_page_shows(page: Path) -> None:
    run(page.read_text(encoding="utf-8"), named(page))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_fence_names_its_language(page: Path) -> None:
    bare = [block.line for block in blocks(page.read_text(encoding="utf-8")) if not block.info]
    assert not bare, f"{named(page)}: fences without a language before lines {bare}"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for link in LINK.finditer(FENCE.sub("", text)):
        target = page.parent / link["path"] if link["path"] else page
        assert target.exists(), f"{named(page)}: {link[0]} leads nowhere"
        if link["anchor"]:
            there = anchors(target.read_text(encoding="utf-8"))
            assert link["anchor"] in there, f"{named(page)}: {link[0]} names no heading"


def test_a_block_that_fails_is_reported_with_its_line_in_the_page() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run("Two lines\nof text\n```python\nx = 0\n1 / x\n```\n", "page.md")
    assert (caught.traceback[-1].path, caught.traceback[-1].lineno) == ("page.md", 4)


@pytest.mark.parametrize("shown", ["loss 2.00", "Loss 1.00", "loss 1.00\nmore"])
def test_output_that_is_not_the_printed_one_is_reported(shown: str) -> None:
    page = f"```python\nprint('loss 1.00')\n```\n\n```text output\n{shown}\n```\n"
    with pytest.raises(AssertionError, match=r"page\.md, line 6"):
        run(page, "page.md")


def test_output_with_nearly_the_same_numbers_is_accepted() -> None:
    assert not unlike("12,345 bytes,  loss 1.02", "12,001 bytes, loss 1.00\n")
