"""Distances and values of thousands of bits: short for people, wherever they read them, and whole for programs."""

from __future__ import annotations

import json
import re
import sys
from decimal import Decimal
from io import StringIO
from pathlib import Path

import pytest

from tlir.cli.compare import shortened
from tlir.cli.group import tlir as group
from tlir.compare.page import bars
from tlir.compare.text import ulps_text
from tlir.passes.cast import cast
from tlir.schema import read, write

ROOT = Path(__file__).resolve().parents[2]


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def wide(tmp_path: Path) -> str:
    graph, _ = cast(read(ROOT / "tests" / "golden" / "jax" / "predict.json"), "e24m4096")
    path = tmp_path / "wide.json"
    write(graph, path)
    return str(path)


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("options", [[], ["--tolerance", "1e-9"], ["--tolerance", "auto"]])
def test_a_terminal(columns: int, options: list[str], wide: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(columns))
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr("tlir.cli.progress.DELAY", 600.0)  # no bar among the lines, however slow this is
    group.main(["compare", wide, *options], standalone_mode=False)
    lines = [line for line in terminal.getvalue().splitlines() if wide not in line]
    assert [line for line in lines if len(line) > columns] == []
    assert "max ulps 1.603e+1227" in " ".join(terminal.getvalue().split())
    assert len(lines) < 120


@pytest.mark.parametrize("options", [[], ["--tolerance", "1e-9"], ["--tolerance", "auto"], ["--format", "junit"]])
def test_a_pipe(options: list[str], wide: str, tlir) -> None:
    result = tlir("compare", wide, *options)
    assert max(map(len, result.stdout.replace(wide, "").splitlines())) < 330
    assert "1.603e+1227" in result.stdout


def test_json_has_every_digit(wide: str, tlir) -> None:
    (file,) = json.loads(tlir("compare", wide, "--json").stdout)["files"]
    found = file["outputs"][0]
    assert ulps_text(found["max_ulps"]["ulps"]) == "1.603e+1227"
    assert len(str(found["max_ulps"]["ulps"])) == 1228
    assert len(found["max_ulps"]["got_words"]) > 1000


def test_the_page(wide: str, tmp_path: Path, tlir) -> None:
    page = tmp_path / "page.html"
    tlir("compare", wide, "--tolerance", "1e-9", "--html", str(page))
    shown = re.sub(r'data-v="[^"]*"', "", page.read_text(encoding="utf-8"))
    assert "1.603e+1227" in shown
    assert 'class="high"' in shown
    assert not re.search(r"<td[^>]*>[\d,]{30,}</td>", shown)


@pytest.mark.parametrize("ulps", [0, 1, 999, 1000, 2**64, 10**20 - 1])
def test_distances_of_up_to_twenty_digits_are_whole(ulps: int) -> None:
    assert ulps_text(ulps) == str(ulps)
    assert int(ulps_text(ulps, ",").replace(",", "")) == ulps


@pytest.mark.parametrize("ulps", [10**20, 123456 * 10**40, 2**4126 - 1, 10**900 * 12])
def test_longer_ones_have_four_digits(ulps: int) -> None:
    text = ulps_text(ulps)
    assert re.fullmatch(r"\d\.\d{3}e\+\d+", text)
    assert abs(Decimal(text) - ulps) <= Decimal(ulps) / 1000


def test_a_histogram_of_long_distances() -> None:
    lines = bars([(0, 1), (3, 2), (4120, 5)])
    assert all(len(text) < 24 for text, _ in lines)
    assert sum(count for _, count in lines) == 8


def test_values_keep_their_ends() -> None:
    digits = "0." + "123456789" * 100 + "e-1233"
    assert shortened(digits) == digits[:40] + "…" + digits[-16:]
    assert shortened("3" * 80) == "3" * 80
