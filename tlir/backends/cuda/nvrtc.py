"""CUDA source to PTX or machine code by NVIDIA's runtime compiler, which needs no driver and no GPU.

The library is the one of the package ``nvidia-cuda-nvrtc``, or what the system's loader finds.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
"""A100, H100 and B200."""

FLAGS = ("--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true", "--disable-warnings")
"""Nothing is contracted, subnormal numbers are kept, and division and square root round once."""


class CompileError(RuntimeError):
    """NVRTC refused the source; the text is its log."""


@lru_cache(maxsize=1)
def library() -> Any | None:
    """The library, or None where it is not installed."""
    places: list[str] = []
    package = find_spec("nvidia")
    for folder in package.submodule_search_locations or () if package else ():
        # the cu13 wheels share one folder, the cu12 ones have one each
        found = sorted(Path(folder).glob("*/lib/libnvrtc.so.*"), key=lambda path: path.name)
        places += [str(path) for path in found if "alt" not in path.name]
    system = ctypes.util.find_library("nvrtc")
    for place in [*places, *([system] if system else [])]:
        try:
            return ctypes.CDLL(place)
        except OSError:
            continue
    return None


def version() -> tuple[int, int]:
    """The library's version. RuntimeError where there is none."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _require(_present().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return major.value, minor.value


def supported() -> tuple[int, ...]:
    """The architectures that the library makes code for, such as 90. RuntimeError where there is none."""
    nvrtc, count = _present(), ctypes.c_int()
    _require(nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count)))
    numbers = (ctypes.c_int * count.value)()
    _require(nvrtc.nvrtcGetSupportedArchs(numbers))
    return tuple(numbers)


def to_ptx(text: str, architecture: str) -> str:
    """The PTX of a translation unit. CompileError with the log where it does not compile; RuntimeError where there is
    no NVRTC."""
    return _compiled(text, architecture.replace("sm_", "compute_"), "PTX").rstrip(b"\0").decode()


def to_cubin(text: str, architecture: str) -> bytes:
    """The machine code of a translation unit for one architecture (``sm_90``). Errors as in ``to_ptx``."""
    return _compiled(text, architecture, "CUBIN")


def code(text: str, capability: int) -> bytes:
    """What a GPU of a compute capability (90 for 9.0) loads: its machine code, or where the library does not know it
    yet, PTX for the newest architecture before it, which the driver compiles."""
    known = supported()
    if capability in known:
        return to_cubin(text, f"sm_{capability}")
    before = max((number for number in known if number < capability), default=min(known))
    return to_ptx(text, f"sm_{before}").encode() + b"\0"


def _present() -> Any:
    nvrtc = library()
    if nvrtc is None:
        raise RuntimeError("NVRTC is not installed: pip install nvidia-cuda-nvrtc")
    return nvrtc


def _compiled(text: str, architecture: str, kind: str) -> bytes:
    nvrtc, program = _present(), ctypes.c_void_p()
    _require(nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernels.cu", 0, None, None))
    try:
        options = [*FLAGS, f"--gpu-architecture={architecture}"]
        array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        failed = nvrtc.nvrtcCompileProgram(program, len(options), array)
        if failed:
            log = _bytes(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
            raise CompileError(log.rstrip(b"\0").decode(errors="replace"))
        return _bytes(getattr(nvrtc, f"nvrtcGet{kind}Size"), getattr(nvrtc, f"nvrtcGet{kind}"), program)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _require(code: int) -> None:
    if code:
        raise RuntimeError(f"NVRTC failed with code {code}")


def _bytes(size_of: Any, read: Any, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    _require(size_of(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _require(read(program, buffer))
    return buffer.raw
