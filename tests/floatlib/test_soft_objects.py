"""Compiled code and the folder that keeps it."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

objects = pytest.importorskip("tlir.floatlib.soft.objects", reason="llvmlite is not installed")


def module(addend: int) -> str:
    return f"define i64 @next(i64 %x) {{\n  %y = add i64 %x, {addend}\n  ret i64 %y\n}}\n"


def call(addend: int) -> int:
    address = objects.compile_ir(module(addend), ["next"])["next"]
    return int(ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(100))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "made here"))
    return tmp_path / "made here" / "tlir" / "objects"


def test_code_is_kept_and_used_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(3) == 103
    (file,) = cache.iterdir()
    assert file.suffix == ".o"
    assert cache.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr(objects, "object_code", lambda text, pipeline: pytest.fail("compiled again"))
    assert call(3) == 103


def test_other_text_is_other_code(cache: Path) -> None:
    assert (call(3), call(4)) == (103, 104)
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("damage", [b"", b"x" * 31, b"\0" * 500])
def test_damaged_files_are_replaced(cache: Path, damage: bytes) -> None:
    call(5)
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage)
    assert call(5) == 105
    assert file.read_bytes() == whole


def test_whole_files_of_another_name_are_replaced(cache: Path) -> None:
    assert (call(8), call(9)) == (108, 109)
    first, second = cache.iterdir()
    whole = first.read_bytes(), second.read_bytes()
    first.write_bytes(whole[1])
    second.write_bytes(whole[0])
    assert (call(8), call(9)) == (108, 109)
    assert (first.read_bytes(), second.read_bytes()) == whole


@pytest.mark.parametrize("kind", ["folder", "pipe", "link to nothing", "link to itself"])
def test_what_is_no_file_is_not_waited_for(cache: Path, kind: str) -> None:
    call(10)
    (file,) = cache.iterdir()
    file.unlink()
    if kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        if not hasattr(os, "mkfifo"):
            pytest.skip("no pipes in folders here")
        os.mkfifo(file)
    else:
        file.symlink_to(file if kind == "link to itself" else cache / "nothing")
    assert call(10) == 110


def test_unusable_folders_keep_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(file))
    assert objects.folder() is None
    assert call(6) == 106
    shared = tmp_path / "tlir" / "objects"
    shared.mkdir(parents=True)
    shared.chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if hasattr(os, "getuid"):
        assert objects.folder() is None
        assert call(7) == 107
        assert not list(shared.iterdir())


def test_relative_paths_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert objects.folder() == tmp_path / "home" / ".cache" / "tlir" / "objects"
    assert not (tmp_path / "relative").exists()


def test_old_files_go(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "KEPT_FILES", 4)
    for addend in range(10, 20):
        assert call(addend) == 100 + addend
        assert len(list(cache.iterdir())) <= 4


def test_what_is_no_module_or_function(cache: Path) -> None:
    with pytest.raises(RuntimeError):
        objects.compile_ir("define nothing", ["next"])
    with pytest.raises(KeyError):
        objects.compile_ir(module(8), ["previous"])


def test_addresses_of_arrays_that_can_be_written_cannot_or_say_so_wrongly() -> None:
    own = np.arange(3.0)
    fixed = np.arange(3.0)
    fixed.flags.writeable = False
    (one, _) = np.broadcast_arrays(np.ones(1), np.ones(1))
    for array in (own, fixed, one, np.ones(2, ml_dtypes.bfloat16), np.zeros((0, 3)), np.array(1.0)):
        assert objects.address(array) == array.ctypes.data
