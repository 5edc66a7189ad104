"""Real and complex numbers of a format, one by one, by exact fractions and MPFR: an oracle for sequences of steps."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import gmpy2
from exact import add, decode, divide, encode, finite, multiply


def rounded_root(fmt: Any, square: Fraction) -> int:
    """The word of the square root of a fraction, rounded once."""
    with gmpy2.context(precision=2000):
        root = gmpy2.sqrt(gmpy2.mpq(square.numerator, square.denominator))
        significand, exponent = root.as_mantissa_exp()
        return encode(fmt, Fraction(int(significand)) * Fraction(2) ** int(exponent))


@dataclass(frozen=True)
class Real:
    """A finite number of the format, as its word."""

    fmt: Any
    word: int

    @property
    def value(self) -> Fraction:
        return finite(decode(self.fmt, self.word))

    def of(self, value: Fraction | int) -> Real:
        return Real(self.fmt, encode(self.fmt, Fraction(value)))

    def __neg__(self) -> Real:
        return Real(self.fmt, self.word ^ self.fmt.sign_mask)

    def __abs__(self) -> Real:
        return Real(self.fmt, self.word & ~self.fmt.sign_mask)

    def __add__(self, other: Real) -> Real:
        return Real(self.fmt, add(self.fmt, self.word, other.word))

    def __sub__(self, other: Real) -> Real:
        return self + (-other)

    def __mul__(self, other: Real) -> Real:
        return Real(self.fmt, multiply(self.fmt, self.word, other.word))

    def __truediv__(self, other: Real) -> Real:
        return Real(self.fmt, divide(self.fmt, self.word, other.word))

    def sqrt(self) -> Real:
        return self if self.value == 0 else Real(self.fmt, rounded_root(self.fmt, self.value))

    def hypot(self, other: Real) -> Real:
        square = self.value**2 + other.value**2
        return abs(self) if square == 0 else Real(self.fmt, rounded_root(self.fmt, square))

    def copysign(self, other: Real) -> Real:
        return abs(self) if other.word & self.fmt.sign_mask == 0 else -abs(self)

    # what complex numbers have too

    def conj(self) -> Real:
        return self

    @property
    def parts(self) -> tuple[Real, ...]:
        return (self,)

    def from_real(self, x: Real) -> Real:
        return x

    def scale(self, x: Real) -> Real:
        return self * x

    def shrink(self, x: Real) -> Real:
        return self / x

    def modulus(self) -> Real:
        return abs(self)


@dataclass(frozen=True)
class Complex:
    real: Real
    imag: Real

    def __add__(self, other: Complex) -> Complex:
        return Complex(self.real + other.real, self.imag + other.imag)

    def __sub__(self, other: Complex) -> Complex:
        return Complex(self.real - other.real, self.imag - other.imag)

    def __mul__(self, other: Complex) -> Complex:
        (a, b), (c, d) = self.parts, other.parts
        return Complex(a * c - b * d, a * d + b * c)

    def __truediv__(self, other: Complex) -> Complex:
        (a, b), (c, d) = ((x.real.value, x.imag.value) for x in (self, other))
        size = c * c + d * d
        return Complex(self.real.of((a * c + b * d) / size), self.real.of((b * c - a * d) / size))

    def conj(self) -> Complex:
        return Complex(self.real, -self.imag)

    @property
    def parts(self) -> tuple[Real, ...]:
        return (self.real, self.imag)

    def from_real(self, x: Real) -> Complex:
        return Complex(x, x.of(0))

    def scale(self, x: Real) -> Complex:
        return Complex(self.real * x, self.imag * x)

    def shrink(self, x: Real) -> Complex:
        return Complex(self.real / x, self.imag / x)

    def modulus(self) -> Real:
        return self.real.hypot(self.imag)


def numbers(fmt: Any, words: list[int], is_complex: bool) -> list[Any]:
    reals = [Real(fmt, word) for word in words]
    return [Complex(*pair) for pair in zip(reals[::2], reals[1::2], strict=True)] if is_complex else reals


def words(values: list[Any]) -> list[int]:
    return [part.word for value in values for part in value.parts]
