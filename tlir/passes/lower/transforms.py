"""Fourier transforms: a kernel for some levels of the recursion at a time, each sum in the order that the operation
states.

At a level that is reached through factors with the product s, there are s transforms of m = n / s elements each.
Element k of transform number r is at k s + r, so what a level reads and what it writes both lie in order (Stockham's
arrangement): the operand's own elements are the innermost level, and the outermost one is the result. One iteration of
a kernel takes the few elements that its levels combine, so they are read and written once. Between kernels real and
imaginary parts are arrays of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from tlir.ir.graph import Ref
from tlir.ir.types import DType, TensorType, complex_of
from tlir.kernel import index as ix
from tlir.kernel.index import ZERO, Index, flatten, from_value
from tlir.kernel.ir import Bound, Value
from tlir.kernel.tables import table
from tlir.passes.lower.costs import PROCESSOR
from tlir.passes.lower.emitter import INT64, Emitter, Frame
from tlir.passes.lower.places import Place
from tlir.passes.lower.reduction import compare, has_nan
from tlir.passes.lower.series import Plan, Series
from tlir.passes.lower.sorting import nothing
from tlir.passes.lower.words import Word, integer_word, word_at

MANY, FEW = 16, 8
"""The most elements that one iteration combines in short and in long transforms: in long ones they are so far apart
that caches have few places for them. A longer sum is a loop, and every sum in formats of many instructions."""

SHORT = 4096
"""Elements of the longest short transform."""

Read = Callable[[Emitter, Frame, Place], Value]
Write = Callable[[Emitter, Place, Value], None]


@dataclass(frozen=True)
class Axis:
    """A transform of ``size`` elements along one axis. ``around`` has the sizes of the other ones, and ``kept`` says
    how many results of this one are wanted."""

    around: tuple[int, ...]
    axis: int
    size: int
    kept: int
    dtype: DType
    inverse: bool

    def place(self, other: Place, position: Index) -> Place:
        return (*other[: self.axis], position, *other[self.axis :])

    def space(self, emitter: Emitter, *inner: int) -> tuple[Place, Place]:
        """A space of all other axes, those in front of this one outermost, with ``inner`` in the place of this one."""
        places = emitter.space([*self.around[: self.axis], *inner, *self.around[self.axis :]])
        return (*places[: self.axis], *places[self.axis + len(inner) :]), places[self.axis : self.axis + len(inner)]

    def shape(self, size: int) -> tuple[int, ...]:
        """The shape of an array with so many elements along this axis."""
        return (*self.around[: self.axis], size, *self.around[self.axis :])

    @property
    def functions(self) -> tuple[str, str]:
        return "cosine", "sine" if self.inverse else "minus_sine"


def prime_factors(n: int) -> list[int]:
    """In ascending order."""
    factors = []
    p = 2
    while p * p <= n:
        while n % p == 0:
            factors.append(p)
            n //= p
        p += 1
    return [*factors, n] if n > 1 else factors


def grouped(factors: Sequence[int]) -> list[list[int]]:
    """The factors in runs whose products are at most what one iteration combines, or of one."""
    most = FEW if prod(factors) > SHORT else MANY
    runs: list[list[int]] = []
    for factor in factors:
        if runs and prod(runs[-1]) * factor <= most:
            runs[-1].append(factor)
        else:
            runs.append([factor])
    return runs


# ---- arrays between kernels -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Parts:
    """Complex numbers as two arrays of their parts."""

    refs: tuple[Ref, Ref]
    type: TensorType
    dtype: DType

    def read(self, emitter: Emitter, frame: Frame, place: Place) -> Value:
        offset = flatten(place, self.type.shape)
        parts = [emitter.load(emitter.input(ref, self.type), offset) for ref in self.refs]
        return emitter.apply("complex", parts, self.dtype)

    def write(self, emitter: Emitter, place: Place, value: Value) -> None:
        offset = flatten(place, self.type.shape)
        for ref, part in zip(self.refs, ("real", "imag"), strict=True):
            emitter.store(emitter.output(ref, self.type), offset, emitter.apply(part, (value,), self.type.dtype))


def _parts(series: Series, shape: tuple[int, ...], dtype: DType) -> _Parts:
    type = TensorType(shape, dtype.component)
    return _Parts((series.between(type), series.between(type)), type, dtype)


# ---- one axis -------------------------------------------------------------------------------------------------------


def _along(series: Series, axis: Axis, read: Read, write: Write) -> None:
    """The kernels of a transform of more than one element along one axis."""
    short = axis.dtype.component.name in PROCESSOR
    factors = prime_factors(axis.size)
    runs = grouped(factors) if short else [[factor] for factor in factors]
    for number in reversed(range(len(runs))):
        outside = prod(prod(run) for run in runs[:number])
        target, to = None, write
        if number:
            target = _parts(series, axis.shape(axis.size), axis.dtype)
            to = target.write
        emit = _Levels(series, axis, outside, tuple(runs[number]), read, to, axis.kept if not number else axis.size)
        long = len(runs[number]) == 1 and runs[number][0] > FEW
        series.kernel(emit.unrolled if short and not long else emit.loop)
        if target is not None:
            read = target.read


@dataclass(frozen=True)
class _Levels:
    """Levels of the recursion with the factors ``run``, outermost first, inside others with the product ``outside``."""

    series: Series
    axis: Axis
    outside: int
    run: tuple[int, ...]
    read: Read
    write: Write
    kept: int

    @property
    def length(self) -> int:
        """Elements of each transform of the outermost of these levels."""
        return self.axis.size // self.outside

    def unrolled(self, emitter: Emitter, frame: Frame) -> None:
        count = prod(self.run)
        below = self.length // count
        other, (k, s) = self.axis.space(emitter, below, self.outside)

        def load(u: int) -> Value:
            position = ix.total([(self.outside * count, k), (1, s)], self.outside * u)
            return self.read(emitter, frame, self.axis.place(other, position))

        results = self._combined(emitter, load, 0, 0, 1, k)
        for v, value in enumerate(results):
            at = ix.total([(self.outside, k), (1, s)], self.outside * below * v)
            self._put(emitter, other, at, value)

    def _put(self, emitter: Emitter, other: Place, at: Index, value: Value) -> None:
        """Write a result if it is wanted."""
        if at.greatest < self.kept:
            self.write(emitter, self.axis.place(other, at), value)
        elif at.least < self.kept:
            last = emitter.literal(INT64, self.kept - 1)
            inside = from_value(emitter.apply("minimum", (emitter.position(at), last)), 0, self.kept - 1)
            condition = emitter.holds((Bound(at, 0, self.kept),))
            emitter.only(condition, lambda: self.write(emitter, self.axis.place(other, inside), value))

    def _combined(
        self, emitter: Emitter, load: Callable[[int], Value], depth: int, first: int, step: int, k: Index
    ) -> list[Value]:
        """The transform of elements ``first``, ``first + step``, … of those that an iteration takes: its results at k,
        k + m', k + 2 m', … where m' are the elements of each transform of the levels further inside."""
        if depth == len(self.run):
            return [load(first)]
        p = self.run[depth]
        inner = [self._combined(emitter, load, depth + 1, first + step * r, step * p, k) for r in range(p)]
        width = len(inner[0])
        length = self.length // prod(self.run[:depth])
        below = length // (width * p)
        results = []
        for v in range(width * p):
            total = inner[0][v % width]
            for r in range(1, p):
                exponent = ix.remainder(ix.total([(r, k)], r * below * v), length)
                root = self._root(emitter, exponent, length)
                product = emitter.apply("multiply", (root, inner[r][v % width]))
                total = emitter.apply("add", (total, product))
            results.append(total)
        return results

    def _root(self, emitter: Emitter, exponent: Index, order: int) -> Value:
        """exp(-2 pi i / order), or of + for the inverse, to a power below the order."""
        dtype, component = self.axis.dtype, self.axis.dtype.component
        if exponent.is_constant:
            words: list[Word] = []
            for function in self.axis.functions:
                words.append(word_at(table(function, TensorType((order,), component)), exponent.constant))
            real, imag = words
            assert isinstance(real, int)
            assert isinstance(imag, int)
            return emitter.literal(dtype, (real, imag))
        place = ix.multiply(exponent, self.axis.size // order)
        parts = []
        for function in self.axis.functions:
            ref = self.series.table(function, component, self.axis.size)
            parts.append(emitter.load(emitter.input(ref, self.series.type(ref)), place))
        return emitter.apply_once("complex", parts, dtype, {})

    def loop(self, emitter: Emitter, frame: Frame) -> None:
        """One level whose sum is a loop."""
        (p,) = self.run
        wanted = -(-self.kept // self.outside)
        other, (k, s) = self.axis.space(emitter, wanted, self.outside)
        below = self.length // p

        def element(r: Index) -> Value:
            rest = ix.remainder(k, below)
            position = ix.total([(self.outside * p, rest), (1, s), (self.outside, r)])
            return self.read(emitter, frame, self.axis.place(other, position))

        order = emitter.literal(INT64, self.length)
        own = emitter.position(k)

        def step(index: Index, carried: tuple[Value, ...]) -> tuple[Value, ...]:
            total, exponent = carried
            root = self._root(emitter, from_value(exponent, 0, self.length - 1), self.length)
            product = emitter.apply("multiply", (root, element(ix.add(index, 1))))
            following = emitter.apply("add", (exponent, own))
            around = emitter.apply("subtract", (following, order))
            more = emitter.apply("select", (compare(emitter, following, order, "GE"), around, following), INT64)
            return emitter.apply("add", (total, product)), more

        total, _ = emitter.loop(p - 1, (element(ZERO), own), step)
        self._put(emitter, other, ix.total([(self.outside, k), (1, s)]), total)


# ---- the operation --------------------------------------------------------------------------------------------------


def _fft(series: Series) -> None:
    node, attrs = series.node, series.node.attrs
    (operand,), kind, lengths = node.inputs, attrs["fft_type"], attrs["fft_length"]
    (result,) = node.types
    if not result.size:
        nothing(series)
        return
    given = series.type(operand)
    dtype = complex_of(given.dtype) if kind == "RFFT" else given.dtype
    shape, first = list(given.shape), given.rank - len(lengths)
    ahead = list(range(first, given.rank - 1))[::-1]
    order = [*ahead, given.rank - 1] if kind == "IRFFT" else [given.rank - 1, *ahead]
    axes = []
    for number in order:
        size = lengths[number - first]
        last = number == given.rank - 1
        kept = size // 2 + 1 if kind == "RFFT" and last else size
        if size > 1:
            axes.append(Axis((*shape[:number], *shape[number + 1 :]), number, size, kept, dtype, kind[0] == "I"))
        shape[number] = kept
    read = _operand(operand, kind, dtype)
    for step, axis in enumerate(axes):
        if kind == "IRFFT" and axis.axis == given.rank - 1:
            read = _extended(read, axis)
        final = step == len(axes) - 1
        target = None if final else _parts(series, axis.shape(axis.kept), dtype)
        write = _result(series, kind, dtype, prod(lengths)) if target is None else target.write
        _along(series, axis, read, write)
        if target is not None:
            read = target.read
    if not axes:
        series.kernel(_copy(read, _result(series, kind, dtype, prod(lengths)), result, canonical=kind[0] != "I"))


def _operand(ref: Ref, kind: str, dtype: DType) -> Read:
    def read(emitter: Emitter, frame: Frame, place: Place) -> Value:
        value = emitter.operand(frame, ref, place)
        return value if kind != "RFFT" else _from_real(emitter, value, dtype)

    return read


def _from_real(emitter: Emitter, value: Value, dtype: DType) -> Value:
    zero = integer_word(dtype.component, 0)
    return emitter.apply("complex", (value, emitter.literal(dtype.component, zero)), dtype)


def _result(series: Series, kind: str, dtype: DType, count: int) -> Write:
    """Writes an element of the result: for an inverse transform divided by how many elements there are."""
    (ref,), component = series.results, dtype.component

    def write(emitter: Emitter, place: Place, value: Value) -> None:
        if kind[0] == "I":
            number = emitter.literal(component, integer_word(component, count))
            names = ("real",) if kind == "IRFFT" else ("real", "imag")
            parts = [emitter.apply("divide", (emitter.apply(name, (value,), component), number)) for name in names]
            value = parts[0] if kind == "IRFFT" else emitter.apply("complex", parts, dtype)
        type = series.type(ref)
        emitter.store(emitter.output(ref, type), flatten(place, type.shape), value)

    return write


def _extended(read: Read, axis: Axis) -> Read:
    """The elements of a last axis of which there are the first n/2 + 1, those behind conjugate."""
    n, half, component = axis.size, (axis.size - 1) // 2, axis.dtype.component

    def extended(emitter: Emitter, frame: Frame, place: Place) -> Value:
        *other, position = place

        def at(index: Index) -> Value:
            return read(emitter, frame, (*other, index))

        def alone(index: Index) -> Value:
            return _from_real(emitter, emitter.apply("real", (at(index),), component), axis.dtype)

        def mirrored() -> Value:
            return emitter.apply("conjugate", (at(ix.total([(-1, position)], n)),))

        def behind() -> Value:
            if n % 2:
                return mirrored()
            middle = (Bound(position, n // 2, n // 2 + 1),)
            return emitter.choose(middle, lambda: alone(ix.constant(n // 2)), mirrored, axis.dtype)

        def ahead() -> Value:
            inside = (Bound(position, 1, half + 1),)
            return emitter.choose(inside, lambda: at(position), behind, axis.dtype)

        return emitter.choose((Bound(position, 0, 1),), lambda: alone(ZERO), ahead, axis.dtype)

    return extended


def _copy(read: Read, write: Write, type: TensorType, canonical: bool) -> Callable[[Emitter, Frame], None]:
    """Transforms of one element: the elements; ``canonical``: every NaN made the canonical one."""

    def emit(emitter: Emitter, frame: Frame) -> None:
        place = emitter.space(type.shape)
        value = read(emitter, frame, place)
        part = value.dtype.component
        if canonical and has_nan(part):
            parts = [emitter.apply(name, (value,), part) for name in ("real", "imag")]
            parts = [emitter.apply("maximum", (x, x), part) for x in parts]
            value = emitter.apply("complex", parts, value.dtype)
        write(emitter, place, value)

    return emit


SERIES: dict[str, Plan] = {"fft": _fft}
