"""Eigenvalues and singular values by Jacobi's rotations, a kernel each. The space is the batch; the elements of the
rows or columns that one rotation mixes are independent of each other.

A sweep is run while the one before has rotated a pair. The pairs of a round have no index in common, so each is taken
to its end before the next one, but for the rows of a symmetric matrix: they wait for the columns of all pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt

from tlir.floatlib.format import Format
from tlir.floatlib.rounding import round_exact
from tlir.ir.graph import Node
from tlir.ir.types import BOOL
from tlir.kernel import index as ix
from tlir.kernel.index import Index, from_value
from tlir.kernel.ir import Bound, Value
from tlir.passes.lower.emitter import INT64, Emit, Emitter, Frame, Refused
from tlir.passes.lower.matrices import Array, Numbers, Result, operand_of, over, sizes_of
from tlir.passes.lower.reduction import beats, compare
from tlir.passes.lower.reflectors import factored, product, unit

SWEEPS_OF_EIGH, SWEEPS_OF_SVD = 64, 32


@dataclass(frozen=True)
class Rotation:
    """c, s and for complex numbers the phase w; and what the ends of the diagonal change by."""

    c: Value
    s: Value
    phase: Value | None
    shift: Callable[[], Value]


def _rotation(field: Numbers, first: Value, second: Value, off: Value) -> Rotation:
    """For the Hermitian matrix [[first, off], [conj off, second]]."""
    size = field.modulus(off) if field.dtype.is_complex else off
    phase = field.shrink(off, size) if field.dtype.is_complex else None
    one = field.number(1)
    z = field.divide(field.subtract(second, first), field.add(size, size))
    sign = field.emitter.apply("copysign", (one, z))
    t = field.divide(sign, field.add(field.magnitude(z), field.hypot(one, z)))
    c = field.divide(one, field.hypot(one, t))
    return Rotation(c, field.multiply(t, c), phase, lambda: field.multiply(t, size))


def _mixed(field: Numbers, first: Value, second: Value, c: Value, s: Value, phase: Value | None) -> tuple[Value, Value]:
    turned = second if phase is None else field.multiply(phase, second)
    return (
        field.subtract(field.scale(first, c), field.scale(turned, s)),
        field.add(field.scale(first, s), field.scale(turned, c)),
    )


def _rows(emitter: Emitter, field: Numbers, x: Array, pair: tuple[Index, Index], turn: Rotation) -> None:
    """Rotate two rows of an array, which are columns of the matrix that it holds transposed, in place."""
    phase = None if turn.phase is None else field.conjugate(turn.phase)

    def element(i: Index) -> None:
        mixed = _mixed(field, x.at(pair[0], i), x.at(pair[1], i), turn.c, turn.s, phase)
        for k, value in zip(pair, mixed, strict=True):
            x.put(value, k, i)

    emitter.each((x.shape[1],), lambda place: element(place[0]))


def _pair(emitter: Emitter, n: int, number: Index, turn: Index) -> tuple[Index, Index]:
    """The pair with a number in round ``turn`` of a sweep, p < q."""
    even = n + n % 2
    # the first pair of an odd number of indices has none
    k = ix.add(number, n % 2)
    lower = ix.remainder(ix.total([(1, turn), (-1, k)], even - 1), even - 1)
    one, other = emitter.position(lower), emitter.position(ix.remainder(ix.add(turn, k), even - 1))
    if not n % 2:
        first = compare(emitter, emitter.position(k), emitter.literal(INT64, 0), "EQ")
        other = emitter.apply("select", (first, emitter.literal(INT64, even - 1), other), INT64)
    p, q = (emitter.apply(op, (one, other)) for op in ("minimum", "maximum"))
    return from_value(p, 0, n - 1), from_value(q, 0, n - 1)


def _sweeps(
    emitter: Emitter,
    n: int,
    count: int,
    done: Value,
    rotate: Callable[[Index, Index, Index], Value],
    after: Callable[[Index, Index, Index], None] | None = None,
) -> None:
    """``count`` sweeps, none behind one that has rotated nothing, or where ``done``. ``rotate(number, p, q)`` rotates a
    pair of a round, if need be, and says whether it did; in a round in which one did, ``after(number, p, q)`` follows
    for all."""
    pairs = n // 2

    def one_round(turn: Index, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        def one(number: Index, found: tuple[Value, ...]) -> tuple[Value]:
            return (_either(emitter, found[0], rotate(number, *_pair(emitter, n, number, turn))),)

        def follow(number: Index, nothing: tuple[Value, ...]) -> tuple[Value, ...]:
            assert after is not None
            after(number, *_pair(emitter, n, number, turn))
            return nothing

        (rotated,) = emitter.loop(pairs, (emitter.literal(BOOL, 0),), one)
        if after is not None:
            emitter.only(rotated, lambda: _nothing(emitter.loop(pairs, (), follow)))
        return (_either(emitter, carried[0], rotated),)

    def sweep(index: Index, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        def again() -> Value:
            (rotated,) = emitter.loop(n - 1 + n % 2, (emitter.literal(BOOL, 0),), one_round)
            return emitter.apply("not", (rotated,), BOOL)

        return (emitter.either(carried[0], lambda: emitter.literal(BOOL, 1), again, BOOL),)

    if pairs:
        emitter.loop(count, (done,), sweep)


def _nothing(values: tuple[Value, ...]) -> None:
    assert not values


def _either(emitter: Emitter, x: Value, y: Value) -> Value:
    return emitter.apply("or", (x, y), BOOL)


def _surveyed(
    emitter: Emitter, field: Numbers, rows: int, columns: int, read: Callable[[Index, Index], Value]
) -> tuple[Value, Value]:
    """The greatest magnitude of a part of a matrix's elements, and whether all of them are finite."""

    def along(i: Index, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        def one(j: Index, known: tuple[Value, ...]) -> tuple[Value, ...]:
            best, finite = known
            for part in field.parts(read(i, j)):
                size = field.magnitude(part)
                best = field.select(field.greater(size, best), size, best)
                finite = field.both(finite, emitter.apply("is_finite", (part,), BOOL))
            return best, finite

        return emitter.loop(columns, carried, one)

    greatest, finite = emitter.loop(rows, (field.number(0), emitter.literal(BOOL, 1)), along)
    return greatest, finite


def _sorted(emitter: Emitter, values: Array, direction: str) -> Array:
    """Which of the values comes at each place in order; equal ones keep theirs. With "GT" descending, "LT" ascending;
    a NaN is greater than every number."""
    (n,) = values.shape
    ranks, order = Array(emitter, INT64, n), Array(emitter, INT64, n)

    def before(one: Value, other: Value) -> Value:
        if direction == "GT":
            return beats(emitter, one, other, "GT")
        return beats(emitter, other, one, "GT")

    def rank(i: Index) -> None:
        def count(j: Index, carried: tuple[Value, ...]) -> tuple[Value]:
            here, there = values.at(i), values.at(j)
            earlier = compare(emitter, emitter.position(j), emitter.position(i), "LT")
            same = emitter.apply("not", (before(here, there),), BOOL)
            first = _either(emitter, before(there, here), emitter.apply("and", (same, earlier), BOOL))
            return (emitter.apply("add", (carried[0], emitter.convert(first, INT64))),)

        ranks.put(emitter.loop(n, (emitter.literal(INT64, 0),), count)[0], i)

    def find(place: Index) -> None:
        def look(i: Index, carried: tuple[Value, ...]) -> tuple[Value]:
            here = compare(emitter, ranks.at(i), emitter.position(place), "EQ")
            return (emitter.apply("select", (here, emitter.position(i), carried[0]), INT64),)

        order.put(emitter.loop(n, (emitter.literal(INT64, 0),), look)[0], place)

    emitter.each((n,), lambda place: rank(place[0]))
    emitter.each((n,), lambda place: find(place[0]))
    return order


def _identity(emitter: Emitter, field: Numbers, n: int) -> Array:
    x = Array(emitter, field.dtype, n, n)
    over(emitter, n, n, lambda i, j: x.put(unit(emitter, field, i, j), i, j))
    return x


def _eigh(emitter: Emitter, frame: Frame, node: Node) -> None:
    batch_shape, (n, _) = sizes_of(node.types[1])
    lower = node.attrs.get("lower", True)
    batch = emitter.space(batch_shape)
    values, vectors = Result(emitter, node, 0, batch), Result(emitter, node, 1, batch)
    if not node.types[1].size:
        return
    field, operand = Numbers(emitter, node.types[1].dtype), operand_of(emitter, frame, node.inputs[0], batch)
    # both transposed, so that columns lie along memory
    a = Array(emitter, field.dtype, n, n)

    def given(i: Index, j: Index) -> None:
        near = [Bound(ix.total([(1, i), (-1, j)] if lower else [(1, j), (-1, i)]), 0, n)]
        x = emitter.choose(near, lambda: operand(i, j), lambda: field.conjugate(operand(j, i)), field.dtype)
        if field.dtype.is_complex:
            same = compare(emitter, emitter.position(i), emitter.position(j), "EQ")
            x = field.select(same, field.from_real(field.parts(x)[0]), x)
        a.put(field.canonical(x), j, i)

    over(emitter, n, n, given)
    greatest, finite = _surveyed(emitter, field, n, n, lambda i, j: a.at(j, i))
    threshold = field.multiply(greatest, _literal(field, 1, -field.part.float_format.precision))
    v = _identity(emitter, field, n)
    pairs = max(n // 2, 1)
    active = Array(emitter, BOOL, pairs)
    kept = [Array(emitter, field.part, pairs) for _ in range(4)]
    phases = Array(emitter, field.dtype, pairs) if field.dtype.is_complex else None

    def columns(number: Index, p: Index, q: Index) -> Value:
        off = field.conjugate(a.at(p, q))
        rotates = field.greater(field.modulus(off), threshold)
        active.put(rotates, number)

        def rotate() -> None:
            first, second = field.parts(a.at(p, p))[0], field.parts(a.at(q, q))[0]
            turn = _rotation(field, first, second, off)
            shift = turn.shift()
            diagonal = field.subtract(first, shift), field.add(second, shift)
            for array, value in zip(kept, (turn.c, turn.s, *diagonal), strict=True):
                array.put(value, number)
            if phases is not None and turn.phase is not None:
                phases.put(turn.phase, number)
            _rows(emitter, field, a, (p, q), turn)
            _rows(emitter, field, v, (p, q), turn)

        emitter.only(rotates, rotate)
        return rotates

    def rows(number: Index, p: Index, q: Index) -> None:
        c, s, first, second = (array.at(number) for array in kept)
        phase = None if phases is None else phases.at(number)

        def element(j: Index) -> None:
            mixed = _mixed(field, a.at(j, p), a.at(j, q), c, s, phase)
            for k, value in zip((p, q), mixed, strict=True):
                a.put(value, j, k)

        emitter.each((n,), lambda place: element(place[0]))
        a.put(field.zero, p, q)
        a.put(field.zero, q, p)
        a.put(field.from_real(first), p, p)
        a.put(field.from_real(second), q, q)

    def follow(number: Index, p: Index, q: Index) -> None:
        emitter.only(active.at(number), lambda: rows(number, p, q))

    _sweeps(emitter, n, SWEEPS_OF_EIGH, emitter.apply("not", (finite,), BOOL), columns, follow)
    diagonal = Array(emitter, field.part, n)
    emitter.each((n,), lambda place: diagonal.put(field.parts(a.at(place[0], place[0]))[0], place[0]))
    order = _sorted(emitter, diagonal, "LT")

    def finished(i: Index, j: Index) -> None:
        found = v.at(from_value(order.at(j), 0, n - 1), i)
        vectors.put(field.canonical(field.select(finite, found, field.nan())), i, j)

    def value(j: Index) -> None:
        found = diagonal.at(from_value(order.at(j), 0, n - 1))
        values.put(field.canonical(field.select(finite, found, field.nan(field.part))), j)

    over(emitter, n, n, finished)
    emitter.each((n,), lambda place: value(place[0]))


def _svd(emitter: Emitter, frame: Frame, node: Node) -> None:
    batch_shape, sizes = sizes_of(frame.type(node.inputs[0]))
    full = node.attrs.get("full_matrices", False)
    batch = emitter.space(batch_shape)
    left, values, right = (Result(emitter, node, number, batch) for number in range(3))
    wide = sizes[0] < sizes[1]
    m, n = max(sizes), min(sizes)
    if 0 in batch_shape or not m or not (n or full):
        return
    field, operand = Numbers(emitter, node.types[0].dtype), operand_of(emitter, frame, node.inputs[0], batch)
    # a wide matrix is decomposed as its adjoint
    tall, square = (right, left) if wide else (left, right)

    def fill(result: Result, rows: int, columns: int, element: Callable[[Index, Index], Value]) -> None:
        """U or V of the matrix that is decomposed: one of both is a result as its adjoint."""
        if result is right:
            over(
                emitter,
                columns,
                rows,
                lambda j, i: result.put(field.canonical(field.conjugate(element(i, j))), j, i),
            )
        else:
            over(emitter, rows, columns, lambda i, j: result.put(field.canonical(element(i, j)), i, j))

    if not n:
        fill(tall, m, m, lambda i, j: unit(emitter, field, i, j))
        return
    # transposed, so that columns lie along memory
    x = Array(emitter, field.dtype, n, m)

    def given(i: Index, j: Index) -> None:
        if wide:
            x.put(field.canonical(field.conjugate(operand(i, j))), i, j)
        else:
            x.put(field.canonical(operand(i, j)), j, i)

    over(emitter, sizes[0], sizes[1], given)
    greatest, finite = _surveyed(emitter, field, m, n, lambda i, j: x.at(j, i))
    scale = _binade(field, greatest)
    over(emitter, n, m, lambda j, i: x.put(field.shrink(x.at(j, i), scale), j, i))
    v = _identity(emitter, field, n)
    precision, factor = field.part.float_format.precision, isqrt(m) + 1
    small = 4 * factor < 1 << precision
    relative = _literal(field, factor, -precision) if small else _literal(field, 1, -2)

    def squares(column: Index) -> Value:
        def term(i: Index, total: tuple[Value, ...]) -> tuple[Value]:
            result = total[0]
            for part in field.parts(x.at(column, i)):
                result = field.add(result, field.multiply(part, part))
            return (result,)

        return emitter.loop(m, (field.number(0),), term)[0]

    def columns(number: Index, p: Index, q: Index) -> Value:
        def term(i: Index, total: tuple[Value, ...]) -> tuple[Value]:
            return (field.add(total[0], field.multiply(field.conjugate(x.at(p, i)), x.at(q, i))),)

        first, second = squares(p), squares(q)
        (inner,) = emitter.loop(m, (field.zero,), term)
        bound = field.multiply(field.multiply(field.sqrt(first), field.sqrt(second)), relative)
        rotates = field.greater(field.modulus(inner), bound)

        def rotate() -> None:
            turn = _rotation(field, first, second, inner)
            _rows(emitter, field, x, (p, q), turn)
            _rows(emitter, field, v, (p, q), turn)

        emitter.only(rotates, rotate)
        return rotates

    _sweeps(emitter, n, SWEEPS_OF_SVD, emitter.apply("not", (finite,), BOOL), columns)
    norms = Array(emitter, field.part, n)
    emitter.each((n,), lambda place: norms.put(field.sqrt(squares(place[0])), place[0]))
    order = _sorted(emitter, norms, "GT")

    def place_of(j: Index) -> Index:
        return from_value(order.at(j), 0, n - 1)

    def value(j: Index) -> None:
        found = field.multiply(norms.at(place_of(j)), scale)
        values.put(field.canonical(field.select(finite, found, field.nan(field.part))), j)

    emitter.each((n,), lambda place: value(place[0]))
    fill(square, n, n, lambda i, j: field.select(finite, v.at(place_of(j), i), field.nan()))
    u = Array(emitter, field.dtype, m, n)

    def normed(i: Index, j: Index) -> None:
        norm = norms.at(place_of(j))
        u.put(field.shrink(x.at(place_of(j), i), field.select(field.is_zero(norm), field.number(1), norm)), i, j)

    over(emitter, m, n, normed)
    q = _completed(emitter, field, u, norms, m if full else n)

    def kept(i: Index, j: Index) -> None:
        missing = field.is_zero(norms.at(place_of(j)))
        q.put(emitter.either(missing, lambda: q.at(i, j), lambda: u.at(i, j), field.dtype), i, j)

    over(emitter, m, n, kept)
    fill(tall, m, q.shape[1], lambda i, j: field.select(finite, q.at(i, j), field.nan()))


def _completed(emitter: Emitter, field: Numbers, u: Array, norms: Array, columns: int) -> Array:
    """An orthonormal complement of the columns of u that are not zero, in the place of those that are and behind them;
    with nothing in its place where all are there."""
    m, n = u.shape
    packed, taus, q = (Array(emitter, field.dtype, *shape) for shape in ((m, n), (n,), (m, columns)))

    def complete() -> None:
        over(emitter, m, n, lambda i, j: packed.put(u.at(i, j), i, j))
        factored(emitter, field, packed, taus)
        product(emitter, field, q, n, packed.at, taus.at)

    def look(j: Index, found: tuple[Value, ...]) -> tuple[Value]:
        return (_either(emitter, found[0], field.is_zero(norms.at(j))),)

    if columns > n:
        complete()
    else:
        emitter.only(emitter.loop(n, (emitter.literal(BOOL, 0),), look)[0], complete)
    return q


def _literal(field: Numbers, factor: int, exponent: int) -> Value:
    """factor * 2^exponent as a real number, rounded once."""
    word = round_exact(field.part.float_format, 0, factor, exponent)[0]
    return field.emitter.literal(field.part, word)


def _binade(field: Numbers, x: Value) -> Value:
    """The greatest power of two not above a magnitude, at least the least normal number; 1 for zero. It is found bit by
    bit of its exponent: a power of two goes on as long as what it becomes is not above x."""
    fmt = field.part.float_format
    found = field.emitter.literal(field.part, fmt.min_normal)
    for step in _steps_of_exponents(fmt):
        more = field.multiply(found, _literal(field, 1, step))
        room = compare(field.emitter, found, _literal(field, 1, fmt.emax - step), "LE")
        fits = field.both(room, compare(field.emitter, more, x, "LE"))
        found = field.select(fits, more, found)
    return field.select(field.is_zero(x), field.number(1), found)


def _steps_of_exponents(fmt: Format) -> list[int]:
    """Powers of two, descending, whose sums are all differences of exponents; each is an exponent itself."""
    if fmt.emax < 1:
        raise Refused("its powers of two do not go beyond 1")
    greatest = 1 << (fmt.emax.bit_length() - 1)
    often = max(1, -(-(fmt.emax - fmt.emin - greatest + 1) // greatest))
    return [greatest] * often + [1 << bit for bit in reversed(range(greatest.bit_length() - 1))]


EMITS: dict[str, Emit] = {"eigh": _eigh, "svd": _svd}
