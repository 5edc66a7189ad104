"""What all generated functions have in common: their parameters, local buffers, and how they are launched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from tlir.backends.cpu.values import word_type
from tlir.backends.cuda.builder import Builder, Text, type_name
from tlir.backends.cuda.settling import in_place, marks
from tlir.kernel.ir import Buffer, Kernel

BLOCK = 256
"""Threads of a block."""

SHARED_BYTES = 48 << 10
"""Shared memory that every GPU gives a block without being asked."""

SCRATCH_BYTES = 256 << 20
"""Scratch memory that a launch takes at most, if one block needs no more: it has fewer blocks instead."""

THREAD = (
    "  const uint64_t thread = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;",
    "  const uint64_t threads = (uint64_t)gridDim.x * blockDim.x;",
)
"""The thread's number in the grid, and how many there are."""


@dataclass(frozen=True)
class Source:
    """A kernel's C++ without the prelude, the definitions of its tables by name, the name of its function and its
    parameters; ``total`` units of work, of which a block takes ``unit`` at a time; the threads that a block has; the
    bytes of scratch memory for each unit that a block takes; and whether threads wait for each other. ``kernel`` is the
    one whose iterations the function marks where it leaves a rounding open."""

    kernel: Kernel
    text: str
    tables: Mapping[str, str]
    name: str
    parameters: tuple[str, ...]
    total: int
    unit: int
    threads: int
    scratch: int
    barriers: bool

    def blocks(self, most: int) -> int:
        """The blocks of a grid of at most ``most``, whose scratch memory is not too much."""
        fitting = SCRATCH_BYTES // (self.scratch * self.unit) if self.scratch else most
        return max(1, min(-(-self.total // self.unit), most, fitting))

    def scratch_bytes(self, blocks: int) -> int:
        return self.scratch * self.unit * blocks

    @property
    def may_leave_open(self) -> bool:
        """Whether ``undecided`` can be marked."""
        return "tl_leave_open(" in self.text

    @property
    def marks(self) -> int:
        """The words of ``undecided``."""
        return marks(self.kernel) if self.may_leave_open else 1

    @property
    def in_place(self) -> tuple[int, ...]:
        """The arrays that have to be kept from before the launch, for what it leaves open."""
        return in_place(self.kernel) if self.may_leave_open else ()


def pointers(kernel: Kernel) -> dict[Buffer, Any]:
    """The parameters that point to the buffers that are not local."""
    buffers = [buffer for buffer in kernel.buffers if buffer.role != "local"]
    return {buffer: Text(word_type(buffer.dtype).as_pointer(), f"b{k}") for k, buffer in enumerate(buffers)}


def local_places(kernel: Kernel) -> tuple[dict[Buffer, int], int]:
    """Where each local buffer starts among those of one iteration, in bytes, and the bytes of all."""
    used, places = 0, {}
    for buffer in kernel.buffers:
        if buffer.role == "local":
            places[buffer] = used
            used += -(-buffer.size * buffer.dtype.limbs * word_type(buffer.dtype).width // 8 // 16) * 16
    return places, used


def spread_locals(builder: Builder, kernel: Kernel, starts: dict[Buffer, Any]) -> tuple[frozenset[Buffer], int]:
    """Pointers to the thread's local buffers, whose elements lie ``threads`` apart, so that neighbouring threads touch
    neighbouring memory; the buffers, and the bytes of a thread."""
    places, used = local_places(kernel)
    for number, (buffer, place) in enumerate(places.items()):
        kind = type_name(word_type(buffer.dtype))
        limbs = f"thread * {buffer.dtype.limbs}ull"
        builder.line(f"{kind}* l{number} = ({kind}*)(scratch + threads * {place}ull) + {limbs};")
        starts[buffer] = Text(word_type(buffer.dtype).as_pointer(), f"l{number}")
    return frozenset(places), used


def assembled(
    kernel: Kernel,
    lines: Sequence[str],
    tables: Mapping[str, str],
    total: int,
    *,
    unit: int,
    threads: int = BLOCK,
    scratch: int = 0,
    barriers: bool = False,
    resident: int = 1,
) -> Source:
    """The function of a kernel whose body are ``lines``, named by its content; ``resident`` blocks are to share a
    processor's registers."""
    parameters = ["uint64_t total", "uint32_t* undecided", "uint8_t* scratch"]
    for number, buffer in enumerate(b for b in kernel.buffers if b.role != "local"):
        constant = "" if buffer.role == "output" else "const "
        parameters.append(f"{constant}{type_name(word_type(buffer.dtype))}* __restrict__ b{number}")
    body = "\n".join([f"({', '.join(parameters)}) {{", *lines, "}", ""])
    label = "".join(c if c.isalnum() else "_" for c in kernel.name)
    name = f"{label}_{sha256(body.encode()).hexdigest()[:12]}"
    bounds = f"__launch_bounds__({threads}, {resident})"
    text = f'extern "C" __global__ void {bounds} {name}{body}'
    return Source(kernel, text, tables, name, tuple(parameters), total, unit, threads, scratch, barriers)
