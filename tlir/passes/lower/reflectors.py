"""Householder reflectors I - tau v v^H with v[k] = 1, as ``geqrf`` defines them. The space is the batch; the columns to
which one reflector is applied are independent of each other."""

from __future__ import annotations

from collections.abc import Callable

from tlir.ir.graph import Node
from tlir.ir.types import BOOL
from tlir.kernel import index as ix
from tlir.kernel.index import Index
from tlir.kernel.ir import Value
from tlir.passes.lower.emitter import Emit, Emitter, Frame
from tlir.passes.lower.matrices import Array, Numbers, Result, each, operand_of, over, sizes_of, span


def factored(emitter: Emitter, field: Numbers, a: Array, taus: Array) -> None:
    """R and the reflectors in the place of a (rows, columns), and the taus."""
    m, n = a.shape

    def step(k: Index, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        following, alpha = ix.add(k, 1), a.at(k, k)

        def longer(i: Index, norm: tuple[Value, ...]) -> tuple[Value]:
            total = norm[0]
            for part in field.parts(a.at(i, k)):
                total = field.hypot(total, part)
            return (total,)

        (norm,) = emitter.loop(m, (field.number(0),), longer, span=span(following, m))
        trivial = field.is_zero(norm)
        for part in field.parts(alpha)[1:]:
            trivial = field.both(trivial, field.is_zero(part))
        taus.put(field.zero, k)

        def reflect() -> None:
            length = field.hypot(field.modulus(alpha), norm)
            beta = emitter.apply("negate", (emitter.apply("copysign", (length, field.parts(alpha)[0])),))
            difference = field.subtract(alpha, field.from_real(beta))
            tau = field.shrink(field.subtract(field.from_real(beta), alpha), beta)
            each(emitter, m, following, m, lambda i: a.put(field.divide(a.at(i, k), difference), i, k))
            applied(emitter, field, a, k, following, lambda i: a.at(i, k), field.conjugate(tau))
            a.put(field.from_real(beta), k, k)
            taus.put(tau, k)

        emitter.only(emitter.apply("not", (trivial,), BOOL), reflect)
        return ()

    emitter.loop(min(m, n), (), step)


def product(
    emitter: Emitter, field: Numbers, q: Array, count: int, v: Callable[..., Value], tau: Callable[[Index], Value]
) -> None:
    """The first columns of the product of ``count`` reflectors, whose elements below the diagonal are ``v(i, k)``."""
    over(emitter, q.shape[0], q.shape[1], lambda i, j: q.put(unit(emitter, field, i, j), i, j))

    def step(number: Index, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        k = ix.total([(-1, number)], count - 1)
        applied(emitter, field, q, k, k, lambda i: v(i, k), tau(k))
        return ()

    emitter.loop(count, (), step)


def applied(
    emitter: Emitter, field: Numbers, x: Array, k: Index, first: Index, v: Callable[[Index], Value], tau: Value
) -> None:
    """Column for column from ``first`` on: (I - tau v v^H) x, for v of 1 at k and ``v(i)`` at every i > k."""
    m, n = x.shape
    below = span(ix.add(k, 1), m)

    def column(j: Index) -> None:
        def term(i: Index, total: tuple[Value, ...]) -> tuple[Value]:
            return (field.add(total[0], field.multiply(field.conjugate(v(i)), x.at(i, j))),)

        (total,) = emitter.loop(m, (field.canonical(x.at(k, j)),), term, span=below)
        factor = field.multiply(tau, total)
        x.put(field.subtract(x.at(k, j), factor), k, j)
        each(
            emitter, m, below.first, m, lambda i: x.put(field.subtract(x.at(i, j), field.multiply(v(i), factor)), i, j)
        )

    each(emitter, n, first, n, column)


def unit(emitter: Emitter, field: Numbers, i: Index, j: Index) -> Value:
    """An element of the identity."""
    same = emitter.apply("compare", (emitter.position(i), emitter.position(j)), BOOL, {"comparison_direction": "EQ"})
    return field.select(same, field.one, field.zero)


def _geqrf(emitter: Emitter, frame: Frame, node: Node) -> None:
    batch_shape, (m, n) = sizes_of(node.types[0])
    batch = emitter.space(batch_shape)
    packed, result = Result(emitter, node, 0, batch), Result(emitter, node, 1, batch)
    if not node.types[0].size:
        return
    field, operand = Numbers(emitter, node.types[0].dtype), operand_of(emitter, frame, node.inputs[0], batch)
    a, taus = Array(emitter, field.dtype, m, n), Array(emitter, field.dtype, min(m, n))
    over(emitter, m, n, lambda i, j: a.put(field.canonical(operand(i, j)), i, j))
    factored(emitter, field, a, taus)
    over(emitter, m, n, lambda i, j: packed.put(field.canonical(a.at(i, j)), i, j))
    emitter.each((min(m, n),), lambda place: result.put(field.canonical(taus.at(place[0])), place[0]))


def _householder_product(emitter: Emitter, frame: Frame, node: Node) -> None:
    batch_shape, (m, n) = sizes_of(node.type)
    batch = emitter.space(batch_shape)
    result = Result(emitter, node, 0, batch)
    if not node.type.size:
        return
    field = Numbers(emitter, node.type.dtype)
    a, taus = (operand_of(emitter, frame, ref, batch) for ref in node.inputs)
    q = Array(emitter, field.dtype, m, n)
    product(emitter, field, q, frame.type(node.inputs[1]).shape[-1], a, taus)
    over(emitter, m, n, lambda i, j: result.put(field.canonical(q.at(i, j)), i, j))


EMITS: dict[str, Emit] = {"geqrf": _geqrf, "householder_product": _householder_product}
