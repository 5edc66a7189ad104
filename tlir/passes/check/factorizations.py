"""Factorizations and solvers of matrices on expressions, step by step as ``docs/ops.md`` states them.

A matrix is a list of rows of expressions. What is subtracted is subtracted at once from all that the step concerns, and
rows are really exchanged: nothing is deferred, as the kernels do. Words that come from an operand and go to a result
have their NaN made the canonical one when they come and when they go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tlir.ir.types import NAMED
from tlir.passes.check.scalars import Attr, Meaning, Rows, Scalars, adjoint, known

_INT32, _INT64 = NAMED["int32"], NAMED["int64"]


def _cholesky(s: Scalars, attr: Attr, operands: Sequence[Any]) -> tuple[Any, ...]:
    a = known(s, operands[0] if attr("lower") else adjoint(s, operands[0]))
    n, zero = len(a), s.word(0)
    factor = [[zero] * n for _ in range(n)]
    positive = s.truth(True)
    for j in range(n):
        column = [a[i][j] for i in range(n)]
        for i in range(j, n):
            for k in range(j):
                column[i] = s.less(column[i], s.times(factor[i][k], s.conjugate(factor[j][k])))
        pivot = s.parts(column[j])[0]
        positive = s.both(positive, s.compare(pivot, s.number(0, s.part), "GT"))
        root = s.apply("sqrt", pivot)
        factor[j][j] = s.from_real(root)
        for i in range(j + 1, n):
            factor[i][j] = s.by_parts(lambda part, root=root: s.over(part, root), column[i])  # type: ignore[misc]
    if not attr("lower"):
        factor = [[s.conjugate(factor[j][i]) if j >= i else zero for j in range(n)] for i in range(n)]
    return ([[s.canonical(s.select(positive, x, s.nan())) for x in row] for row in factor],)


def _triangular_solve(s: Scalars, attr: Attr, operands: Sequence[Any]) -> tuple[Any, ...]:
    a, x = operands
    left, lower = attr("left_side"), attr("lower")
    transposed = attr("transpose_a") != "NO_TRANSPOSE"
    if transposed:
        a, lower = [list(column) for column in zip(*a, strict=True)], not lower
    if attr("transpose_a") == "ADJOINT":
        a = [[s.conjugate(element) for element in row] for row in a]
    if not left:
        a, lower = [list(column) for column in zip(*a, strict=True)], not lower
        x = [list(column) for column in zip(*x, strict=True)]
    x, n = known(s, x), len(a)
    for k in range(n) if lower else reversed(range(n)):
        if not attr("unit_diagonal"):
            x[k] = [s.over(element, a[k][k]) for element in x[k]]
        for i in range(k + 1, n) if lower else range(k):
            x[i] = [s.less(element, s.times(a[i][k], other)) for element, other in zip(x[i], x[k], strict=True)]
    return (x if left else [list(column) for column in zip(*x, strict=True)],)


def _lu(s: Scalars, attr: Attr, operands: Sequence[Any]) -> tuple[Any, ...]:
    a = known(s, operands[0])
    m, n = len(a), len(a[0]) if a else 0
    rows = [s.table.integer(_INT32, i) for i in range(m)]
    pivots = []

    def size(x: int) -> int:
        sizes = [s.apply("abs", part) for part in s.parts(x)]
        return sizes[0] if len(sizes) == 1 else s.add(*sizes)

    for k in range(min(m, n)):
        best, chosen = size(a[k][k]), s.table.integer(_INT64, k)
        for i in range(k + 1, m):
            better = s.beats(size(a[i][k]), best, "GT")
            best = s.select(better, size(a[i][k]), best)
            chosen = s.select(better, s.table.integer(_INT64, i), chosen)
        pivots.append(s.apply("convert", chosen, dtype=_INT32))
        other = s.table.value(chosen)
        a[k], a[other], rows[k], rows[other] = a[other], a[k], rows[other], rows[k]
        pivot = a[k][k]
        vanishing = s.is_zero(pivot)
        safe = s.select(vanishing, s.number(1), pivot)
        for i in range(k + 1, m):
            a[i][k] = s.select(vanishing, a[i][k], s.over(a[i][k], safe))
            for j in range(k + 1, n):
                a[i][j] = s.less(a[i][j], s.times(a[i][k], a[k][j]))
    return known(s, a), pivots, rows


def _tridiagonal_solve(s: Scalars, attr: Attr, operands: Sequence[Any]) -> tuple[Any, ...]:
    below, diagonal, above, x = operands
    x, n = [list(row) for row in x], len(x)
    ratios: list[int] = []
    for i in range(n):
        pivot = diagonal[i]
        if i:
            pivot = s.less(pivot, s.times(below[i], ratios[i - 1]))
            x[i] = [s.less(one, s.times(below[i], before)) for one, before in zip(x[i], x[i - 1], strict=True)]
        x[i] = [s.over(one, pivot) for one in x[i]]
        ratios.append(s.over(above[i], pivot))
    for i in reversed(range(n - 1)):
        x[i] = [s.less(one, s.times(ratios[i], after)) for one, after in zip(x[i], x[i + 1], strict=True)]
    return (x,)


def _geqrf(s: Scalars, attr: Attr, operands: Sequence[Any]) -> tuple[Any, ...]:
    a = known(s, operands[0])
    packed, taus = factored(s, a)
    return known(s, packed), [s.canonical(tau) for tau in taus]


def factored(s: Scalars, a: Rows) -> tuple[Rows, list[int]]:
    """R with the reflectors, and the taus."""
    a = [list(row) for row in a]
    m, n = len(a), len(a[0]) if a else 0
    taus = []
    for k in range(min(m, n)):
        alpha, norm = a[k][k], s.number(0, s.part)
        for i in range(k + 1, m):
            for part in s.parts(a[i][k]):
                norm = s.apply("hypot", norm, part)
        trivial = s.is_zero(norm)
        for part in s.parts(alpha)[1:]:
            trivial = s.both(trivial, s.is_zero(part))
        if s.table.value(trivial):
            taus.append(s.word(0))
            continue
        length = s.apply("hypot", s.apply("abs", alpha, dtype=s.part), norm)
        beta = s.apply("negate", s.apply("copysign", length, s.parts(alpha)[0]))
        whole = s.from_real(beta)
        tau = s.by_parts(lambda part, beta=beta: s.over(part, beta), s.less(whole, alpha))  # type: ignore[misc]
        for i in range(k + 1, m):
            a[i][k] = s.over(a[i][k], s.less(alpha, whole))
        for j in range(k + 1, n):
            _reflect(s, a, [row[k] for row in a], k, j, s.conjugate(tau))
        a[k][k] = whole
        taus.append(tau)
    return a, taus


def _reflect(s: Scalars, x: Rows, v: Sequence[int], k: int, j: int, tau: int) -> None:
    """A reflector applied to column j, in place; of v, which is 1 at k, only what is below is read."""
    total = x[k][j]
    for i in range(k + 1, len(x)):
        total = s.add(total, s.times(s.conjugate(v[i]), x[i][j]))
    factor = s.times(tau, total)
    x[k][j] = s.less(x[k][j], factor)
    for i in range(k + 1, len(x)):
        x[i][j] = s.less(x[i][j], s.times(v[i], factor))


def product(s: Scalars, a: Rows, taus: Sequence[int], m: int, n: int) -> Rows:
    """The first n columns of the product of the reflectors in a."""
    q = [[s.number(1) if i == j else s.word(0) for j in range(n)] for i in range(m)]
    for k in reversed(range(len(taus))):
        for j in range(k, n):
            _reflect(s, q, [row[k] for row in a], k, j, taus[k])
    return q


def _householder_product(s: Scalars, attr: Attr, operands: Sequence[Any]) -> tuple[Any, ...]:
    a, taus = operands
    return (product(s, a, taus, len(a), len(a[0]) if a else 0),)


MEANINGS: dict[str, Meaning] = {
    "cholesky": _cholesky,
    "triangular_solve": _triangular_solve,
    "lu": _lu,
    "tridiagonal_solve": _tridiagonal_solve,
    "geqrf": _geqrf,
    "householder_product": _householder_product,
}
