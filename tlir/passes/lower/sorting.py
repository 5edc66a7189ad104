"""Sorting and the greatest elements: runs are sorted in registers and then merged, each result in as many parts as
there is work for side by side.

Elements are moved and compared, by the rules that ``sort`` states; nothing else is done to them. Sorting is stable: an
element passes another one only where it comes strictly before it.

Where a part of a merged run begins is found by bisection along the path that merging takes: of the first d elements,
the i that come from the first run are those for which ``first[i]`` does not come after ``second[d - 1 - i]`` (Odeh,
Green, Mwassi, Shmueli and Birk, Merge Path, 2012).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from tlir.ir.graph import Ref
from tlir.ir.types import BOOL, NAMED, DType, TensorType
from tlir.kernel import index as ix
from tlir.kernel.index import Index, flatten, from_value
from tlir.kernel.ir import Block, Bound, Branch, Value
from tlir.passes.lower.costs import PROCESSOR
from tlir.passes.lower.emitter import INT64, Emitter, Frame
from tlir.passes.lower.places import Place
from tlir.passes.lower.reduction import compare, has_nan
from tlir.passes.lower.series import Plan, Series
from tlir.passes.lower.words import blank_word

RUN, SHORT_RUN = 8, 4
"""Elements that are sorted in registers; where comparing two of them takes many instructions."""

PARTS = 1 << 13
"""So many parts of results are wanted side by side …"""

SHORTEST, LONGEST = 16, 128
"""… of so many elements each."""

SELECTED = 32
"""The most elements that are selected on one way through a row instead of sorting it …"""

PER_SELECTED = 4
"""… of at least so many elements for each."""

FEWEST_ROWS = 1 << 10
"""Rows that are enough side by side; fewer are selected from in pieces first."""

Values = tuple[Value, ...]
Read = Callable[[Emitter, Frame, Place, Index], Values]
"""An element of each column, at a row and a position in it."""


@dataclass(frozen=True)
class Rows:
    """What is sorted along one axis of ``size`` elements: ``around`` are the other axes, ``columns`` the dtypes of what
    is moved together, the first ``keys`` of which decide."""

    around: tuple[int, ...]
    axis: int
    size: int
    columns: tuple[DType, ...]
    keys: int
    descending: bool

    def place(self, row: Place, position: Index) -> Place:
        """Where an element is in an array of the axes as they were."""
        return (*row[: self.axis], position, *row[self.axis :])


# ---- values ---------------------------------------------------------------------------------------------------------


def _both(emitter: Emitter, x: Value, y: Value) -> Value:
    return emitter.apply("and", (x, y), BOOL)


def _not(emitter: Emitter, x: Value) -> Value:
    return emitter.apply("not", (x,), BOOL)


def _either(emitter: Emitter, condition: Value, xs: Sequence[Value], ys: Sequence[Value]) -> Values:
    """``xs`` where the condition holds and ``ys`` elsewhere."""
    results = tuple(emitter.value(x.dtype) for x in xs)
    emitter.add(Branch(results, condition, Block((), tuple(xs)), Block((), tuple(ys))), results)
    return results


def _less(emitter: Emitter, x: Value, y: Value) -> Value:
    """Whether x is less than y, every NaN being greater than all numbers and equal to each other."""
    if not has_nan(x.dtype):
        return compare(emitter, x, y, "LT")
    return _both(emitter, _not(emitter, compare(emitter, x, y, "GE")), compare(emitter, x, x, "EQ"))


def _before(emitter: Emitter, rows: Rows, xs: Values, ys: Values) -> Value:
    """Whether ``xs`` has to come before ``ys``; False where both are equal."""
    if rows.descending:
        xs, ys = ys, xs
    pairs: list[tuple[Value, Value]] = []
    for x, y in zip(xs[: rows.keys], ys[: rows.keys], strict=True):
        if x.dtype.is_complex:
            part = x.dtype.component
            pairs += [(emitter.apply(op, (x,), part), emitter.apply(op, (y,), part)) for op in ("real", "imag")]
        else:
            pairs.append((x, y))
    decided = _less(emitter, *pairs[-1])
    for x, y in reversed(pairs[:-1]):
        equal = _both(emitter, _not(emitter, _less(emitter, y, x)), decided)
        decided = emitter.apply("or", (_less(emitter, x, y), equal), BOOL)
    return decided


class _Positions:
    """Integers of a width that holds the positions in a row, in one kernel."""

    def __init__(self, emitter: Emitter, size: int) -> None:
        self.emitter = emitter
        self.dtype = NAMED["int32"] if size < 1 << 30 else INT64

    def __call__(self, value: int | Index) -> Value:
        if isinstance(value, int):
            return self.emitter.literal(self.dtype, value)
        if value.is_constant:
            return self.emitter.literal(self.dtype, value.constant)
        return self.emitter.convert(self.emitter.position(value), self.dtype)

    def add(self, x: Value, y: Value) -> Value:
        return self.emitter.apply("add", (x, y))

    def subtract(self, x: Value, y: Value) -> Value:
        return self.emitter.apply("subtract", (x, y))

    def least(self, x: Value, y: Value) -> Value:
        return self.emitter.apply("minimum", (x, y))

    def less(self, x: Value, y: Value) -> Value:
        return compare(self.emitter, x, y, "LT")


# ---- arrays between kernels -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Arrays:
    """Columns of rows that lie one after the other, of ``width`` elements each; those behind the row's own size mean
    nothing."""

    refs: tuple[Ref, ...]
    types: tuple[TensorType, ...]
    width: int

    def read(self, emitter: Emitter, frame: Frame, row: Place, position: Index) -> Values:
        offset = flatten((*row, position), self.types[0].shape)
        return tuple(
            emitter.load(emitter.input(ref, type), offset) for ref, type in zip(self.refs, self.types, strict=True)
        )

    def write(self, emitter: Emitter, row: Place, position: Index, values: Values) -> None:
        offset = flatten((*row, position), self.types[0].shape)
        for ref, type, value in zip(self.refs, self.types, values, strict=True):
            emitter.store(emitter.output(ref, type), offset, value)


def _arrays(series: Series, rows: Rows, width: int) -> _Arrays:
    types = tuple(TensorType((*rows.around, width), dtype) for dtype in rows.columns)
    return _Arrays(tuple(map(series.between, types)), types, width)


def _padded(size: int, part: int) -> int:
    return -(-size // part) * part


Write = Callable[[Emitter, Place, Index, Values], None]


def _to_results(series: Series, rows: Rows) -> Write:
    """Writes an element of each of the node's results."""

    def write(emitter: Emitter, row: Place, position: Index, values: Values) -> None:
        place = rows.place(row, position)
        for ref, value in zip(series.results, values, strict=True):
            type = series.type(ref)
            emitter.store(emitter.output(ref, type), flatten(place, type.shape), value)

    return write


# ---- sorting --------------------------------------------------------------------------------------------------------


def _merge_sort(series: Series, rows: Rows, read: Read, count: int) -> None:
    """The first ``count`` elements of each row in order."""
    results = _to_results(series, rows)
    components = {dtype.component.name for dtype in rows.columns[: rows.keys] if dtype.is_float or dtype.is_complex}
    run = RUN if components <= PROCESSOR else SHORT_RUN
    if rows.size <= run:
        series.kernel(lambda emitter, frame: _sort_runs(emitter, frame, rows, read, rows.size, results, count))
        return
    runs = arrays = _arrays(series, rows, _padded(rows.size, run))
    first = run
    series.kernel(lambda emitter, frame: _sort_runs(emitter, frame, rows, read, first, runs.write, runs.width))
    size = rows.size
    while run < size:
        # once runs have all elements that are wanted, so many of each pair of them are enough
        kept = 2 * run if run < count else run
        last = 2 * run >= size
        pairs = -(-size // (2 * run))
        after = count if last else (pairs - 1) * kept + min(kept, size - (pairs - 1) * 2 * run)
        part = min(_part(rows, after), kept)
        target = None if last else _arrays(series, rows, _padded(after, part))
        write = results if target is None else target.write
        series.kernel(_Merge(rows, run, kept, part, arrays, size, write, after, ragged=last).emit)
        if target is not None:
            arrays, size, run = target, after, kept
        else:
            break


def _part(rows: Rows, size: int) -> int:
    """How many elements of rows of ``size`` are merged in one iteration."""
    wanted = prod(rows.around) * size // PARTS
    return min(max(1 << max(wanted, 1).bit_length() - 1, SHORTEST), LONGEST)


def _sort_runs(emitter: Emitter, frame: Frame, rows: Rows, read: Read, run: int, write: Write, count: int) -> None:
    """Each run of a row sorted by exchanges of neighbours, of which the first ``count`` elements in all are written."""
    *row, block = emitter.space([*rows.around, -(-rows.size // run)])
    elements: list[Values] = []
    exists: list[Value | None] = []
    for k in range(run):
        position = ix.total([(run, block)], k)
        bounds = (Bound(position, 0, rows.size),)
        if position.greatest < rows.size:
            exists.append(None)
            elements.append(read(emitter, frame, tuple(row), position))
            continue
        exists.append(emitter.holds(bounds))
        inside = from_value(
            emitter.apply("minimum", (emitter.position(position), emitter.literal(INT64, rows.size - 1))),
            0,
            rows.size - 1,
        )
        elements.append(read(emitter, frame, tuple(row), inside))
    for turn in range(run):
        for k in range(turn % 2, run - 1, 2):
            first, second = elements[k : k + 2]
            exchange = _before(emitter, rows, second, first)
            # what is not there stays behind all that is
            if (there := exists[k + 1]) is not None:
                exchange = _both(emitter, there, exchange)
            both = _either(emitter, exchange, (*second, *first), (*first, *second))
            elements[k], elements[k + 1] = both[: len(first)], both[len(first) :]
    for k, element in enumerate(elements):
        position = ix.total([(run, block)], k)
        if position.greatest < count:
            write(emitter, tuple(row), position, element)


@dataclass(frozen=True)
class _Merge:
    """Pairs of sorted runs of ``run`` elements merged, ``part`` elements of the result in one iteration: the first
    ``kept`` of each pair, until there are ``wanted`` of each row. ``size``: the elements of a row of ``source``.
    ``ragged``: nothing is written behind those that are wanted."""

    rows: Rows
    run: int
    kept: int
    part: int
    source: _Arrays
    size: int
    write: Write
    wanted: int
    ragged: bool

    def emit(self, emitter: Emitter, frame: Frame) -> None:
        rows, number = self.rows, _Positions(emitter, self.source.width + 2 * self.run)
        *around, chunk = emitter.space([*rows.around, -(-self.wanted // self.part)])
        row = tuple(around)
        first = ix.multiply(chunk, self.part)
        begin = number(ix.multiply(ix.quotient(first, self.kept), 2 * self.run))
        along = number(ix.remainder(first, self.kept))
        end, last, length = number(self.size), number(self.source.width - 1), number(self.run)
        middle = number.least(number.add(begin, length), end)
        stop = number.least(number.add(middle, length), end)

        def at(position: Value) -> Values:
            inside = from_value(number.least(position, last), 0, self.source.width - 1)
            return self.source.read(emitter, frame, row, inside)

        taken = self._bisect(emitter, number, at, begin, middle, stop, along)
        left = number.add(begin, taken)
        right = number.add(middle, number.subtract(along, taken))
        columns = len(rows.columns)
        one = number(1)

        def step(index: Index, carried: Values) -> Values:
            left, right, *heads = carried
            xs, ys = tuple(heads[:columns]), tuple(heads[columns:])
            empty = compare(emitter, left, middle, "GE")
            second = emitter.apply("or", (empty, _before(emitter, rows, ys, xs)), BOOL)
            second = _both(emitter, number.less(right, stop), second)
            ahead = number.add(left, one), number.add(right, one)
            here, *element = _either(emitter, second, (ahead[1], *ys), (ahead[0], *xs))
            after = _either(emitter, second, (left, ahead[1]), (ahead[0], right))
            self._put(emitter, row, ix.add(first, index), tuple(element))
            new = at(here)
            return (*after, *_either(emitter, second, (*xs, *new), (*new, *ys)))

        emitter.loop(self.part, (left, right, *at(left), *at(right)), step)

    def _put(self, emitter: Emitter, row: Place, position: Index, element: Values) -> None:
        wanted = self.wanted
        if not self.ragged or position.greatest < wanted:
            self.write(emitter, row, position, element)
            return
        known = emitter.apply("minimum", (emitter.position(position), emitter.literal(INT64, wanted - 1)))
        inside = from_value(known, 0, wanted - 1)
        condition = emitter.holds((Bound(position, 0, wanted),))
        emitter.only(condition, lambda: self.write(emitter, row, inside, element))

    def _bisect(
        self,
        emitter: Emitter,
        number: _Positions,
        at: Callable[[Value], Values],
        begin: Value,
        middle: Value,
        stop: Value,
        along: Value,
    ) -> Value:
        """How many of the first ``along`` elements of a merged pair come from its first run."""
        zero, one = number(0), number(1)
        low = emitter.apply("maximum", (number.subtract(along, number.subtract(stop, middle)), zero))
        high = number.least(along, number.subtract(middle, begin))
        beyond = number.subtract(number.add(middle, along), one)

        def step(index: Index, carried: Values) -> Values:
            low, high = carried
            sum_of_both = from_value(number.add(low, high), 0, 2 * self.run)
            half = number(ix.quotient(sum_of_both, 2))
            xs, ys = at(number.add(begin, half)), at(number.subtract(beyond, half))
            after = _before(emitter, self.rows, ys, xs)
            first = _both(emitter, number.less(low, high), _not(emitter, after))
            return _either(emitter, first, (number.add(half, one), high), (low, half))

        return emitter.loop(self.run.bit_length(), (low, high), step)[0]


# ---- selection ------------------------------------------------------------------------------------------------------


def _select(series: Series, rows: Rows, read: Read, count: int) -> None:
    """The first ``count`` elements of each row in order, on one way through it; few rows in pieces, and then what is
    left of these."""
    results, lines = _to_results(series, rows), prod(rows.around)
    pieces = 1
    while lines * pieces < FEWEST_ROWS and rows.size >= 4 * pieces * count * PER_SELECTED:
        pieces *= 2
    length = -(-rows.size // pieces)
    pieces = -(-rows.size // length)
    if pieces == 1:
        series.kernel(lambda emitter, frame: _selection(emitter, frame, rows, read, (1, rows.size), results, count))
        return
    arrays = _arrays(series, rows, pieces * count)
    series.kernel(lambda emitter, frame: _selection(emitter, frame, rows, read, (pieces, length), arrays.write, count))

    def left(emitter: Emitter, frame: Frame) -> None:
        _selection(emitter, frame, rows, arrays.read, (1, arrays.width), results, count, (length, count))

    series.kernel(left)


def _selection(
    emitter: Emitter,
    frame: Frame,
    rows: Rows,
    read: Read,
    shape: tuple[int, int],
    write: Write,
    count: int,
    pieces: tuple[int, int] | None = None,
) -> None:
    """The first ``count`` elements of each piece of a row, of a number of pieces and elements in each. Elements are
    inserted into what has been found so far, behind those that are equal. ``pieces``: the row holds, for each piece of
    so many elements of another one, the first so many of it."""
    number, length = shape
    *around, piece = emitter.space([*rows.around, number])
    row, columns = tuple(around), len(rows.columns)
    blanks = tuple(emitter.literal(dtype, blank_word(dtype)) for dtype in rows.columns)

    def step(index: Index, carried: Values) -> Values:
        position = ix.total([(length, piece), (1, index)])
        if pieces is None:
            original = position
        else:
            original = ix.total([(pieces[0], ix.quotient(position, pieces[1])), (1, ix.remainder(position, pieces[1]))])
        exists = None
        if original.greatest >= rows.size:
            exists = emitter.holds((Bound(original, 0, rows.size),))
        if position.greatest >= (rows.size if pieces is None else length):
            last = emitter.literal(INT64, rows.size - 1)
            inside = from_value(emitter.apply("minimum", (emitter.position(position), last)), 0, rows.size - 1)
        else:
            inside = position
        element = read(emitter, frame, row, inside)
        found = [carried[k * columns : (k + 1) * columns] for k in range(count)]
        earlier = []
        for k, known in enumerate(found):
            vacant = emitter.holds((Bound(index, 0, k + 1),))
            better = emitter.apply("or", (vacant, _before(emitter, rows, element, known)), BOOL)
            earlier.append(better if exists is None else _both(emitter, exists, better))
        after: list[Value] = []
        for k, known in enumerate(found):
            if k == 0:
                after += _either(emitter, earlier[0], element, known)
            else:
                moved = _either(emitter, earlier[k - 1], found[k - 1], element)
                after += _either(emitter, earlier[k], moved, known)
        return tuple(after)

    found = emitter.loop(length, blanks * count, step)
    for k in range(count):
        write(emitter, row, ix.total([(count, piece)], k), found[k * columns : (k + 1) * columns])


# ---- operations -----------------------------------------------------------------------------------------------------


def nothing(series: Series) -> None:
    """One kernel that has nothing to write."""

    def write(emitter: Emitter, frame: Frame) -> None:
        emitter.space((0,))
        for ref in series.results:
            emitter.output(ref, series.type(ref))

    series.kernel(write)


def _sort(series: Series) -> None:
    node, attrs, shape = series.node, series.node.attrs, series.node.types[0].shape
    axis = attrs["dimension"]
    dtypes = tuple(type.dtype for type in node.types)
    rows = Rows(
        (*shape[:axis], *shape[axis + 1 :]),
        axis,
        shape[axis],
        dtypes,
        attrs.get("num_keys", 1),
        attrs.get("descending", False),
    )

    def read(emitter: Emitter, frame: Frame, row: Place, position: Index) -> Values:
        place = rows.place(row, position)
        return tuple(emitter.element(frame, ref, place) for ref in node.inputs)

    if prod(shape) == 0:
        nothing(series)
    else:
        _merge_sort(series, rows, read, rows.size)


def _top_k(series: Series) -> None:
    node, attrs = series.node, series.node.attrs
    (operand,), axis, count = node.inputs, attrs["dimension"], attrs["k"]
    shape, dtype = series.type(operand).shape, node.types[1].dtype
    columns = (node.types[0].dtype, dtype)
    rows = Rows((*shape[:axis], *shape[axis + 1 :]), axis, shape[axis], columns, 1, True)

    def read(emitter: Emitter, frame: Frame, row: Place, position: Index) -> Values:
        return (
            emitter.element(frame, operand, rows.place(row, position)),
            emitter.convert(emitter.position(position), dtype),
        )

    if node.types[0].size == 0:
        nothing(series)
    elif count <= SELECTED and rows.size >= count * PER_SELECTED:
        _select(series, rows, read, count)
    else:
        _merge_sort(series, rows, read, count)


SERIES: dict[str, Plan] = {"sort": _sort, "top_k": _top_k}
