"""Scalars of a kernel as LLVM values of several lanes.

An element of a dtype is held in up to two ways at once: as its *word* (integers, ``limbs`` of them) and, for float32,
float64, float16 and bfloat16, as a *real* number of the processor (float16 and bfloat16 as float32 numbers that they
hold exactly). Each is made from the other when it is first needed.

The processor's arithmetic passes on the bits of a NaN operand, and the specification has one NaN as the result of
arithmetic. So a word that is made from a real is made canonical, while arithmetic on reals need not care: a chain of
additions is put right once, where it is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.soft.lanes import DOUBLE, FLOAT, I1, LaneMachine, broadcast, intrinsic, splat, vector
from tlir.floatlib.soft.uint import Uint, limb_count
from tlir.ir.types import DType

FLOAT16, BFLOAT16, FLOAT32, FLOAT64 = (FORMATS[name] for name in ("float16", "bfloat16", "float32", "float64"))
CARRIERS: dict[Format, Any] = {FLOAT32: FLOAT, FLOAT64: DOUBLE, FLOAT16: FLOAT, BFLOAT16: FLOAT}
"""The processor's type that holds a format's numbers."""


def carrier(dtype: DType) -> Any | None:
    """The LLVM type of the reals of a dtype; None where its elements are words alone."""
    return CARRIERS.get(dtype.format) if dtype.is_float and dtype.format is not None else None


def word_type(dtype: DType) -> Any:
    """The LLVM type of one limb in memory: i8 to i64 (a Boolean is a byte there)."""
    return ir.IntType(8 * dtype.word_dtype.itemsize)


class Item:
    """One scalar in all lanes. A Boolean is an i1 in ``limbs``; a complex number has ``parts`` and nothing else."""

    __slots__ = ("dtype", "lanes", "limbs", "parts", "real")

    def __init__(
        self,
        dtype: DType,
        lanes: int,
        limbs: list[Any] | None = None,
        real: Any = None,
        parts: tuple[Item, Item] | None = None,
    ) -> None:
        self.dtype = dtype
        self.lanes = lanes
        self.limbs = limbs
        self.real = real
        self.parts = parts


class Lanes:
    """Makes items at a builder's place, ``lanes`` wide."""

    settle: Callable[..., Item] | None = None
    """What finishes the lanes that an elementary function's kernel leaves open, if not a call of the specification:
    ``settle(op, dtype, items, words, left)`` gives the result."""

    call_block: Callable[..., tuple[list[Any], Any]] | None = None
    """What calls a kernel of thousands of operations, if not as ``tlir.floatlib.soft.blocks`` compiles it:
    ``call_block(kernel, items)`` gives the limbs of the results and the lanes in which they are not certain."""

    call_big: Callable[..., tuple[Item, Any]] | None = None
    """What calls a software kernel of more than 256 bits, if not LLVM code: ``call_big(kernel, result, items)`` gives
    the words, and the flags as words of 64 bits."""

    def __init__(self, builder: Any, lanes: int, machine: type[LaneMachine] = LaneMachine) -> None:
        self.builder = builder
        self.lanes = lanes
        self._derived: list[tuple[Item, str]] = []
        self._machines = {bits: machine(builder, bits, lanes) for bits in (32, 64)}

    def machine(self, bits: int) -> LaneMachine:
        return self._machines[bits]

    def type(self, element: Any) -> Any:
        return vector(element, self.lanes)

    def splat(self, element: Any, value: Any) -> Any:
        return splat(element, self.lanes, value)

    def call(self, name: str, result: Any, *arguments: Any) -> Any:
        """An intrinsic overloaded by the type of its first argument."""
        return intrinsic(self.builder, name, result, list(arguments), [arguments[0].type])

    def unlikely(self, condition: Any, values: Sequence[Any], make: Callable[[], Sequence[Any]]) -> list[Any]:
        """The values, or those that ``make`` emits in a branch, which is taken where the condition holds in a lane, be
        they as many as here or not."""
        b, before = self.builder, self.builder.block
        mask = b.bitcast(condition, ir.IntType(condition.type.count)) if self.lanes > 1 else condition
        with b.if_then(b.icmp_unsigned("!=", mask, ir.Constant(mask.type, 0)), likely=False), self.scope():
            others = make()
            inside = b.block
        merged = []
        for value, other in zip(values, others, strict=True):
            merged.append(b.phi(value.type))
            merged[-1].add_incoming(value, before)
            merged[-1].add_incoming(other, inside)
        return merged

    # ---- making items -----------------------------------------------------------------------------------------------

    def words(self, dtype: DType, limbs: list[Any]) -> Item:
        return Item(dtype, self.lanes, limbs)

    def word(self, dtype: DType, word: Any) -> Item:
        return Item(dtype, self.lanes, [word])

    def truth(self, dtype: DType, predicate: Any) -> Item:
        return Item(dtype, self.lanes, [predicate])

    def number(self, dtype: DType, real: Any) -> Item:
        """The result of arithmetic: any NaN stands for the canonical one."""
        return Item(dtype, self.lanes, None, real)

    def literal(self, dtype: DType, word: int) -> Item:
        if dtype.is_bool:
            return self.truth(dtype, self.splat(I1, word))
        kind = word_type(dtype)
        mask = (1 << kind.width) - 1
        limbs = [self.splat(kind, word >> (kind.width * k) & mask) for k in range(dtype.limbs)]
        return self.words(dtype, limbs)

    # ---- the two forms ----------------------------------------------------------------------------------------------

    def limbs(self, item: Item) -> list[Any]:
        """The word of an item, least significant limb first."""
        if item.limbs is None:
            item.limbs = [self._canonical_word(item)]
            self._derived.append((item, "limbs"))
        return item.limbs

    def bits(self, item: Item) -> Any:
        """The word of an item of at most 64 bits."""
        (word,) = self.limbs(item)
        return word

    def real(self, item: Item) -> Any:
        """The number as the processor has it."""
        if item.real is None:
            item.real = self._real_of(item.dtype.float_format, self.bits(item))
            self._derived.append((item, "real"))
        return item.real

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Code that may not run: second forms of items that are made inside are forgotten at its end."""
        known = len(self._derived)
        yield
        for item, form in self._derived[known:]:
            setattr(item, form, None)
        del self._derived[known:]

    def is_nan(self, real: Any) -> Any:
        return self.builder.fcmp_unordered("uno", real, real)

    def _real_of(self, fmt: Format, word: Any) -> Any:
        b = self.builder
        if fmt == BFLOAT16:
            wide = b.zext(word, self.type(ir.IntType(32)))
            return b.bitcast(b.shl(wide, self.splat(ir.IntType(32), 16)), self.type(FLOAT))
        if fmt == FLOAT16:
            return b.fpext(b.bitcast(word, self.type(ir.HalfType())), self.type(FLOAT))
        return b.bitcast(word, self.type(CARRIERS[fmt]))

    def _canonical_word(self, item: Item) -> Any:
        b, fmt, real = self.builder, item.dtype.float_format, item.real
        if fmt == FLOAT16:
            word = b.bitcast(b.fptrunc(real, self.type(ir.HalfType())), self.type(ir.IntType(16)))
        else:
            word = b.bitcast(real, self.type(ir.IntType(64 if fmt == FLOAT64 else 32)))
            if fmt == BFLOAT16:
                word = b.trunc(b.lshr(word, self.splat(ir.IntType(32), 16)), self.type(ir.IntType(16)))
        kind = word_type(item.dtype)
        return b.select(self.is_nan(real), self.splat(kind, fmt.invalid_word), word)

    # ---- software ---------------------------------------------------------------------------------------------------

    def uint(self, item: Item, bits: int) -> Uint:
        """The word of an item for a software kernel whose machine has words of ``bits`` bits."""
        machine = self.machine(bits)
        if item.dtype.is_bool:
            return Uint(machine, [self.resized(self.bits(item), ir.IntType(bits))], 1)
        limbs, width = self.limbs(item), item.dtype.bits
        if len(limbs) == 1:
            return Uint(machine, self._split(limbs[0], width, bits), width)
        if bits == 64:
            return Uint(machine, limbs, width)
        halves = [half for limb in limbs for half in self._split(limb, 64, 32)]
        return Uint(machine, halves[: limb_count(machine, width)], width)

    def _split(self, word: Any, width: int, bits: int) -> list[Any]:
        if width <= bits:
            return [self.resized(word, ir.IntType(bits))]
        high = self.builder.lshr(word, self.splat(ir.IntType(64), 32))
        return [self.resized(word, ir.IntType(32)), self.resized(high, ir.IntType(32))]

    def from_uint(self, dtype: DType, number: Uint) -> Item:
        """The item whose word a software kernel returned."""
        if dtype.is_bool:
            machine = self.machine(number.m.bits)
            return self.truth(dtype, machine.negation(machine.equal(number.limbs[0], machine.constant(0))))
        limbs, kind = number.limbs, word_type(dtype)
        if number.m.bits == 32 and dtype.bits > 32:
            wide = [self.resized(limb, ir.IntType(64)) for limb in limbs]
            wide += [self.splat(ir.IntType(64), 0)] * (len(wide) % 2)
            b, shift = self.builder, self.splat(ir.IntType(64), 32)
            limbs = [b.or_(low, b.shl(high, shift)) for low, high in zip(wide[::2], wide[1::2], strict=True)]
        return self.words(dtype, [self.resized(limb, kind) for limb in limbs])

    def resized(self, word: Any, kind: Any, signed: bool = False) -> Any:
        """An integer in another width."""
        element = word.type.element if isinstance(word.type, ir.VectorType) else word.type
        if element == kind:
            return word
        if kind.width < element.width:
            return self.builder.trunc(word, self.type(kind))
        return (self.builder.sext if signed else self.builder.zext)(word, self.type(kind))

    def widened(self, item: Item) -> Item:
        """A scalar item in every lane."""
        if item.lanes == self.lanes:
            return item
        if item.parts is not None:
            first, second = map(self.widened, item.parts)
            return Item(item.dtype, self.lanes, parts=(first, second))
        limbs = None if item.limbs is None else [broadcast(self.builder, limb, self.lanes) for limb in item.limbs]
        real = None if item.real is None else broadcast(self.builder, item.real, self.lanes)
        return Item(item.dtype, self.lanes, limbs, real)
