"""A kernel as a CUDA C++ function.

The function is ``name(total, undecided, scratch, buffers…)``. In ``undecided`` it marks the iterations in which no
bound decides the rounding of an elementary function (``settling``). ``scratch`` has local buffers. Blocks stride over
``total`` units of work by the size of the grid, whatever it is. What a unit is depends on the kernel's form: a tile of
a sum of products (``tiles``), a row whose loops are shared by a warp or a block (``groups``), the row of a thread in a
warp that reads its rows together (``turned``), a few neighbouring elements (``wide``), and otherwise one iteration of
the kernel's space for a thread. A kernel of few long rows is several functions, launched one after the other
(``stages``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import prod

from tlir.backends.cpu.nest import unsupported
from tlir.backends.cpu.space import Nest
from tlir.backends.cuda import groups, tiles, turned, wide
from tlir.backends.cuda.builder import Builder, Text
from tlir.backends.cuda.emitter import counted, emitter_of
from tlir.backends.cuda.function import BLOCK, THREAD, Source, assembled, pointers, spread_locals
from tlir.backends.cuda.stages import staged
from tlir.floatlib.exclusive import exclusive
from tlir.floatlib.soft.lanes import I64
from tlir.ir.graph import Graph
from tlir.ir.types import DType
from tlir.kernel.ir import Kernel, Launch
from tlir.kernel.joining import join_variables
from tlir.kernel.patterns import as_contraction
from tlir.passes.lower import lower


@exclusive
def source(kernel: Kernel) -> Source | str:
    """The kernel's C++, or why it has none."""
    total = prod(v.extent for v in kernel.space)
    kernel = join_variables(kernel)
    reason = refusal(kernel)
    if reason is not None:
        return reason
    contraction = as_contraction(kernel) if total else None
    if contraction is not None and tiles.suits(contraction):
        return tiles.tiled(contraction)
    if total and turned.suits(kernel):
        return turned.turned(kernel, total)
    size = groups.group_size(kernel) if total else None
    if size is not None:
        shared = groups.grouped(kernel, total, size)
        if shared is not None:
            return shared
    alone = plain(kernel, total)
    width = wide.width_of(kernel) if total >= wide.ENOUGH and alone.text.count("\n") <= wide.LONGEST else None
    return alone if width is None else wide.wide(kernel, width)


def refusal(kernel: Kernel) -> str | None:
    """Why a kernel has no source, or None."""
    return unsupported(Nest(kernel, kernel.space, None, 1))


def plain(kernel: Kernel, total: int) -> Source:
    """One iteration of the space for a thread."""
    builder, starts = Builder(), pointers(kernel)
    spread, used = spread_locals(builder, kernel, starts)
    with builder.braces("for (uint64_t at = thread; at < total; at += threads)"):
        emitter = emitter_of(builder, kernel, starts)
        emitter.spread = spread
        emitter.within(counted(builder, kernel.space, Text(I64, "at")))
        emitter.block(kernel.body)
    return assembled(kernel, [*THREAD, *builder.lines], builder.tables, total, unit=BLOCK, scratch=used)


@dataclass(frozen=True)
class Code:
    """A launch's sources in order, each with the numbers of its arguments: those of the launch, then of ``between``,
    which are arrays that exist while it runs, each of so many elements of a dtype."""

    sources: tuple[tuple[Source, tuple[int, ...]], ...]
    between: tuple[tuple[DType, int], ...]


def code(kernel: Kernel, make: Callable[[Kernel], Source | str] = source) -> Code | str:
    """What a launch of the kernel runs, or why it has no source."""
    found = staged(kernel)
    made: list[tuple[Source, tuple[int, ...]]] = []
    for stage in found.stages:
        one = make(stage.kernel)
        if isinstance(one, str):
            return one
        made.append((one, stage.arguments))
    return Code(tuple(made), found.temporaries)


def cuda_text(graph: Graph) -> str:
    """The translation unit of a graph's kernels, with a comment for each that has no source."""
    made = [code(step.kernel) for step in lower(graph.body).steps if isinstance(step, Launch)]
    reasons = [f"// {one}" for one in made if isinstance(one, str)]
    return "\n".join([*reasons, module(one for found in made if isinstance(found, Code) for one, _ in found.sources)])


@cache
def prelude() -> str:
    """The functions that every source uses."""
    return files("tlir.backends.cuda").joinpath("prelude.h").read_text(encoding="utf-8")


@cache
def host_header() -> str:
    """CUDA's built-ins for a host compiler."""
    return files("tlir.backends.cuda").joinpath("host.h").read_text(encoding="utf-8")


def module(sources: Iterable[Source]) -> str:
    """One translation unit of several kernels, each once."""
    kernels = {source.name: source for source in sources}
    tables = {name: text for source in kernels.values() for name, text in source.tables.items()}
    return "\n".join([prelude(), *tables.values(), *(source.text for source in kernels.values())])
