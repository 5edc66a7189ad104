"""How a kernel's iterations become loops: which variables are joined, and which one the lanes run along."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tlir.floatlib.format import FORMATS
from tlir.floatlib.soft.big import FROM_BITS
from tlir.ir.ops import OPERATIONS
from tlir.kernel.cutting import reads_outputs, works_in_place
from tlir.kernel.index import FromValue, Index, Quotient, Remainder, Variable
from tlir.kernel.ir import Apply, Each, Kernel, Literal, Load, Loop, Statement, Store, Value, results_of
from tlir.kernel.joining import indices, join_variables

VECTOR_BYTES = 64
"""Bytes of the widest registers that are assumed; narrower processors take several registers for a value."""

MAX_LANES = 256

FEWEST, WAITING = 8, 4
"""Independent iterations from which lanes are worth their code, and how many registers go side by side through an
ordered loop in them."""

MOST_LOCAL = 1 << 18
"""Bytes of local buffers of a block of lanes up to which they stay in the processor's caches."""

_NATIVE = tuple(FORMATS[name] for name in ("float16", "bfloat16", "float32", "float64"))

QUICK = frozenset(("add", "subtract", "multiply", "fma", "maximum", "minimum", "negate", "abs"))
"""Operations of a few cycles."""


@dataclass(frozen=True)
class Nest:
    """A kernel with its variables joined: ``outer`` ones are counted through by one loop, ``lane`` is the innermost,
    taken ``lanes`` at a time; None where there is nothing to run along."""

    kernel: Kernel
    outer: tuple[Variable, ...]
    lane: Variable | None
    lanes: int

    @property
    def outer_count(self) -> int:
        return prod(v.extent for v in self.outer)

    @property
    def lane_count(self) -> int:
        return 1 if self.lane is None else self.lane.extent


def arrange(kernel: Kernel) -> Nest:
    """The loops of a kernel."""
    kernel = join_variables(kernel)
    space = tuple(v for v in kernel.space if v.extent > 1)
    lane = min(space, key=lambda v: (_cost(kernel, v), -v.number), default=None)
    outer = tuple(v for v in space if v != lane)
    nest = Nest(kernel, outer, lane, 1 if lane is None else lanes_along(kernel, lane))
    return Nest(kernel, space, None, 1) if _one_by_one(nest) else nest


def _one_by_one(nest: Nest) -> bool:
    """Whether iterations are better done one after the other, with lanes along what is independent in each: where
    blocks are small, or their local buffers do not stay in the processor's caches."""
    if nest.lane is None or not works_in_place(nest.kernel):
        return False
    inside = any(isinstance(s, Each) and independent_lanes(s) for s in nest.kernel.body.walk())
    local = [b for b in nest.kernel.buffers if b.role == "local"]
    size = sum(b.size * b.dtype.limbs * b.dtype.word_dtype.itemsize for b in local)
    return inside and (nest.lanes < FEWEST or nest.lanes * size > MOST_LOCAL)


def independent_lanes(each: Each) -> int:
    """The lanes that run along an ``each`` of a kernel without lanes; 0 where they gain nothing: numbers that are
    computed in software, and memory that is not read and written along the iterations."""
    variable, statements = each.variables[-1], list(each.body.walk())
    values = [v for s in statements for v in _made(s)]
    if variable.extent < FEWEST or any(v.dtype.is_complex for v in values):
        return 0
    if any(v.dtype.is_float and v.dtype.float_format not in _NATIVE for v in values):
        return 0
    inside, accesses = set(values), [s for s in statements if isinstance(s, Load | Store)]
    if any(_stride(s.offset, variable, inside) == 0 for s in accesses if isinstance(s, Store)):
        return 0
    strides = [_stride(s.offset, variable, inside) for s in accesses]
    if strides.count(1) < sum(stride not in (0, 1) for stride in strides):
        return 0
    width = max([32, *(s.buffer.dtype.bits for s in accesses)])
    lanes = max(FEWEST, VECTOR_BYTES * 8 // width)
    if any(isinstance(s, Loop) for s in statements):
        lanes *= WAITING
    while lanes > variable.extent:
        lanes //= 2
    return lanes


def _made(statement: Statement) -> Iterator[Value]:
    yield from results_of(statement)
    if isinstance(statement, Loop):
        yield from statement.parameters


def _stride(index: Index, variable: Variable, inside: set[Value]) -> int | None:
    """How far apart in memory neighbouring iterations are; None where that is not the same everywhere."""
    for _, atom in index.terms:
        if isinstance(atom, FromValue) and atom.value in inside:
            return None
        if isinstance(atom, Quotient | Remainder):
            own = atom.dividend
            if variable in own.variables() or inside & set(own.values()):
                return None
    return index.coefficient(variable)


def _cost(kernel: Kernel, lane: Variable) -> float:
    """What the accesses cost when lanes run along a variable; where it is short, most lanes are wasted."""
    cost = 0.0
    for statement in kernel.body.walk():
        if isinstance(statement, Load | Store) and statement.buffer.role != "local":
            cost += _access(statement.offset, lane) * (2 if isinstance(statement, Store) else 1)
    return cost * (1 + 16 / lane.extent)


def _access(offset: Index, lane: Variable) -> float:
    stride = offset.coefficient(lane)
    hidden = any(
        isinstance(atom, FromValue) or (isinstance(atom, Quotient | Remainder) and lane in atom.dividend.variables())
        for _, atom in offset.terms
    )
    if hidden:
        return 12
    if stride == 0:
        return 0.5
    # lanes share cache lines where they are close together
    return min(1 + 7 * (abs(stride) - 1) / 15, 8)


def lanes_along(kernel: Kernel, lane: Variable) -> int:
    """As many lanes as the widest register holds of the narrowest words that the kernel works with; more where steps
    wait for each other, in ordered loops and in the polynomials of elementary functions."""
    # words of 36 bits are as wide in memory as those of 64
    widths = [1 << (buffer.dtype.bits - 1).bit_length() for buffer in kernel.buffers if not buffer.dtype.is_bool] or [8]
    if max(widths) >= FROM_BITS:
        return 1
    lanes = max(8, VECTOR_BYTES * 8 // max(max(widths), 32))
    statements = list(kernel.body.walk())
    waits = any(isinstance(s, Loop) for s in statements) and len(statements) <= 24
    waits = waits or any(isinstance(s, Apply) and OPERATIONS[s.op].family == "elementary" for s in statements)
    if waits and max(widths) <= 64 and lane.extent >= 4 * lanes and not _strided(kernel, lane):
        lanes *= _side_by_side(kernel) if lane.extent >= 64 * lanes else 4
    lanes = min(lanes, MAX_LANES)
    if reads_outputs(kernel):
        # every iteration may run only once, so blocks must not overlap
        while lane.extent % lanes:
            lanes //= 2
        return lanes
    while lanes > lane.extent:
        lanes //= 2
    return lanes


def _side_by_side(kernel: Kernel) -> int:
    """How many registers go through ordered loops side by side. Where a loop does nothing but a little of the
    processor's arithmetic the next step waits for every result, and registers are free for 8; for 16 where all that
    lives in a step is one value."""
    loops = [s for s in kernel.body.walk() if isinstance(s, Loop)]
    inside = [s for loop in loops for s in loop.body.statements]
    if not loops or any(len(loop.parameters) > 2 for loop in loops) or len(inside) > 8:
        return 4
    if any(isinstance(s, Apply) and s.op not in QUICK for s in kernel.body.walk()):
        return 4
    if not all(isinstance(s, Literal | Apply) for s in inside):
        return 4
    literals = {s.result for s in kernel.body.walk() if isinstance(s, Literal)}
    living = [len(set(s.operands) - literals) for s in inside if isinstance(s, Apply)]
    return 16 if max(living, default=0) <= 1 and all(len(loop.parameters) == 1 for loop in loops) else 8


def _strided(kernel: Kernel, lane: Variable) -> bool:
    return any(index.coefficient(lane) not in (0, 1) for index in indices(kernel.body))


def crosses_memory(nest: Nest) -> bool:
    """Whether lanes are not along memory, or there are none."""
    return nest.lane is None or _strided(nest.kernel, nest.lane)
