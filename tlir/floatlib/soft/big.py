"""The software kernels on wide formats: one element at a time, with integers of any width as LLVM's own.

``Uint`` writes every limb out, and the time that LLVM takes for that grows faster than the square of the limbs: minutes
for a quotient of ten. Here an integer is one value of LLVM's type iN, whose sums and comparisons become code as long as
the number, and products, quotients, roots and shifts by what is not known before are calls of functions with loops over
limbs (``digits``). The kernels are the same functions of a machine. Each becomes a function of its own, which reads and
writes memory.

This module needs llvmlite.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from llvmlite import ir

from tlir.floatlib.soft import digits
from tlir.floatlib.soft.catalog import Kernel
from tlir.floatlib.soft.division import QUOTIENT_DIGIT, ROOT_DIGIT, ROOT_START, ROOT_START_SHRINK
from tlir.floatlib.soft.llvm import LlvmMachine
from tlir.floatlib.soft.machine import Machine, Predicate, Real, Word
from tlir.floatlib.soft.numpy_loop import count_limbs
from tlir.floatlib.soft.uint import Uint
from tlir.floatlib.words import integer_dtype

FROM_BITS = 257
"""Bits of an operand or a result from which a kernel is compiled in this way."""

_I64, _BYTE = ir.IntType(64), ir.IntType(8)


def is_big(kernel: Kernel) -> bool:
    """Whether the kernel is compiled in this way."""
    return kernel.long or max(*kernel.operands, kernel.result) >= FROM_BITS


class Long(Machine, Protocol):
    """What ``BigUint`` needs of its machine: words of 64 bits, a builder of LLVM's instructions, and numbers' limbs."""

    builder: Any

    def product(self, x: BigUint, y: BigUint, count: int) -> BigUint:
        """The lowest limbs of a product."""

    def moved_left(self, x: BigUint, count: Word, limit: int) -> BigUint:
        """x * 2**count modulo 2 to its bits, for a count of at most ``limit``."""

    def moved_right(self, x: BigUint, count: Word, limit: int) -> tuple[BigUint, Callable[[], Predicate]]:
        """x / 2**count cut off, and what tells whether that lost anything."""

    def zeros_ahead(self, x: BigUint) -> Word:
        """How many of the number's bits are 0 from the highest on."""

    def digits_of_quotient(self, rest: BigUint, divisor: BigUint, steps: int) -> tuple[BigUint, BigUint]:
        """The quotient that so many digits make, and what is left of the rest (``digits.quotient``)."""

    def rest_of_quotient(self, rest: BigUint, divisor: BigUint, steps: Word) -> BigUint:
        """What a number of digits that is not known before leaves of the rest (``digits.remaining``)."""

    def digits_of_root(
        self, doubled: BigUint, rest: BigUint, first: Real, long: int, pad: int, steps: int
    ) -> tuple[BigUint, BigUint]:
        """Twice the root that so many digits make, and what is left of the rest (``digits.root``)."""


class BigUint(Uint):
    """A ``Uint`` that is one value of the type iN, N its bits (1 for none, the value being 0)."""

    __slots__ = ("value",)

    m: Long

    def __init__(self, m: Long, value: Any, bits: int) -> None:
        assert value.type == _type(bits)
        self.m = m
        self.value = value
        self.bits = bits

    @classmethod
    def of_word(cls, m: Any, word: Word, bits: int) -> BigUint:
        return cls(m, _resized(m, word, bits), bits)

    @classmethod
    def of_constant(cls, m: Any, value: int, bits: int) -> BigUint:
        return cls(m, ir.Constant(_type(bits), value), bits)

    @property
    def limbs(self) -> list[Word]:  # type: ignore[override]
        """The machine words."""
        m, count = self.m, max(1, -(-self.bits // 64))
        return [_resized(m, self.right(64 * k).value, 64) for k in range(count)]

    # ---- width ------------------------------------------------------------------------------------------------------

    def resized(self, bits: int) -> BigUint:
        if not bits:
            return BigUint.of_constant(self.m, 0, 0)
        return BigUint(self.m, _resized(self.m, self.value, bits), bits)

    def at_most(self, bits: int) -> BigUint:
        return self.resized(bits) if bits < self.bits else self

    def low_limbs(self, bits: int) -> BigUint:
        return self.at_most(64 * max(1, -(-bits // 64)))

    def resized_down(self) -> BigUint:
        return self

    def low(self, bits: int) -> BigUint:
        return self.at_most(bits)

    # ---- arithmetic -------------------------------------------------------------------------------------------------

    def plus(self, other: Uint, bits: int | None = None) -> BigUint:
        bits = bits if bits is not None else max(self.bits, other.bits) + 1
        return self._joined(self.m.builder.add, other, bits)

    def plus_bit(self, p: Predicate, bits: int | None = None) -> BigUint:
        return self.plus(BigUint(self.m, p, 1), bits)

    def minus(self, other: Uint) -> BigUint:
        return self._joined(self.m.builder.sub, other, max(self.bits, other.bits))

    def times(self, other: Uint, bits: int | None = None) -> BigUint:
        assert isinstance(other, BigUint)
        whole = self.bits + other.bits
        count = count_limbs(whole if bits is None else min(bits, whole))
        return self.m.product(self, other, count).at_most(min(whole, 64 * count))

    # ---- shifts -----------------------------------------------------------------------------------------------------

    def left(self, count: int, bits: int | None = None) -> BigUint:
        whole = self.bits + count
        kept = whole if bits is None else min(whole, 64 * max(1, -(-bits // 64)))
        value = _resized(self.m, self.value, kept)
        if count >= max(kept, 1):
            return BigUint.of_constant(self.m, 0, kept)
        return BigUint(self.m, self.m.builder.shl(value, ir.Constant(value.type, count)), kept)

    def right(self, count: int) -> BigUint:
        m, bits = self.m, max(self.bits - count, 0)
        if not bits:
            return BigUint.of_constant(m, 0, 0)
        return BigUint(m, _resized(m, m.builder.lshr(self.value, ir.Constant(self.value.type, count)), bits), bits)

    def left_by(self, count: Word, limit: int) -> BigUint:
        return self.m.moved_left(self, count, limit)

    def right_by(self, count: Word, limit: int) -> BigUint:
        return self.m.moved_right(self, count, limit)[0]

    def right_by_sticky(self, count: Word, limit: int) -> BigUint:
        moved, lost = self.m.moved_right(self, count, limit)
        return moved.merged(BigUint(self.m, lost(), 1))

    # ---- questions --------------------------------------------------------------------------------------------------

    def leading_zeros(self) -> Word:
        return self.m.zeros_ahead(self)

    def is_zero(self) -> Predicate:
        return self.m.builder.icmp_unsigned("==", self.value, ir.Constant(self.value.type, 0))

    def differs(self, other: Uint) -> Predicate:
        return self._compared("!=", other)

    def less(self, other: Uint) -> Predicate:
        return self._compared("<", other)

    def bit(self, position: int) -> Predicate:
        if position >= self.bits:
            return self.m.truth(False)
        return _resized(self.m, self.right(position).value, 1)

    # ---- bits -------------------------------------------------------------------------------------------------------

    def merged(self, other: Uint) -> BigUint:
        return self._joined(self.m.builder.or_, other, max(self.bits, other.bits))

    def with_bit(self, position: int, p: Predicate) -> BigUint:
        bits = max(self.bits, position + 1)
        return self.merged(BigUint(self.m, p, 1).resized(bits).left(position, bits).at_most(bits))

    def chosen(self, p: Predicate, other: Uint) -> BigUint:
        bits = max(self.bits, other.bits)
        return self._joined(lambda x, y: self.m.builder.select(p, x, y), other, bits)

    # ---- digits -----------------------------------------------------------------------------------------------------

    def quotient(self, divisor: Uint, fraction_bits: int) -> tuple[BigUint, Predicate]:
        """As ``division.divide``, to whole digits, and then cut off."""
        assert isinstance(divisor, BigUint)
        m, count, steps = self.m, count_limbs(divisor.bits + 1), -(-fraction_bits // QUOTIENT_DIGIT)
        # the divisor's highest bit is the last but one of its limbs
        up = 64 * count - 1 - divisor.bits
        rest, unit = (number.resized(64 * count).left(up, 64 * count) for number in (self, divisor))
        whole = steps * QUOTIENT_DIGIT
        found, left = m.digits_of_quotient(rest, unit, steps)
        short, exact = m.negation(left.less(unit)), m.either(left.is_zero(), left.equals(unit))
        result = found.at_most(whole + 1).plus_bit(short, whole + 1)
        return result._cut(whole - fraction_bits, m.negation(exact))

    def remaining(self, divisor: BigUint, distance: Word) -> BigUint:
        """The number times 2**distance modulo the divisor, for a number < 2 divisor, whose highest bit is set.

        Whole digits are taken: the number enters shifted down by as many bits as they have beyond the distance."""
        m, count = self.m, count_limbs(divisor.bits + 1 + QUOTIENT_DIGIT)
        up, digit = 64 * count - 1 - divisor.bits, m.constant(QUOTIENT_DIGIT)
        steps = m.builder.udiv(m.add(distance, m.constant(QUOTIENT_DIGIT - 1)), digit)
        spare = m.subtract(m.multiply(steps, digit), distance)
        rest, unit = (number.resized(64 * count).left(up, 64 * count) for number in (self, divisor))
        left = m.rest_of_quotient(rest.right_by(spare, QUOTIENT_DIGIT - 1), unit, steps)
        left = left.chosen(left.less(unit), left.minus(unit))
        return left.right(up).at_most(divisor.bits)

    def square_root(self) -> tuple[BigUint, Predicate]:
        """As ``division.square_root``, to whole digits, and then cut off. N is the number, made 2 S bits long.

        After ``known`` bits of the root, A = s * 2**(S - known) is what is known of it and T = (N - A * A) * 2**known,
        less than 2**(2 S + 2). The next digit d makes T * 2**k - (2 A + d * 2**e) * d * 2**S of it, e = S - known - k.
        T is kept shifted by a few bits more, so that 2**S is the lowest bit of a limb."""
        m, size, start = self.m, self.bits // 2, ROOT_START
        steps = max(0, -(-(size - start) // ROOT_DIGIT))
        long = start + steps * ROOT_DIGIT
        pad = -long % 64
        number = self.resized(2 * long).left(2 * (long - size), 2 * long).at_most(2 * long)
        top = number.right(2 * (long - start))
        leading = m.real_of(top.right(2 * start - 62).limbs[0])
        factor = m.real_constant(ROOT_START_SHRINK * 2.0 ** (start - 31))
        first = BigUint.of_word(m, m.truncate(m.real_multiply(m.real_sqrt(leading), factor)), start)
        rest = top.minus(first.times(first))
        limbs, high = count_limbs(2 * long + 2 + pad), (long + pad) // 64
        wide = rest.resized(64 * limbs).left(2 * long - start + pad, 64 * limbs)
        below = number.low(2 * (long - start)).resized(64 * limbs).left(start + pad, 64 * limbs)
        doubled = first.resized(64 * (limbs - high)).left(long - start + 1, 64 * (limbs - high))
        inverse = m.real_of(first.limbs[0])
        twice, left = m.digits_of_root(doubled, wide.merged(below), inverse, long, pad, steps)
        left = left.right(long + pad)
        raised = twice.less(left)
        exact = m.either(left.is_zero(), left.equals(twice.plus(BigUint.of_constant(m, 1, 1))))
        root = twice.right(1).resized(long).plus_bit(raised, long)
        return root._cut(long - size, m.negation(exact))

    def _cut(self, count: int, more: Predicate) -> tuple[BigUint, Predicate]:
        """Without the lowest bits, and whether they or more were not 0."""
        lost = self.m.negation(self.low(count).is_zero())
        return self.right(count), self.m.either(more, lost)

    # ---- both operands at a width -----------------------------------------------------------------------------------

    def _joined(self, operation: Any, other: Uint, bits: int) -> BigUint:
        assert isinstance(other, BigUint)
        return BigUint(self.m, operation(self.resized(bits).value, other.resized(bits).value), bits)

    def _compared(self, sign: str, other: Uint) -> Predicate:
        assert isinstance(other, BigUint)
        bits = max(self.bits, other.bits)
        return self.m.builder.icmp_unsigned(sign, self.resized(bits).value, other.resized(bits).value)


class Whole:
    """Shifts and leading zeros by the builder's own instructions, for a ``Long`` machine whose builder has them for
    integers of any width. (LLVM has, too; but the code that it makes of them takes it long.)"""

    def moved_left(self: Any, x: BigUint, count: Word, limit: int) -> BigUint:
        return self._shifted(self.builder.shl, x, count, limit)

    def moved_right(self: Any, x: BigUint, count: Word, limit: int) -> tuple[BigUint, Callable[[], Predicate]]:
        moved = self._shifted(self.builder.lshr, x, count, limit)
        return moved, lambda: moved.left_by(count, limit).differs(x)

    def zeros_ahead(self: Any, x: BigUint) -> Word:
        return _resized(self, self.leading_zeros(x.value), 64)

    def _shifted(self: Any, shift: Any, x: BigUint, count: Word, limit: int) -> BigUint:
        kind, small = x.value.type, min(limit, x.bits - 1)
        if limit <= small:
            return BigUint(self, shift(x.value, _resized(self, count, kind.width)), x.bits)
        # shifts are undefined from the width on
        beyond = self.less(self.constant(small), count)
        amount = self.select(beyond, self.constant(small), count)
        moved = shift(x.value, _resized(self, amount, kind.width))
        return BigUint(self, self.builder.select(beyond, ir.Constant(kind, 0), moved), x.bits)


class BigMachine(LlvmMachine):
    """A machine of 64-bit words whose other integers are ``BigUint``."""

    integers = BigUint

    def __init__(self, builder: ir.IRBuilder) -> None:
        super().__init__(builder, 64)

    def product(self, x: BigUint, y: BigUint, count: int) -> BigUint:
        out = self._room(count)
        factors = [argument for factor in (x, y) for argument in self._stored(factor)]
        self.builder.call(digits.product(self.builder.module), [out, ir.Constant(_I64, count), *factors])
        return self._loaded(out, count)

    def moved_left(self, x: BigUint, count: Word, limit: int) -> BigUint:
        place, limbs = self._stored(x)
        out = self._room(limbs.constant)
        self.builder.call(digits.shifted_left(self.builder.module), [out, place, limbs, count])
        return self._loaded(out, limbs.constant).resized(x.bits)

    def moved_right(self, x: BigUint, count: Word, limit: int) -> tuple[BigUint, Callable[[], Predicate]]:
        place, limbs = self._stored(x)
        out, lost = self._room(limbs.constant), self._room(1)
        self.builder.call(digits.shifted_right(self.builder.module), [out, lost, place, limbs, count])
        return self._loaded(out, limbs.constant).resized(x.bits), lambda: self.builder.icmp_unsigned(
            "!=", self.builder.load(lost), self.constant(0)
        )

    def zeros_ahead(self, x: BigUint) -> Word:
        place, limbs = self._stored(x)
        out = self._room(1)
        self.builder.call(digits.leading_zeros(self.builder.module), [out, place, limbs])
        return self.subtract(self.builder.load(out), self.constant(64 * limbs.constant - max(x.bits, 1)))

    def digits_of_quotient(self, rest: BigUint, divisor: BigUint, steps: int) -> tuple[BigUint, BigUint]:
        count, number = count_limbs(rest.bits), ir.Constant(_I64, steps)
        size = count_limbs(steps * QUOTIENT_DIGIT + 1)
        found, out = self._room(steps), self._room(size + 1)
        (left, _), by = self._stored(rest), self._stored(divisor)
        self.builder.call(digits.quotient(self.builder.module), [found, number, left, *by])
        self.builder.call(digits.assembled(self.builder.module), [out, found, number])
        return self._loaded(out, size), self._loaded(left, count)

    def rest_of_quotient(self, rest: BigUint, divisor: BigUint, steps: Word) -> BigUint:
        (left, count), by = self._stored(rest), self._stored(divisor)
        self.builder.call(digits.remaining(self.builder.module), [steps, left, *by])
        return self._loaded(left, count.constant)

    def digits_of_root(
        self, doubled: BigUint, rest: BigUint, first: Real, long: int, pad: int, steps: int
    ) -> tuple[BigUint, BigUint]:
        places = [self._stored(number) for number in (doubled, rest)]
        (twice, count), (left, whole) = places
        words = [ir.Constant(_I64, word) for word in ((long + pad) // 64, long, 2 * long + 2 + pad - 62)]
        arguments = [twice, count, left, *words, first, ir.Constant(_I64, steps)]
        self.builder.call(digits.root(self.builder.module), arguments)
        return self._loaded(twice, count.constant), self._loaded(left, whole.constant)

    def _room(self, limbs: int) -> Any:
        """Memory of the function for so many limbs."""
        return self.builder.alloca(_I64, ir.Constant(_I64, limbs))

    def _stored(self, number: BigUint) -> tuple[Any, Any]:
        """A number's limbs in memory of their own: where, and how many."""
        count = count_limbs(max(number.bits, 1))
        room, value = self._room(count), number.resized(64 * count).value
        self.builder.store(value, self.builder.bitcast(room, value.type.as_pointer()), align=8)
        return room, ir.Constant(_I64, count)

    def _loaded(self, place: Any, count: int) -> BigUint:
        kind = ir.IntType(64 * count)
        value = self.builder.load(self.builder.bitcast(place, kind.as_pointer()), align=8)
        return BigUint(self, value, 64 * count)


def _type(bits: int) -> Any:
    return ir.IntType(max(bits, 1))


def _resized(m: Any, value: Any, bits: int) -> Any:
    kind = _type(bits)
    if value.type == kind:
        return value
    return (m.builder.zext if kind.width > value.type.width else m.builder.trunc)(value, kind)


# Kernels as functions


def element_types(kernel: Kernel) -> list[Any]:
    """The types of the kernel's operands and its result in memory: a small word, or the first of the limbs."""
    return [ir.IntType(8 * integer_dtype(min(width, 64)).itemsize) for width in (*kernel.operands, kernel.result)]


def function(module: ir.Module, kernel: Kernel) -> Any:
    """The module's function f(operand pointers…, result pointer, pointer to uint8 flags) of a kernel, made where it is
    asked for first."""
    name = f"big {kernel.name}{' flags' if kernel.flags else ''}"
    known = module.globals.get(name)
    if known is not None:
        return known
    kinds = element_types(kernel)
    parameters = [*(kind.as_pointer() for kind in kinds), _BYTE.as_pointer()]
    made = ir.Function(module, ir.FunctionType(ir.VoidType(), parameters), name)
    made.linkage = "internal"
    for attribute in ("noinline", "nounwind"):
        made.attributes.add(attribute)
    builder = ir.IRBuilder(made.append_basic_block("entry"))
    machine = BigMachine(builder)
    *operands, out, out_flags = made.args
    values = []
    for pointer, width in zip(operands, kernel.operands, strict=True):
        kind = _memory_type(width)
        value = builder.load(builder.bitcast(pointer, kind.as_pointer()), align=min(8, kind.width // 8))
        values.append(BigUint(machine, _resized(machine, value, width), width))
    result = kernel(machine, *values)
    assert isinstance(result.word, BigUint)
    kind = _memory_type(kernel.result)
    stored = _resized(machine, result.word.value, kind.width)
    builder.store(stored, builder.bitcast(out, kind.as_pointer()), align=min(8, kind.width // 8))
    if kernel.flags:
        builder.store(builder.trunc(result.flags, _BYTE), out_flags)
    builder.ret_void()
    return made


def _memory_type(width: int) -> Any:
    """A whole word in memory."""
    return ir.IntType(8 * integer_dtype(width).itemsize if width <= 64 else 64 * count_limbs(width))


def emit(kernel: Kernel) -> str:
    """LLVM IR of a loop over n elements: loop(n, operand pointers…, result pointer, pointer to uint8 flags)."""
    module = ir.Module("big")
    called = function(module, kernel)
    kinds = element_types(kernel)
    pointers = [*(kind.as_pointer() for kind in kinds), _BYTE.as_pointer()]
    loop = ir.Function(module, ir.FunctionType(ir.VoidType(), [_I64, *pointers]), "loop")
    builder = ir.IRBuilder(loop.append_basic_block("entry"))
    counts = [count_limbs(width) for width in (*kernel.operands, kernel.result)]
    with digits.counting(builder, loop.args[0]) as index:
        places = [
            builder.gep(pointer, [builder.mul(index, ir.Constant(_I64, count))], inbounds=True)
            for pointer, count in zip(loop.args[1:-1], counts, strict=True)
        ]
        flags = builder.gep(loop.args[-1], [index], inbounds=True) if kernel.flags else loop.args[-1]
        builder.call(called, [*places, flags])
    builder.ret_void()
    return str(module)
