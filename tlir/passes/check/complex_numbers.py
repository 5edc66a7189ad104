"""Operations on complex numbers as operations on their parts, straight from their meanings in ``docs/ops.md``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tlir.floatlib.convert import from_integer
from tlir.ir.types import BOOL, DType

if TYPE_CHECKING:
    from tlir.passes.check.expressions import Expressions


def by_parts(
    table: Expressions, op: str, attrs: Mapping[str, Any], dtype: DType, operands: Sequence[int]
) -> int | None:
    """The expression of an operation that has a complex operand or result; None for one whose meaning is no sequence of
    operations on the parts."""
    component = dtype.component

    def real(x: int) -> int:
        return table.apply("real", {}, table.dtype(x).component, (x,))

    def imag(x: int) -> int:
        return table.apply("imag", {}, table.dtype(x).component, (x,))

    def joined(x: int, y: int) -> int:
        return table.apply("complex", {}, dtype, (x, y))

    def of_parts(name: str, *xs: int) -> int:
        return table.apply(name, {}, component, xs)

    def number(value: int) -> int:
        return table.literal(component, from_integer(dtype.float_format, value)[0])

    def product(x: int, y: int) -> int:
        a, b, c, d = real(x), imag(x), real(y), imag(y)
        return joined(
            of_parts("subtract", of_parts("multiply", a, c), of_parts("multiply", b, d)),
            of_parts("add", of_parts("multiply", a, d), of_parts("multiply", b, c)),
        )

    xs = tuple(operands)
    match op:
        case "add" | "subtract" | "negate":
            return joined(of_parts(op, *map(real, xs)), of_parts(op, *map(imag, xs)))
        case "multiply":
            return product(*xs)
        case "conjugate":
            return joined(real(xs[0]), of_parts("negate", imag(xs[0])))
        case "abs":
            return of_parts("hypot", real(xs[0]), imag(xs[0]))
        case "select":
            condition, x, y = xs
            return joined(*(of_parts("select", condition, part(x), part(y)) for part in (real, imag)))
        case "compare":
            equal = [table.apply(op, attrs, BOOL, tuple(map(part, xs))) for part in (real, imag)]
            return table.apply("and" if attrs["comparison_direction"] == "EQ" else "or", {}, BOOL, equal)
        case "convert" if dtype.is_bool:
            return table.apply("or", {}, BOOL, [table.apply(op, {}, BOOL, (part(xs[0]),)) for part in (real, imag)])
        case "convert" if not dtype.is_complex:
            return table.apply(op, attrs, dtype, (real(xs[0]),))
        case "convert" if table.dtype(xs[0]).is_complex:
            return joined(*(table.apply(op, attrs, component, (part(xs[0]),)) for part in (real, imag)))
        case "convert":
            return joined(table.apply(op, attrs, component, xs), number(0))
        case "integer_pow":
            exponent, power = abs(attrs["exponent"]), xs[0]
            one = joined(number(1), number(0))
            if exponent == 1:
                first = {"exponent": 1}
                result = joined(*(table.apply(op, first, component, (part(power),)) for part in (real, imag)))
            else:
                found = None
                while exponent:
                    if exponent & 1:
                        found = power if found is None else product(found, power)
                    exponent >>= 1
                    power = product(power, power) if exponent else power
                result = one if found is None else found
            return result if attrs["exponent"] >= 0 else table.apply("divide", {}, dtype, (one, result))
    return None
