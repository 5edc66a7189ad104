"""A kernel as a CUDA C++ function, one thread for an iteration of its space.

The function is ``name(total, undecided, scratch, buffers…)``. Threads stride over the space by the size of the grid.
``undecided`` is a counter of elementary functions whose rounding no bound decided: where it is not 0 after the launch,
its results are not to be used. ``scratch`` has the local buffers of every thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from math import prod
from typing import Any

from tlir.backends.cpu import elementary
from tlir.backends.cpu.lanes import I64, LaneMachine
from tlir.backends.cpu.memory import Addresses
from tlir.backends.cpu.nest import Emitter, Ends, unsupported
from tlir.backends.cpu.space import Nest
from tlir.backends.cpu.tile import counted_out
from tlir.backends.cpu.values import FLOAT32, Item, Lanes, word_type
from tlir.backends.cuda.builder import Builder, Text, expression, type_name
from tlir.floatlib.elementary.double import functions as elementary_double
from tlir.floatlib.elementary.double import loop as elementary_double_loop
from tlir.floatlib.soft.machine import Real, Word
from tlir.ir.graph import Graph
from tlir.ir.types import DType
from tlir.kernel.index import Variable
from tlir.kernel.ir import Branch, Buffer, Kernel, Launch
from tlir.kernel.joining import join_variables
from tlir.passes.lower import lower

BLOCK = 256
"""Threads of a block."""


@dataclass(frozen=True)
class Source:
    """A kernel's C++ without the prelude, the definitions of its tables by name, the name of its function and its
    parameters, the iterations of its space, and the bytes of local buffers that each thread needs."""

    text: str
    tables: Mapping[str, str]
    name: str
    parameters: tuple[str, ...]
    total: int
    scratch: int


class CudaMachine(LaneMachine):
    """The machine of the software kernels, in C++."""

    def __init__(self, builder: Builder, bits: int, lanes: int) -> None:
        super().__init__(builder, bits, lanes)
        self.has_fma = True

    def multiply_wide(self, x: Word, y: Word) -> tuple[Word, Word]:
        if self.bits == 32:
            return super().multiply_wide(x, y)
        return self.multiply(x, y), self.builder.define(self.type, f"tl_high_product({expression(x)}, {expression(y)})")

    def _funnel(self, name: str, high: Word, low: Word, count: Word) -> Word:
        return self.builder.intrinsic(name, self.type, [high, low, count])

    def leading_zeros(self, x: Word) -> Word:
        return self.builder.intrinsic("llvm.ctlz", self.type, [x])

    def _real_call(self, name: str, *arguments: Real) -> Real:
        return self.builder.intrinsic(name, self.real, list(arguments))

    def table(self, values: tuple[float, ...] | tuple[int, ...], index: Word) -> Real | Word:
        element = self.real if isinstance(values[0], float) else self.element
        return self.builder.table(values, index, element)


class CudaLanes(Lanes):
    def __init__(self, builder: Builder) -> None:
        super().__init__(builder, 1, CudaMachine)
        self.settle = self._settle

    def call(self, name: str, result: Any, *arguments: Any) -> Any:
        return self.builder.intrinsic(name, result, list(arguments))

    def _settle(self, op: str, dtype: DType, items: tuple[Item, ...], word: Any, left: Any) -> Item:
        """Evaluates once more, by a kernel of double-double numbers, where there is one for the format."""
        b = self.builder
        result = b.variable(word.type, expression(word))
        with b.if_then(left), self.scope():
            kernel = _wider(op, dtype)
            if kernel is None:
                b.line("atomicOr(undecided, 1u);")
            else:
                machine = self.machine(kernel.bits)
                found = kernel(machine, *(self.uint(item, kernel.bits) for item in items))
                mark = machine.and_(found.flags, machine.constant(elementary.UNDECIDED))
                with b.if_then(b.not_(machine.equal(mark, machine.constant(0)))):
                    b.line("atomicOr(undecided, 1u);")
                b.assign(result, self.bits(self.from_uint(dtype, found.word)))
        return self.word(dtype, result)


def _wider(op: str, dtype: DType) -> Any:
    if dtype.float_format == FLOAT32 and op in elementary_double.NAMES:
        return elementary_double_loop.loop(op, FLOAT32)
    return None


class CudaAddresses(Addresses):
    def _load_scalar(self, start: Any, dtype: DType, scalar: Any, mask: Any, rest: Item | None) -> Item:
        if mask is None:
            return super()._load_scalar(start, dtype, scalar, None, None)
        b, limbs = self.builder, dtype.limbs
        assert rest is not None
        kind = word_type(dtype)
        words = [b.zext(word, kind) if dtype.is_bool else word for word in self.lanes.limbs(rest)]
        merged = [b.variable(kind, expression(word)) for word in words]
        with b.if_then(mask):
            for k, variable in enumerate(merged):
                b.assign(variable, b.load(self._element(start, scalar, limbs, k)))
        return self._item(dtype, list(merged), self.lanes)


class CudaEmitter(Emitter):
    """Emits a kernel's statements as C++, with loops and branches as such."""

    def _lanes(self, count: int) -> Lanes:
        lanes: Lanes = self.__dict__.setdefault("_one", CudaLanes(self.builder))
        return lanes

    def _addresses(self) -> Addresses:
        return CudaAddresses(self.wide, None, self._for_index)

    def _branch(self, statement: Branch) -> None:
        b = self.builder
        arms = ((statement.then, "if"), (statement.otherwise, "else"))
        results: list[list[Text]] = []
        for result in statement.results:
            dummy = self._parts(result, self.narrow.literal(result.dtype, 0))
            results.append([b.variable(part.type, expression(part)) for part in dummy])
        condition = expression(self.narrow.bits(self.items[statement.condition.number]))
        for block, word in arms:
            with b.braces(f"if ({condition})" if word == "if" else "else"), self.narrow.scope():
                self.block(block)
                for result, value, variables in zip(statement.results, block.results, results, strict=True):
                    for variable, part in zip(variables, self._parts(result, self.item(value)), strict=True):
                        b.assign(variable, part)
        for result, variables in zip(statement.results, results, strict=True):
            self.items[result.number] = self._from_parts(result, list(variables))

    @contextmanager
    def _steps(
        self, variable: Variable, first: Any, count: int, starts: list[list[Any]]
    ) -> Iterator[tuple[list[list[Any]], Ends]]:
        b, loop = self.builder, Ends(starts)
        if count == 1:
            self.addresses.counters[variable] = first
            yield starts, loop
            return
        carried = [[b.variable(part.type, expression(part)) for part in parts] for parts in starts]
        counter = b.name()
        with b.braces(f"for (uint64_t {counter} = 0; {counter} < {count}ull; ++{counter})"), self.narrow.scope():
            self.addresses.counters[variable] = b.add(first, Text(I64, counter))
            # inside a step the carried values keep their old values until its end
            current = [[b.define(part.type, expression(part)) for part in parts] for parts in carried]
            yield current, loop
            ends = [[b.define(part.type, expression(part)) for part in parts] for parts in loop.ends]
            for variables, parts in zip(carried, ends, strict=True):
                for carried_one, part in zip(variables, parts, strict=True):
                    b.assign(carried_one, part)
        loop.ends = [list(variables) for variables in carried]


def source(kernel: Kernel) -> Source | str:
    """The kernel's C++, or why it has none."""
    kernel = join_variables(kernel)
    nest = Nest(kernel, kernel.space, None, 1)
    reason = unsupported(nest)
    if reason is not None:
        return reason
    builder = Builder()
    starts: dict[Buffer, Any] = {}
    parameters = ["uint64_t total", "uint32_t* undecided", "uint8_t* scratch"]
    written = {buffer for buffer in kernel.buffers if buffer.role == "output"}
    for number, buffer in enumerate(b for b in kernel.buffers if b.role != "local"):
        kind = word_type(buffer.dtype)
        constant = "" if buffer in written else "const "
        parameters.append(f"{constant}{type_name(kind)}* __restrict__ b{number}")
        starts[buffer] = Text(kind.as_pointer(), f"b{number}")
    used = _locals(builder, kernel, starts)
    total = prod(v.extent for v in kernel.space)
    with builder.braces("for (uint64_t at = thread; at < total; at += threads)"):
        emitter = CudaEmitter(builder, nest, starts)
        emitter.addresses.counters |= counted_out(builder, kernel.space, Text(I64, "at"))
        emitter.block(kernel.body)
    head = [
        "  const uint64_t thread = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;",
        "  const uint64_t threads = (uint64_t)gridDim.x * blockDim.x;",
    ]
    lines = [f"({', '.join(parameters)}) {{", *head, *builder.lines, "}", ""]
    body = "\n".join(lines)
    label = "".join(c if c.isalnum() else "_" for c in kernel.name)
    name = f"{label}_{sha256(body.encode()).hexdigest()[:12]}"
    text = f'extern "C" __global__ void {name}{body}'
    return Source(text, builder.tables, name, tuple(parameters), total, used)


def _locals(builder: Builder, kernel: Kernel, starts: dict[Buffer, Any]) -> int:
    """Pointers to the thread's local buffers; their bytes in all."""
    used, places = 0, []
    for buffer in kernel.buffers:
        if buffer.role == "local":
            kind = word_type(buffer.dtype)
            places.append((buffer, kind, used))
            used += -(-buffer.size * buffer.dtype.limbs * kind.width // 8 // 16) * 16
    for number, (buffer, kind, place) in enumerate(places):
        builder.line(f"{type_name(kind)}* l{number} = ({type_name(kind)}*)(scratch + thread * {used}ull + {place}ull);")
        starts[buffer] = Text(kind.as_pointer(), f"l{number}")
    return used


def cuda_text(graph: Graph) -> str:
    """The translation unit of a graph's kernels, with a comment for each that has no source."""
    made = [source(step.kernel) for step in lower(graph.body).steps if isinstance(step, Launch)]
    reasons = [f"// {one}" for one in made if isinstance(one, str)]
    return "\n".join([*reasons, module(one for one in made if isinstance(one, Source))])


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
