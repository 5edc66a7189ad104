"""The examples in the documentation are run: sessions give what they show, Python blocks run, links lead somewhere.

A block fenced as ``console`` is a session: lines that start with ``$ `` are commands, run by the shell in one temporary
copy of the repository's examples, and what follows each is its output, exactly. A block fenced as ``python`` is a
program; the blocks of one page share their names, and a line ``# prints: text`` says what the program has printed by
then since the last such line.
"""

from __future__ import annotations

import re
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from sessions import PAGES, blocks, furnish, run, session_steps

_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.fixture
def furnished(tmp_path: Path) -> Path:
    furnish(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "console")], ids=lambda page: page.name)
def test_sessions_give_the_output_they_show(page: Path, furnished: Path) -> None:
    for text in blocks(page, "console"):
        for command, expected in session_steps(text):
            assert run(command, furnished) == expected, f"in {page.name}: {command}"


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name)
def test_python_blocks_run_and_print_what_they_say(
    page: Path, furnished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(furnished)
    names: dict[str, object] = {"__name__": page.stem}
    for text in blocks(page, "python"):
        part: list[str] = []
        for line in [*text.splitlines(), "# prints:"]:
            if not line.startswith("# prints:"):
                part.append(line)
                continue
            printed = StringIO()
            with redirect_stdout(printed):
                exec(compile("\n".join(part), f"{page.name}", "exec"), names)
            expected = line.removeprefix("# prints:").strip()
            assert " ".join(printed.getvalue().split()) == expected, f"in {page.name}: {part}"
            part = []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_of_the_repository(page: Path) -> None:
    for target in _LINK.findall(page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
