"""The one place where errors end."""

from __future__ import annotations

import pytest
from cli_artifacts import squares

import tlir.cli.paths
from tlir.cli import COMMANDS
from tlir.cli.group import LazyGroup
from tlir.cli.group import tlir as group


def test_a_fault_is_one_message_and_a_traceback_only_for_debug(tlir, write, monkeypatch) -> None:
    path = write("good.json", squares())

    def broken(paths: object) -> object:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(tlir_paths(), "artifacts", broken)
    result = tlir("check", path)
    assert result.exit_code == 70
    assert result.stdout == ""
    assert result.stderr.startswith("error: TL9901: a fault in tlir: ZeroDivisionError: planted\n")
    assert "Traceback" not in result.stderr
    debugged = tlir("--debug", "check", path)
    assert debugged.exit_code == 70
    assert "Traceback" in debugged.stderr


def tlir_paths():
    return tlir.cli.paths


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 4, "TL0603"),
        (RecursionError("deep"), 70, "TL9901"),
    ],
)
def test_interrupts_and_exhaustion_have_codes(tlir, write, monkeypatch, error, code, text) -> None:
    def broken(paths: object) -> object:
        raise error

    monkeypatch.setattr(tlir_paths(), "artifacts", broken)
    result = tlir("check", write("good.json", squares()))
    assert result.exit_code == code
    assert text in result.stderr


def test_a_fault_in_one_file_does_not_hide_the_others(tlir, write, monkeypatch) -> None:
    import tlir.api as api

    good, bad = write("a.json", squares()), write("b.json", squares())
    load = api.load

    def planted(path: str) -> object:
        if path == good:
            raise ZeroDivisionError("planted")
        return load(path)

    monkeypatch.setattr(api, "load", planted)
    result = tlir("check", good, bad)
    assert result.exit_code == 70
    assert f"{good}: fault" in result.stdout
    assert f"{bad}: passed" in result.stdout
    assert "2 artifacts: 1 passed, 1 fault" in result.stdout


def test_every_command_is_found_and_has_help(tlir) -> None:
    context = group.make_context("tlir", ["check"], resilient_parsing=True)
    assert isinstance(group, LazyGroup)
    text = tlir("--help").stdout
    for name in COMMANDS:
        command = group.get_command(context, name)
        assert command is not None
        assert command.name == name
        assert command.short_help is not None
        assert f"  {name} " in text
        assert tlir(name, "--help").exit_code == 0


def test_an_unknown_command_names_the_close_one(tlir) -> None:
    result = tlir("comprae", "x")
    assert result.exit_code == 2
    assert "did you mean 'compare'?" in result.stderr


def test_a_path_that_is_not_there_is_wrong_usage(tlir, write, tmp_path) -> None:
    path = write("good.json", squares())
    for command in ("check", "run", "compare"):
        result = tlir(command, path.replace("good", "goood"))
        assert result.exit_code == 2
        assert "TL0902" in result.stderr
        assert "did you mean" in result.stderr
    (tmp_path / "empty").mkdir()
    assert "holds no .json file" in tlir("check", str(tmp_path / "empty")).stderr
    assert tlir("run", str(tmp_path)).exit_code == 2
