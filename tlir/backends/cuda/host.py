"""The CUDA source built by a host compiler: the same statements, so the same words, without a GPU.

The grid and block loops run one thread after the other, so it is slow and serves as a check of the source. Threads that
wait for each other (barriers, exchanges between the lanes of a warp) have stacks of their own and take turns.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.backends.cpu.device import Call, Executable
from tlir.backends.cuda.function import Source
from tlir.backends.cuda.settling import all_of, marked, settle
from tlir.backends.cuda.source import Code, code, host_header, module, source
from tlir.backends.reference.layout import tail
from tlir.ir.graph import Body
from tlir.ir.tensor import Tensor
from tlir.ir.types import DType
from tlir.kernel.ir import Kernel, Launch

FLAGS = (
    "-Og",
    "-std=c++17",
    "-ffp-contract=off",
    "-fno-fast-math",
    "-fno-strict-aliasing",
    "-U_FORTIFY_SOURCE",
    "-fPIC",
    "-shared",
    "-w",
)
"""No contraction: every operation of the source is one rounding. Jumps between stacks are what a fortified library
takes for a mistake."""

GRID = 3
"""Blocks of a launch: with more work than that every block takes several turns."""


KEPT_SECONDS = 7 * 24 * 3600
"""How long a library is kept that is not used."""

KEPT_BYTES = 128 << 20
"""Libraries that are kept, unless they were used just now."""

RECENT_SECONDS = 600


class BarrierError(RuntimeError):
    """Threads of a block wait for others that never come to the same barrier."""


@dataclass(frozen=True)
class HostKernel:
    source: Source
    function: Any

    def run(self, arrays: Sequence[NDArray[Any]], descending: bool = False) -> int:
        """Runs the launch on contiguous arrays of words, the threads of a block in one order or the other. The number
        of iterations that it has left open, which the specification has settled."""
        blocks = self.source.blocks(GRID)
        undecided = np.zeros(self.source.marks, np.uint32)
        before = {number: arrays[number].copy() for number in self.source.in_place}
        scratch = np.empty(self.source.scratch_bytes(blocks) + 16, np.uint8)
        pointers = [undecided.ctypes.data, scratch.ctypes.data + -scratch.ctypes.data % 16]
        pointers += [array.ctypes.data for array in arrays]
        if not self.function(blocks, self.source.threads, descending, self.source.total, *pointers):
            raise BarrierError(self.source.name)
        if not undecided[0]:
            return 0
        kernel = self.source.kernel
        for number, array in before.items():
            arrays[number][...] = array
        iterations = all_of(kernel) if before else marked(undecided)
        outer = [buffer for buffer in kernel.buffers if buffer.role != "local"]
        memory = {b: a.reshape((b.size, *tail(b.dtype))) for b, a in zip(outer, arrays, strict=True)}
        settle(kernel, memory, iterations)
        return len(iterations)


def build(sources: Sequence[Source], compiler: str = "g++") -> dict[str, HostKernel]:
    """The kernels as functions of this process, by name. CalledProcessError where the compiler refuses the source."""
    kernels = {kernel.name: kernel for kernel in sources}
    text = "\n".join([host_header(), module(kernels.values()), *map(_driver, kernels.values())])
    folder = Path(tempfile.gettempdir()) / f"tlir-host-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user")
    library = folder / (hashlib.sha256(" ".join((compiler, *FLAGS, text)).encode()).hexdigest() + ".so")
    if library.exists():
        os.utime(library)
    else:
        prune(folder)
        with tempfile.TemporaryDirectory(dir=folder) as place:
            file, output = Path(place) / "kernels.cpp", Path(place) / "kernels.so"
            file.write_text(text, encoding="utf-8")
            subprocess.run([compiler, *FLAGS, str(file), "-o", str(output)], check=True, capture_output=True, text=True)
            os.replace(output, library)
    loaded = ctypes.CDLL(str(library))
    return {name: HostKernel(kernel, _function(loaded, kernel)) for name, kernel in kernels.items()}


def prune(folder: Path) -> None:
    """Removes what was not used for ``KEPT_SECONDS``, and what was used the longest ago where it is more than
    ``KEPT_BYTES``, but nothing that another process may be about to load."""
    now, found = time.time(), []
    for path in folder.iterdir():
        with suppress(FileNotFoundError):
            status = path.stat()
            found.append((status.st_mtime, status.st_size, path))
    kept = 0
    for used, size, path in sorted(found, reverse=True):
        kept += size
        if now - used > (KEPT_SECONDS if kept <= KEPT_BYTES else RECENT_SECONDS):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _function(library: ctypes.CDLL, kernel: Source) -> Any:
    function = getattr(library, f"launch_{kernel.name}")
    numbers = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_bool, ctypes.c_uint64]
    function.argtypes = numbers + [ctypes.c_void_p] * (len(kernel.parameters) - 1)
    function.restype = ctypes.c_bool
    return function


def _driver(kernel: Source) -> str:
    """A loop over blocks and threads around the kernel's function; false where threads wait for ever."""
    name, parameters = kernel.name, [parameter.rsplit(" ", 1) for parameter in kernel.parameters]
    fields = " ".join(f"{kind.removesuffix('__restrict__')} {own};" for kind, own in parameters)
    arguments = ", ".join(f"arguments_{name}.{own}" for _, own in parameters)
    if kernel.barriers:
        threads = "    if (!tl_run_block((unsigned)size, descending)) return false;\n"
    else:
        threads = (
            "    for (unsigned thread = 0; thread < size; ++thread) {\n"
            "      threadIdx = {descending ? (unsigned)size - 1 - thread : thread, 0, 0};\n"
            "      tl_body();\n    }\n"
        )
    return (
        f"static struct {{ {fields} }} arguments_{name};\n"
        f"static void body_{name}() {{ {name}({arguments}); }}\n"
        f'extern "C" bool launch_{name}(uint64_t blocks, uint64_t size, bool descending, '
        f"{', '.join(kernel.parameters)}) {{\n"
        f"  arguments_{name} = {{{', '.join(own for _, own in parameters)}}};\n"
        f"  tl_body = body_{name};\n"
        "  gridDim = {(unsigned)blocks, 1, 1}; blockDim = {(unsigned)size, 1, 1};\n"
        "  for (unsigned block = 0; block < blocks; ++block) {\n"
        "    blockIdx = {block, 0, 0};\n"
        f"{threads}"
        "  }\n  return true;\n}\n"
    )


@dataclass(frozen=True)
class HostCode:
    """The functions of a launch in order, with the numbers of their arguments, and the arrays between them."""

    kernels: tuple[tuple[HostKernel, tuple[int, ...]], ...]
    between: tuple[tuple[DType, int], ...]


class HostExecutable(Executable):
    """A body run by the host build of its CUDA source, or of what ``make`` makes of its kernels, the threads of a block
    in one order or the other. ``built`` has functions that were built before, with those of other bodies. ``settled``
    counts the iterations that functions have left open in the last run."""

    def __init__(
        self,
        body: Body,
        descending: bool = False,
        make: Callable[[Kernel], Source | str] = source,
        built: Mapping[str, HostKernel] | None = None,
    ) -> None:
        super().__init__(body)
        self.descending = descending
        self.settled = 0
        self._codes = {id(s.kernel): code(s.kernel, make) for s in self.program.steps if isinstance(s, Launch)}
        found = [one for one in self._codes.values() if isinstance(one, Code)]
        self._built = build([one for made in found for one, _ in made.sources]) if built is None else built

    def run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        self.settled = 0
        return super().run(inputs)

    def compile(self, kernel: Kernel) -> HostCode | str:
        made = self._codes[id(kernel)]
        if isinstance(made, str):
            return made
        # a function may serve kernels that differ in how often it runs
        kernels = [(HostKernel(one, self._built[one.name].function), numbers) for one, numbers in made.sources]
        return HostCode(tuple(kernels), made.between)

    def execute(self, call: Call, arrays: Sequence[NDArray[Any]]) -> None:
        between = [np.empty(size * dtype.limbs, dtype.word_dtype) for dtype, size in call.compiled.between]
        # a GPU's arrays are aligned to more than 16 bytes, those that come from files are not
        everything = [array if array.ctypes.data % 16 == 0 else array.copy() for array in (*arrays, *between)]
        for kernel, numbers in call.compiled.kernels:
            if kernel.source.total:
                self.settled += kernel.run([everything[number] for number in numbers], self.descending)
