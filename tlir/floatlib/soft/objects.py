"""Machine code from LLVM IR, for this processor, kept on disk between runs.

What a module compiles to depends on its text, the processor, and LLVM alone, and these name the file that keeps the
object code: ``$XDG_CACHE_HOME/tlir/objects/SHA256.o`` (``~/.cache`` where the variable is unset). Files are replaced
atomically and begin with the digest of their name and the rest, so that a damaged one, or one that was kept under
another name, is compiled again. Where the folder cannot be used, belongs to somebody else, or can be written by others,
nothing is kept; that is never an error.

This module needs llvmlite.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import stat
import tempfile
from _thread import start_new_thread
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from threading import Lock, current_thread, main_thread
from typing import Any

import llvmlite
import llvmlite.binding as binding
from numpy.typing import NDArray

KEPT_FILES = 4096
"""The most files that are kept; when there are more, the older half goes."""

VECTORIZED = "O3, loop and superword vectorization"
PLAIN = "O2, loops as they are"
STRAIGHT = "as written"
"""Pipelines: one for code of scalars, a quicker one for code that is written in vectors already, and the quickest for
thousands of operations without a branch, of which none is in vain."""

_LOCK = Lock()
if hasattr(os, "register_at_fork"):
    # a process that is forked while another thread compiles would wait for that thread for ever
    os.register_at_fork(before=_LOCK.acquire, after_in_child=_LOCK.release, after_in_parent=_LOCK.release)
counts = {"hits": 0, "compiled": 0}
"""How many modules came from the folder, and how many were compiled, in this process."""
_ENGINES: list[Any] = []
"""The owners of all code that was loaded; code is never unloaded."""


def compile_ir(text: str, entries: Iterable[str], pipeline: str = VECTORIZED) -> dict[str, int]:
    """The addresses of the functions ``entries`` of a module in LLVM's assembly language.

    The module is optimised for this processor by one of the pipelines; the addresses are valid as long as the process.
    Calls of several threads wait for each other. RuntimeError (of llvmlite) for text that is no module, KeyError for a
    function that it lacks.
    """
    key = digest(pipeline, text)
    entries = list(entries)
    code = kept(key)
    if code is not None:
        try:
            return load(code, entries)
        except (KeyError, RuntimeError):
            was_foreign()
    code = object_code(text, pipeline)
    keep(key, code)
    return load(code, entries)


def object_code(text: str, pipeline: str = VECTORIZED) -> bytes:
    """A module in LLVM's assembly language as object code for this processor. RuntimeError for text that is none."""
    vectorize = pipeline == VECTORIZED
    with _LOCK:
        module = binding.parse_assembly(text)
        module.verify()
        if pipeline == STRAIGHT:
            straight: bytes = _target(1).emit_object(module)
            return straight
        machine = _target()
        options = binding.create_pipeline_tuning_options(speed_level=3 if vectorize else 2)
        options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = vectorize
        passes = binding.create_pass_builder(machine, options)
        passes.getModulePassManager().run(module, passes)
        code: bytes = machine.emit_object(module)
    return code


def load(code: bytes, entries: Iterable[str]) -> dict[str, int]:
    """The addresses of functions of object code, which becomes part of the process. KeyError for one that it lacks.

    The main thread leaves this to another one. An interruption reaches only the main thread, and between two steps of
    llvmlite it leaves objects that have an owner twice, or that are gone: the process ends at one of the next."""
    names, found = list(entries), dict[str, int]()
    errors: list[BaseException] = []

    ended = Lock()

    def run() -> None:
        try:
            found.update(_loaded(code, names))
        except BaseException as error:
            errors.append(error)
        finally:
            ended.release()

    ended.acquire()
    if current_thread() is main_thread():
        # not threading.Thread, whose start fails with an error of its own where it is interrupted
        start_new_thread(run, ())
        ended.acquire()
    else:
        run()
    if errors:
        raise errors[0]
    for entry, place in found.items():
        if not place:
            raise KeyError(entry)
    return found


def _loaded(code: bytes, entries: Iterable[str]) -> dict[str, int]:
    with _LOCK:
        engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _target())
        engine.add_object_file(binding.ObjectFileRef.from_data(code))
        engine.finalize_object()
        _ENGINES.append(engine)
        return {entry: engine.get_function_address(entry) for entry in entries}


def digest(*parts: str) -> str:
    """A name for what depends on these texts, on the processor, and on LLVM."""
    everything = (*_host(), llvmlite.__version__, str(binding.llvm_version_info), *parts)
    return hashlib.sha256("\0".join(everything).encode()).hexdigest()


def kept(key: str) -> bytes | None:
    """What was kept under a name, if it is there and whole."""
    place = folder()
    found = None if place is None else _read(place / f"{key}.o")
    counts["compiled" if found is None else "hits"] += 1
    return found


def is_kept(key: str) -> bool:
    """Whether something is kept under a name, whole or not."""
    place = folder()
    return place is not None and (place / f"{key}.o").is_file()


def was_foreign() -> None:
    """What ``kept`` has just given is not what its name says: it is compiled after all."""
    counts["hits"] -= 1
    counts["compiled"] += 1


def keep(key: str, data: bytes) -> None:
    """Keep something under a name for other processes, where that is possible."""
    place = folder()
    if place is not None:
        _write(place / f"{key}.o", data)


def states(files: Iterable[Path]) -> str:
    """Files as they are now: what is kept for code that they make depends on them."""
    return "\n".join(f"{path} {state.st_size} {state.st_mtime_ns}" for path, state in ((p, p.stat()) for p in files))


_from_buffer = (ctypes.c_char * 0).from_buffer


def writable_address(array: NDArray[Any]) -> int:
    """Where a contiguous array starts that can be written; TypeError, ValueError or BufferError for another one."""
    return ctypes.addressof(_from_buffer(array))  # type: ignore[arg-type]


def address(array: NDArray[Any]) -> int:
    """Where a contiguous array starts; by its buffer if it can be written, which takes a third of the time."""
    try:
        return writable_address(array)
    except (TypeError, ValueError, BufferError):  # those of ml_dtypes have no buffer
        return int(array.ctypes.data)


@lru_cache(maxsize=1)
def _host() -> tuple[str, str, str]:
    """Triple, processor and its features."""
    return (
        binding.get_default_triple(),
        binding.get_host_cpu_name(),
        binding.get_host_cpu_features().flatten(),
    )


def is_x86() -> bool:
    """Whether this processor is of the x86 family."""
    return _host()[0].split("-")[0] in ("x86_64", "amd64", "i386", "i686")


def has_fma() -> bool:
    """Whether this processor multiplies and adds with one rounding; of all processors only old x86 ones do not."""
    return not is_x86() or has_feature("fma")


def has_feature(name: str) -> bool:
    """Whether this processor has a feature, by LLVM's name for it."""
    return f"+{name}" in _host()[2].split(",")


@lru_cache(maxsize=2)
def _target(level: int = 3) -> Any:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    triple, cpu, features = _host()
    return binding.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=level)


# The folder


def folder() -> Path | None:
    """The folder of object files, made where it is missing; None where it cannot be used safely."""
    try:
        base = os.environ.get("XDG_CACHE_HOME", "")
        # the specification of the variable has relative paths ignored
        root = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
        place = root / "tlir" / "objects"
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = place.stat()
    except (OSError, RuntimeError, ValueError):
        return None
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        return None
    return place


def _read(path: Path) -> bytes | None:
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            content = file.read() if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
    except OSError:
        return None
    found, code = content[:32], content[32:]
    return code if _seal(path, code) == found else None


def _without_waiting(path: str, flags: int) -> int:
    """A file opened, a pipe too though nobody writes to it."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _seal(path: Path, code: bytes) -> bytes:
    """What a file of that name begins with: of the code alone it would also fit one that was renamed."""
    return hashlib.sha256(path.name.encode() + b"\0" + code).digest()


def _write(path: Path, code: bytes) -> None:
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
        with os.fdopen(handle, "wb") as file:
            file.write(_seal(path, code) + code)
        os.replace(temporary, path)
        _prune(path.parent)
    except OSError:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)


def _prune(place: Path) -> None:
    files = list(place.iterdir())
    if len(files) <= KEPT_FILES:
        return
    ages = {}
    for file in files:
        with suppress(OSError):
            ages[file] = file.stat().st_mtime
    for file in sorted(ages, key=ages.__getitem__)[: len(files) - KEPT_FILES // 2]:
        with suppress(OSError):
            file.unlink()
