"""Eigenvalues and singular values on expressions, rotation by rotation as ``docs/ops.md`` states them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key
from math import isqrt
from typing import Any

from tlir.floatlib.rounding import round_exact
from tlir.ir.types import BOOL
from tlir.passes.check.factorizations import factored, product
from tlir.passes.check.scalars import Attr, Meaning, Rows, Scalars, adjoint, known

SWEEPS_OF_EIGH, SWEEPS_OF_SVD = 64, 32


def rounds(n: int) -> list[list[tuple[int, int]]]:
    """The pairs of each round of a sweep."""
    even = n + n % 2
    found = []
    for r in range(even - 1):
        pairs = [(even - 1, r)] + [((r - k) % (even - 1), (r + k) % (even - 1)) for k in range(1, even // 2)]
        found.append([(min(pair), max(pair)) for pair in pairs if max(pair) < n])
    return found


def _power(s: Scalars, factor: int, exponent: int) -> int:
    """factor * 2^exponent, rounded once."""
    return s.table.literal(s.part, round_exact(s.part.float_format, 0, factor, exponent)[0])


class _Rotation:
    """t, c and s, and the phase w, of a pair whose columns are to become orthogonal."""

    def __init__(self, s: Scalars, first: int, second: int, inner: int) -> None:
        self.scalars = s
        one = s.number(1, s.part)
        self.phase: int | None = None
        r = inner
        if s.dtype.is_complex:
            r = s.apply("abs", inner, dtype=s.part)
            self.phase = s.by_parts(lambda part: s.over(part, r), inner)
        z = s.over(s.less(second, first), s.add(r, r))
        denominator = s.add(s.apply("abs", z), s.apply("hypot", one, z))
        self.t = s.over(s.apply("copysign", one, z), denominator)
        self.c = s.over(one, s.apply("hypot", one, self.t))
        self.s = s.times(self.t, self.c)
        self.shift = s.times(self.t, r)

    def mixed(self, x: int, y: int, adjoint: bool) -> tuple[int, int]:
        """Two elements of a row; ``adjoint``: of a column, by the conjugate factors."""
        s = self.scalars
        if self.phase is not None:
            y = s.times(self.phase if adjoint else s.conjugate(self.phase), y)

        def scaled(number: int, factor: int) -> int:
            return s.by_parts(lambda part: s.times(part, factor), number)

        return s.less(scaled(x, self.c), scaled(y, self.s)), s.add(scaled(x, self.s), scaled(y, self.c))

    def columns(self, x: Rows, p: int, q: int) -> None:
        for row in x:
            row[p], row[q] = self.mixed(row[p], row[q], False)

    def rows(self, x: Rows, p: int, q: int) -> None:
        for j in range(len(x[p])):
            x[p][j], x[q][j] = self.mixed(x[p][j], x[q][j], True)


def _surveyed(s: Scalars, a: Rows) -> tuple[int, int]:
    """The greatest magnitude of a part, and whether all parts are finite."""
    best, finite = s.number(0, s.part), s.truth(True)
    for row in a:
        for x in row:
            for part in s.parts(x):
                size = s.apply("abs", part)
                best = s.select(s.compare(size, best, "GT"), size, best)
                finite = s.both(finite, s.apply("is_finite", part, dtype=BOOL))
    return best, finite


def _order(s: Scalars, values: Sequence[int], descending: bool) -> list[int]:
    """Which value comes at each place; a NaN is greater than every number, and equal ones keep their order."""

    def greater(x: int, y: int) -> bool:
        return bool(s.table.value(s.beats(x, y, "GT")))

    def compared(i: int, j: int) -> int:
        one, other = (values[j], values[i]) if descending else (values[i], values[j])
        return greater(one, other) - greater(other, one)

    return sorted(range(len(values)), key=cmp_to_key(compared))


def _unit(s: Scalars, n: int) -> Rows:
    return [[s.number(1) if i == j else s.word(0) for j in range(n)] for i in range(n)]


def _eigh(s: Scalars, attr: Attr, operands: Sequence[Any]) -> tuple[Any, ...]:
    (operand,) = operands
    n = len(operand)

    def element(i: int, j: int) -> int:
        if i == j:
            return s.from_real(s.parts(operand[i][i])[0])
        return int(operand[i][j]) if (i > j) == attr("lower") else s.conjugate(operand[j][i])

    a = [[s.canonical(element(i, j)) for j in range(n)] for i in range(n)]
    greatest, finite = _surveyed(s, a)
    threshold = s.times(greatest, _power(s, 1, -s.part.float_format.precision))
    v = _unit(s, n)
    again = bool(s.table.value(finite))
    for _ in range(SWEEPS_OF_EIGH):
        if not again:
            break
        again = False
        for pairs in rounds(n):
            turns = {}
            for p, q in pairs:
                off = s.conjugate(a[q][p])
                if s.table.value(s.compare(s.apply("abs", off, dtype=s.part), threshold, "GT")):
                    ends = s.parts(a[p][p])[0], s.parts(a[q][q])[0]
                    turns[p, q] = (_Rotation(s, *ends, off), ends)
            again = again or bool(turns)
            for (p, q), (turn, _) in turns.items():
                turn.columns(a, p, q)
                turn.columns(v, p, q)
            for (p, q), (turn, _) in turns.items():
                turn.rows(a, p, q)
            for (p, q), (turn, (first, second)) in turns.items():
                a[p][q] = a[q][p] = s.word(0)
                a[p][p] = s.from_real(s.less(first, turn.shift))
                a[q][q] = s.from_real(s.add(second, turn.shift))
    values = [s.parts(a[i][i])[0] for i in range(n)]
    order = _order(s, values, False)
    sorted_values = [s.canonical(s.select(finite, values[k], s.nan(s.part))) for k in order]
    return sorted_values, [[s.canonical(s.select(finite, row[k], s.nan())) for k in order] for row in v]


def _binade(s: Scalars, x: int) -> int:
    """The greatest power of two not above a magnitude, at least the least normal number; 1 for zero. Its exponent is
    found from the greatest step down: a step is taken where what it leads to is a number and not above x."""
    fmt = s.part.float_format
    step, rest = 1, fmt.emax - fmt.emin
    while 2 * step <= fmt.emax:
        step *= 2
    steps = [step]
    while step * len(steps) + step - 1 < rest:
        steps.append(step)
    while step > 1:
        step //= 2
        steps.append(step)
    power = s.table.literal(s.part, fmt.min_normal)
    for step in steps:
        greater = s.times(power, _power(s, 1, step))
        is_number = s.compare(power, _power(s, 1, fmt.emax - step), "LE")
        power = s.select(s.both(is_number, s.compare(greater, x, "LE")), greater, power)
    return s.select(s.is_zero(x), s.number(1, s.part), power)


def _svd(s: Scalars, attr: Attr, operands: Sequence[Any]) -> tuple[Any, ...]:
    (x,) = operands
    rows, columns = s.sizes
    wide = rows < columns
    if not wide:
        x = known(s, x)
    else:
        x = known(s, adjoint(s, x)) if rows else [[] for _ in range(columns)]
    u, values, v = _tall(s, x, attr("full_matrices"))
    if wide:
        u, v = v, u
    return known(s, u), values, known(s, adjoint(s, v))


def _tall(s: Scalars, x: Rows, full: bool) -> tuple[Rows, list[int], Rows]:
    """U, the singular values and V of a matrix of as many rows as columns or more."""
    m, n = len(x), len(x[0]) if x else 0
    if not n:
        return _unit(s, m) if full else [[] for _ in range(m)], [], []
    greatest, finite = _surveyed(s, x)
    scale = _binade(s, greatest)
    x = [[s.by_parts(lambda part: s.over(part, scale), element) for element in row] for row in x]
    precision, factor = s.part.float_format.precision, isqrt(m) + 1
    bound = _power(s, factor, -precision) if 4 * factor < 2**precision else _power(s, 1, -2)
    v = _unit(s, n)

    def squares(column: int) -> int:
        total = s.number(0, s.part)
        for row in x:
            for part in s.parts(row[column]):
                total = s.add(total, s.times(part, part))
        return total

    again = bool(s.table.value(finite))
    for _ in range(SWEEPS_OF_SVD):
        if not again:
            break
        again = False
        for p, q in (pair for pairs in rounds(n) for pair in pairs):
            alpha, beta, inner = squares(p), squares(q), s.word(0)
            for row in x:
                inner = s.add(inner, s.times(s.conjugate(row[p]), row[q]))
            limit = s.times(s.times(s.apply("sqrt", alpha), s.apply("sqrt", beta)), bound)
            if s.table.value(s.compare(s.apply("abs", inner, dtype=s.part), limit, "GT")):
                again = True
                turn = _Rotation(s, alpha, beta, inner)
                turn.columns(x, p, q)
                turn.columns(v, p, q)
    norms = [s.apply("sqrt", squares(j)) for j in range(n)]
    order = _order(s, norms, True)
    divisors = [s.select(s.is_zero(norms[k]), s.number(1, s.part), norms[k]) for k in order]
    u = [
        [s.by_parts(lambda part, d=d: s.over(part, d), row[k]) for k, d in zip(order, divisors, strict=True)]  # type: ignore[misc]
        for row in x
    ]
    empty = [bool(s.table.value(s.is_zero(norms[k]))) for k in order]
    columns = m if full else n
    if columns > n or any(empty):
        packed, taus = factored(s, u)
        whole = product(s, packed, taus, m, columns)
        u = [[u[i][j] if j < n and not empty[j] else whole[i][j] for j in range(columns)] for i in range(m)]
    values = [s.canonical(s.select(finite, s.times(norms[k], scale), s.nan(s.part))) for k in order]

    def or_nan(rows: Rows) -> Rows:
        return [[s.select(finite, element, s.nan()) for element in row] for row in rows]

    return or_nan(u), values, or_nan([[row[k] for k in order] for row in v])


MEANINGS: dict[str, Meaning] = {"eigh": _eigh, "svd": _svd}
