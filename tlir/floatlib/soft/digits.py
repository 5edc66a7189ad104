"""Products, quotients, square roots and shifts of long numbers as LLVM functions with loops over 64-bit limbs.

Numbers are in memory, least significant limb first. Each function is made once in a module, where it is asked for. The
bounds of the estimated digits are those of ``division``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from tlir.floatlib.soft.division import QUOTIENT_DIGIT, QUOTIENT_SHRINK, ROOT_DIGIT, ROOT_SHRINK, ROOT_START

_I64, _I128, _DOUBLE = ir.IntType(64), ir.IntType(128), ir.DoubleType()
_LIMBS = _I64.as_pointer()

QUOTIENT_SCALE = 2.0 ** (QUOTIENT_DIGIT - 9)
ROOT_SCALE = 2.0 ** (ROOT_DIGIT - 61 + ROOT_START)
"""What makes a digit of the leading bits of a remainder, 63 of a quotient's and 62 of a root's, over those of the
divisor or the root."""


def _word(value: int) -> Any:
    return ir.Constant(_I64, value)


@contextmanager
def counting(builder: ir.IRBuilder, count: Any) -> Iterator[Any]:
    """A loop: the index runs from 0 to below ``count``. The builder stands behind it afterwards."""
    with carrying(builder, count, []) as (index, _, _):
        yield index


@contextmanager
def carrying(
    builder: ir.IRBuilder, count: Any, start: Sequence[Any]
) -> Iterator[tuple[Any, list[Any], Callable[..., None]]]:
    """A loop that hands values on: (index, values, hand) where ``hand(...)`` says what the next step has. Behind the
    loop, ``values`` are those of the end."""
    before = builder.block
    head, body, leave = (builder.append_basic_block(name) for name in ("head", "body", "leave"))
    builder.branch(head)
    builder.position_at_end(head)
    index = builder.phi(_I64)
    values = [builder.phi(value.type) for value in start]
    index.add_incoming(_word(0), before)
    for value, first in zip(values, start, strict=True):
        value.add_incoming(first, before)
    builder.cbranch(builder.icmp_unsigned("<", index, count), body, leave)
    builder.position_at_end(body)
    handed: list[Any] = []
    yield index, values, lambda *following: handed.extend(following)
    index.add_incoming(builder.add(index, _word(1)), builder.block)
    for value, following in zip(values, handed, strict=True):
        value.add_incoming(following, builder.block)
    builder.branch(head)
    builder.position_at_end(leave)


def _function(module: ir.Module, name: str, parameters: Sequence[Any], write: Callable[..., None]) -> Any:
    known = module.globals.get(name)
    if known is not None:
        return known
    made = ir.Function(module, ir.FunctionType(ir.VoidType(), list(parameters)), name)
    made.linkage = "internal"
    for attribute in ("noinline", "nounwind"):
        made.attributes.add(attribute)
    for argument in made.args:
        if isinstance(argument.type, ir.PointerType):
            argument.add_attribute("noalias")
    builder = ir.IRBuilder(made.append_basic_block("entry"))
    write(builder, *made.args)
    builder.ret_void()
    return made


class _Numbers:
    """Limbs in memory and double words, at a builder's place."""

    def __init__(self, builder: ir.IRBuilder) -> None:
        self.builder = builder

    def at(self, pointer: Any, index: Any) -> Any:
        return self.builder.gep(pointer, [index], inbounds=True)

    def load(self, pointer: Any, index: Any) -> Any:
        return self.builder.load(self.at(pointer, index))

    def store(self, value: Any, pointer: Any, index: Any) -> None:
        self.builder.store(value, self.at(pointer, index))

    def double(self, word: Any) -> Any:
        return self.builder.zext(word, _I128)

    def low(self, double: Any) -> Any:
        return self.builder.trunc(double, _I64)

    def high(self, double: Any) -> Any:
        return self.builder.trunc(self.builder.lshr(double, ir.Constant(_I128, 64)), _I64)

    def times_plus(self, x: Any, y: Any, *terms: Any) -> Any:
        """x * y + terms, at most two of them, of words: a double word."""
        b = self.builder
        total = b.mul(self.double(x), self.double(y))
        for term in terms:
            total = b.add(total, self.double(term))
        return total

    def funnel(self, high: Any, low: Any, count: int) -> Any:
        """The high word of high:low shifted left by 1 to 63."""
        b = self.builder
        return b.or_(b.shl(high, _word(count)), b.lshr(low, _word(64 - count)))

    def turned(self, way: str, high: Any, low: Any, count: Any) -> Any:
        """Of high:low shifted by a word modulo 64 the word that stands in the place of ``high`` where it is shifted to
        the left, of ``low`` where to the right."""
        kind = ir.FunctionType(_I64, [_I64] * 3)
        intrinsic = self.builder.module.declare_intrinsic(f"llvm.fsh{way[0]}", [_I64], kind)
        return self.builder.call(intrinsic, [high, low, count])

    def minus(self, x: Any, y: Any, borrow: Any) -> tuple[Any, Any]:
        """x - y - borrow modulo 2**64, and the next borrow; borrows are words."""
        b = self.builder
        difference = b.sub(b.sub(self.double(x), self.double(y)), self.double(borrow))
        return self.low(difference), b.and_(self.high(difference), _word(1))


def product(module: ir.Module) -> Any:
    """product(out, n, x, limbs of x, y, limbs of y): the lowest n limbs of x * y, row by row."""

    def write(b: ir.IRBuilder, out: Any, n: Any, x: Any, x_count: Any, y: Any, y_count: Any) -> None:
        numbers = _Numbers(b)
        with counting(b, n) as k:
            numbers.store(_word(0), out, k)
        rows = _least(b, x_count, n)
        with counting(b, rows) as i:
            factor, row = numbers.load(x, i), numbers.at(out, i)
            columns = _least(b, y_count, b.sub(n, i))
            with carrying(b, columns, [_word(0)]) as (j, (carry,), hand):
                total = numbers.times_plus(factor, numbers.load(y, j), numbers.load(row, j), carry)
                numbers.store(numbers.low(total), row, j)
                hand(numbers.high(total))
            with b.if_then(b.icmp_unsigned("<", columns, b.sub(n, i))):
                numbers.store(carry, row, columns)

    return _function(module, "limbs product", [_LIMBS, _I64, _LIMBS, _I64, _LIMBS, _I64], write)


def shifted_left(module: ir.Module) -> Any:
    """shifted_left(out, x, n, count): x * 2**count modulo 2**(64 n), both of n limbs."""

    def write(b: ir.IRBuilder, out: Any, x: Any, n: Any, count: Any) -> None:
        numbers = _Numbers(b)
        limbs = _least(b, b.lshr(count, _word(6)), n)
        with counting(b, limbs) as k:
            numbers.store(_word(0), out, k)
        with carrying(b, b.sub(n, limbs), [_word(0)]) as (k, (below,), hand):
            limb = numbers.load(x, k)
            numbers.store(numbers.turned("left", limb, below, count), out, b.add(k, limbs))
            hand(limb)

    return _function(module, "limbs shifted left", [_LIMBS, _LIMBS, _I64, _I64], write)


def shifted_right(module: ir.Module) -> Any:
    """shifted_right(out, lost, x, n, count): x / 2**count cut off, both of n limbs; and the bits that are lost, or-ed
    together in a word."""

    def write(b: ir.IRBuilder, out: Any, lost: Any, x: Any, n: Any, count: Any) -> None:
        numbers = _Numbers(b)
        limbs = _least(b, b.lshr(count, _word(6)), n)
        kept = b.sub(n, limbs)
        with carrying(b, limbs, [_word(0)]) as (k, (some,), hand):
            hand(b.or_(some, numbers.load(x, k)))
        with carrying(b, kept, [_word(0)]) as (k, (above,), hand):
            place = b.sub(b.sub(kept, k), _word(1))
            limb = numbers.load(x, b.add(place, limbs))
            numbers.store(numbers.turned("right", above, limb, count), out, place)
            hand(limb)
        # behind the loop, what was above the next limb is the lowest one that is kept
        cut = b.and_(above, b.sub(b.shl(_word(1), b.and_(count, _word(63))), _word(1)))
        numbers.store(b.or_(some, cut), lost, _word(0))
        with counting(b, limbs) as k:
            numbers.store(_word(0), out, b.add(kept, k))

    return _function(module, "limbs shifted right", [_LIMBS, _LIMBS, _LIMBS, _I64, _I64], write)


def leading_zeros(module: ir.Module) -> Any:
    """leading_zeros(out, x, n): how many of the 64 n bits of x are 0 from the highest on."""

    def write(b: ir.IRBuilder, out: Any, x: Any, n: Any) -> None:
        numbers = _Numbers(b)
        # of the highest limb that is not 0, or else of the lowest one
        with carrying(b, n, [_word(0), _word(0)]) as (k, (place, top), hand):
            limb = numbers.load(x, k)
            none = b.icmp_unsigned("==", limb, _word(0))
            hand(b.select(none, place, k), b.select(none, top, limb))
        above = b.shl(b.sub(b.sub(n, place), _word(1)), _word(6))
        numbers.store(b.add(above, b.ctlz(top, ir.Constant(ir.IntType(1), 0))), out, _word(0))

    return _function(module, "limbs leading zeros", [_LIMBS, _LIMBS, _I64], write)


def _least(b: ir.IRBuilder, x: Any, y: Any) -> Any:
    return b.select(b.icmp_unsigned("<", x, y), x, y)


def _truncated(b: ir.IRBuilder, leading: Any, inverse: Any, scale: float) -> Any:
    """The digit that the leading bits of a remainder and an inverse estimate."""
    estimate = b.fmul(b.fmul(b.uitofp(leading, _DOUBLE), inverse), ir.Constant(_DOUBLE, scale))
    return b.fptoui(estimate, _I64)


def quotient(module: ir.Module) -> Any:
    """quotient(digits, number of digits, rest, divisor, n): the digits of rest / divisor of ``QUOTIENT_DIGIT`` bits
    each (or one more, which the next digit makes up for), the most significant first, and what is left of the rest,
    less than twice the divisor. Both have n limbs and rest < 2 divisor; the divisor's highest bit is the last but one.
    """

    def write(b: ir.IRBuilder, found: Any, steps: Any, rest: Any, divisor: Any, n: Any) -> None:
        for step, digit in _digits(b, steps, rest, divisor, n):
            _Numbers(b).store(digit, found, step)

    return _function(module, "limbs quotient", [_LIMBS, _I64, _LIMBS, _LIMBS, _I64], write)


def remaining(module: ir.Module) -> Any:
    """remaining(number of digits, rest, divisor, n): what ``quotient`` leaves of the rest, without the digits."""

    def write(b: ir.IRBuilder, steps: Any, rest: Any, divisor: Any, n: Any) -> None:
        for _ in _digits(b, steps, rest, divisor, n):
            pass

    return _function(module, "limbs remaining", [_I64, _LIMBS, _LIMBS, _I64], write)


def _digits(b: ir.IRBuilder, steps: Any, rest: Any, divisor: Any, n: Any) -> Iterator[tuple[Any, Any]]:
    """Writes a loop that takes digits off the rest, and stands in it once: the number of a digit, and the digit."""
    numbers = _Numbers(b)
    top = b.sub(n, _word(1))
    # 53 bits of the divisor's 63, and 63 of the rest's 64
    lowered = b.uitofp(b.lshr(numbers.load(divisor, top), _word(10)), _DOUBLE)
    inverse = b.fmul(b.fdiv(ir.Constant(_DOUBLE, 1.0), lowered), ir.Constant(_DOUBLE, QUOTIENT_SHRINK))
    with counting(b, steps) as step:
        digit = _truncated(b, b.lshr(numbers.load(rest, top), _word(1)), inverse, QUOTIENT_SCALE)
        yield step, digit
        _next_rest(numbers, rest, divisor, n, _word(0), digit, QUOTIENT_DIGIT)


def _next_rest(numbers: _Numbers, rest: Any, by: Any, n: Any, below: Any, digit: Any, bits: int) -> None:
    """rest 2**bits - digit * by, on n limbs; ``below`` is the limb below those of the rest."""
    with carrying(numbers.builder, n, [below, _word(0), _word(0)]) as (j, (under, carry, borrow), hand):
        limb = numbers.load(rest, j)
        taken = numbers.times_plus(digit, numbers.load(by, j), carry)
        moved = numbers.funnel(limb, under, bits)
        left, next_borrow = numbers.minus(moved, numbers.low(taken), borrow)
        numbers.store(left, rest, j)
        hand(limb, numbers.high(taken), next_borrow)


def assembled(module: ir.Module) -> Any:
    """assembled(out, digits, number of digits): the number that the digits of ``quotient`` make; out has room for one
    limb more than that takes."""

    def write(b: ir.IRBuilder, out: Any, found: Any, steps: Any) -> None:
        numbers = _Numbers(b)
        start = [ir.Constant(_I128, 0), _word(0), _word(0)]
        with carrying(b, steps, start) as (k, (waiting, filled, place), hand):
            digit = numbers.load(found, b.sub(b.sub(steps, k), _word(1)))
            total = b.add(waiting, b.shl(numbers.double(digit), numbers.double(filled)))
            numbers.store(numbers.low(total), out, place)
            more = b.add(filled, _word(QUOTIENT_DIGIT))
            full = b.icmp_unsigned(">=", more, _word(64))
            hand(
                b.select(full, b.lshr(total, ir.Constant(_I128, 64)), total),
                b.select(full, b.sub(more, _word(64)), more),
                b.add(place, b.zext(full, _I64)),
            )
        numbers.store(numbers.low(waiting), out, place)
        numbers.store(numbers.high(waiting), out, b.add(place, _word(1)))

    return _function(module, "limbs assembled", [_LIMBS, _LIMBS, _I64], write)


def root(module: ir.Module) -> Any:
    """root(doubled, n, rest, high, S, lowest leading bit, first, steps): the digits of a square root, ``ROOT_DIGIT``
    bits each, as ``BigUint.square_root`` says.

    ``doubled`` is 2 A in n limbs, A being the root as far as it is known, its first ``ROOT_START`` bits ``first`` at
    the beginning; ``rest`` is T in high + n limbs, whose 62 leading bits begin at the bit that is given."""

    def write(
        b: ir.IRBuilder, doubled: Any, n: Any, rest: Any, high: Any, size: Any, lowest: Any, first: Any, steps: Any
    ) -> None:
        numbers = _Numbers(b)
        inverse = b.fmul(b.fdiv(ir.Constant(_DOUBLE, 1.0), first), ir.Constant(_DOUBLE, ROOT_SHRINK))
        place, offset = b.lshr(lowest, _word(6)), b.and_(lowest, _word(63))
        upper = b.sub(b.add(high, n), _word(1))
        with carrying(b, steps, [b.sub(size, _word(ROOT_START + ROOT_DIGIT))]) as (_, (at,), hand):
            # the leading bits lie in one limb or two
            second = b.select(b.icmp_unsigned("<", place, upper), b.add(place, _word(1)), place)
            pair = b.or_(
                b.shl(numbers.double(numbers.load(rest, second)), ir.Constant(_I128, 64)),
                numbers.double(numbers.load(rest, place)),
            )
            window = b.trunc(b.lshr(pair, numbers.double(offset)), _I64)
            leading = b.and_(window, _word((1 << 62) - 1))
            digit = _truncated(b, leading, inverse, ROOT_SCALE)
            limb, shift = b.lshr(at, _word(6)), b.and_(at, _word(63))
            spread = b.shl(numbers.double(digit), numbers.double(shift))
            _each_half(numbers, doubled, limb, n, spread, b.or_)
            # rest shifted, and from its high limbs (2 A + d 2**e) d taken
            with carrying(b, high, [_word(0)]) as (j, (below,), carry_on):
                word = numbers.load(rest, j)
                numbers.store(numbers.funnel(word, below, ROOT_DIGIT), rest, j)
                carry_on(word)
            _next_rest(numbers, numbers.at(rest, high), doubled, n, below, digit, ROOT_DIGIT)
            # 2 (A + d 2**e): the other d 2**e is added, which may carry
            with carrying(b, b.sub(n, limb), [spread]) as (j, (waiting,), carry_on):
                index = b.add(limb, j)
                total = b.add(numbers.double(numbers.load(doubled, index)), numbers.double(numbers.low(waiting)))
                numbers.store(numbers.low(total), doubled, index)
                carry_on(b.add(numbers.double(numbers.high(waiting)), numbers.double(numbers.high(total))))
            hand(b.sub(at, _word(ROOT_DIGIT)))

    parameters = [_LIMBS, _I64, _LIMBS, _I64, _I64, _I64, _DOUBLE, _I64]
    return _function(module, "limbs root", parameters, write)


def _each_half(numbers: _Numbers, pointer: Any, limb: Any, n: Any, double: Any, operation: Any) -> None:
    """``operation`` on two neighbouring limbs and the halves of a double word; of the last limb only on the lower."""
    b = numbers.builder
    numbers.store(operation(numbers.load(pointer, limb), numbers.low(double)), pointer, limb)
    following = b.add(limb, _word(1))
    with b.if_then(b.icmp_unsigned("<", following, n)):
        numbers.store(operation(numbers.load(pointer, following), numbers.high(double)), pointer, following)
