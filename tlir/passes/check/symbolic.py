"""What a graph computes, element by element, as expressions: straight from the meanings in ``docs/ops.md``.

Nothing here is shared with the lowering: this is what the lowering is checked against.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cmp_to_key
from itertools import product
from math import prod
from typing import Any

import numpy as np

from tlir.floatlib.convert import from_integer
from tlir.ir.graph import Body, Node, Ref
from tlir.ir.ops import OPERATIONS, Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.types import BOOL, NAMED, DType, complex_of
from tlir.passes.check import matrices
from tlir.passes.check.expressions import Expressions, Ids

_INT64 = NAMED["int64"]


def evaluate(
    table: Expressions, body: Body, inputs: Sequence[Ids], opaque: Collection[int] = (), region: bool = False
) -> list[Ids]:
    """The expressions of the outputs for those of the inputs. The nodes in ``opaque`` are taken as a whole: each of
    their results is an unknown function of all elements of the operands."""
    given = dict(zip(body.input_ids, inputs, strict=True))
    values: dict[Ref, Ids] = {}
    for node in body.nodes:
        operands = [values[ref] for ref in node.inputs]
        if node.op == "input":
            results = [given[node.id]]
        elif node.op == "constant":
            results = [constant(table, node.attrs["value"], None if region else node.id)]
        elif node.id in opaque and not region:
            results = whole(table, node, operands)
        else:
            results = _Step(table, body, node, operands).results()
        for k, result in enumerate(results):
            if result.shape != node.types[k].shape:
                raise AssertionError(f"{node}: {result.shape} for {node.types[k]}")
            values[Ref(node.id, k)] = result
    return [values[ref] for ref in body.outputs]


def constant(table: Expressions, tensor: Tensor, node_id: int | None) -> Ids:
    """Literals; elements of one array of the artifact where they are not all the same."""
    dtype, shape, size = tensor.dtype, tensor.shape, tensor.type.size
    parts = tensor.words.reshape((size, dtype.components, dtype.limbs))
    if size > 1 and node_id is not None and not (parts == parts[0]).all():
        return leaves(table, f"constant {node_id}", tensor)
    words = [tuple(sum(int(limb) << 64 * k for k, limb in enumerate(part)) for part in element) for element in parts]
    ids = [table.literal(dtype, (word[0], word[1]) if dtype.is_complex else word[0]) for word in words]
    return np.array(ids, np.int64).reshape(shape)


def leaves(table: Expressions, name: str, like: Any) -> Ids:
    """One expression per element of something that is given, of this type (or of the type of a tensor)."""
    size = prod(like.shape)
    return np.array([table.leaf(name, k, like.dtype) for k in range(size)], np.int64).reshape(like.shape)


def whole(table: Expressions, node: Node, operands: Sequence[Ids]) -> list[Ids]:
    """The results of a node of which nothing is said but that they depend on the operands."""
    what = (node.op, node.id, *(tuple(operand.reshape(-1).tolist()) for operand in operands))
    results = []
    for k, type in enumerate(node.types):
        ids = [table.opaque((*what, k), position, type.dtype) for position in range(type.size)]
        results.append(np.array(ids, np.int64).reshape(type.shape))
    return results


class _Step:
    """One node: its operands as arrays of expressions."""

    def __init__(self, table: Expressions, body: Body, node: Node, operands: Sequence[Ids]) -> None:
        self.table, self.body, self.node, self.operands = table, body, node, operands
        self.dtypes = [type.dtype for type in body.operand_types(node)]
        self.dtype, self.shape = node.types[0].dtype if node.types else BOOL, node.types[0].shape if node.types else ()

    def attr(self, name: str) -> Any:
        return OPERATIONS[self.node.op].attr(self.node.attrs, name)

    def results(self) -> list[Ids]:
        if self.node.op in ("case", "scan", "while", "sort", "top_k"):
            several: list[Ids] = getattr(self, f"_{self.node.op}")()
            return several
        if self.node.op in matrices.MEANINGS:
            shapes = [type.shape for type in self.node.types]
            return matrices.evaluated(self.table, self.node.op, self.attr, self.dtypes[0], self.operands, shapes)
        method = getattr(self, f"_{self.node.op}", None)
        if method is None:
            return [self._elementwise()]
        return [np.asarray(method(*self.operands), np.int64)]

    def filled(self, function: Callable[..., int], shape: Sequence[int] | None = None) -> Ids:
        """``function(*index)`` at every index of the result."""
        shape = self.shape if shape is None else tuple(shape)
        result = np.empty(shape, np.int64)
        for index in np.ndindex(*shape):
            result[index] = function(*index)
        return result

    # ---- elements ---------------------------------------------------------------------------------------------------

    def _elementwise(self) -> Ids:
        flat = zip(*(operand.reshape(-1).tolist() for operand in self.operands), strict=True)
        ids = [self.table.apply(self.node.op, self.node.attrs, self.dtype, ids) for ids in flat]
        return np.array(ids, np.int64).reshape(self.shape)

    def _iota(self) -> Ids:
        axis = self.attr("iota_dimension")

        def at(*index: int) -> int:
            return self._convert(self.table.integer(_INT64, index[axis]), self.dtype)

        return self.filled(at)

    def _bitcast_convert(self, x: Ids) -> Ids:
        return x if self.dtypes[0] == self.dtype else self._elementwise()

    def _convert(self, x: Any, dtype: DType | None = None) -> Any:
        if dtype is None:
            return x if self.dtypes[0] == self.dtype else self._elementwise()
        return self.table.apply("convert", {}, dtype, (x,))

    def _combine(self, op: str, a: int, b: int, dtype: DType) -> int:
        return self.table.apply(op, {}, dtype, (a, b))

    # ---- views ------------------------------------------------------------------------------------------------------

    def _broadcast_in_dim(self, x: Ids) -> Ids:
        axes = self.attr("broadcast_dimensions")
        return self.filled(
            lambda *index: x[tuple(0 if n == 1 else index[a] for n, a in zip(x.shape, axes, strict=True))]
        )

    def _reshape(self, x: Ids) -> Ids:
        return x.reshape(self.shape)

    def _transpose(self, x: Ids) -> Ids:
        return x.transpose(self.attr("permutation"))

    def _slice(self, x: Ids) -> Ids:
        bounds = zip(self.attr("start_indices"), self.attr("limit_indices"), self.attr("strides"), strict=True)
        return x[tuple(slice(start, limit, stride) for start, limit, stride in bounds)]

    def _reverse(self, x: Ids) -> Ids:
        return np.flip(x, self.attr("dimensions"))

    def _concatenate(self, *parts: Ids) -> Ids:
        return np.concatenate(parts, self.attr("dimension"))

    def _pad(self, x: Ids, value: Ids) -> Ids:
        result = np.full(self.shape, int(value), np.int64)
        low, interior = self.attr("edge_padding_low"), self.attr("interior_padding")
        for index in np.ndindex(*x.shape):
            place = tuple(a + i * (hole + 1) for a, i, hole in zip(low, index, interior, strict=True))
            if all(0 <= p < size for p, size in zip(place, self.shape, strict=True)):
                result[place] = x[index]
        return result

    # ---- sums -------------------------------------------------------------------------------------------------------

    def _identity(self, dtype: DType, reducer: str) -> int:
        """What a reduction starts from."""
        if reducer in ("add", "multiply"):
            number = int(reducer == "multiply")
            if dtype.is_complex:
                fmt = dtype.float_format
                return self.table.literal(dtype, (from_integer(fmt, number)[0], from_integer(fmt, 0)[0]))
            return self.table.literal(dtype, from_integer(dtype.float_format, number)[0] if dtype.is_float else number)
        if reducer in ("and", "or", "xor"):
            return self.table.integer(dtype, -1 if reducer == "and" else 0)
        if dtype.is_float:
            fmt = dtype.float_format
            most = fmt.inf if fmt.inf is not None else fmt.max_finite
            if reducer == "maximum":
                most = most | fmt.sign_mask if fmt.signed else fmt.lowest_finite
            return self.table.literal(dtype, most)
        least = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
        return self.table.integer(dtype, least if reducer == "maximum" else least - 1)

    def _total(self, terms: Sequence[int], op: str, dtype: DType, order: Accumulate) -> int:
        """The terms combined in the declared order from the identity."""
        start = self._identity(dtype, op)
        if order.order == "pairwise":
            while len(terms) > 1:
                pairs = [self._combine(op, a, b, dtype) for a, b in zip(terms[::2], terms[1::2], strict=False)]
                terms = pairs + list(terms[len(pairs) * 2 :])
            return self._combine(op, start, terms[0], dtype) if terms else start
        if order.order == "blocked":
            runs = [terms[k : k + order.block] for k in range(0, len(terms), order.block)]
            terms = [self._total(run, op, dtype, Accumulate()) for run in runs]
        for term in terms:
            start = self._combine(op, start, term, dtype)
        return start

    def _reduce(self, x: Ids) -> Ids:
        axes = sorted(self.attr("dimensions"))
        kept = [axis for axis in range(x.ndim) if axis not in axes]
        order = self.attr("accumulate") or Accumulate()
        wide = order.dtype or self.dtype

        def at(*index: int) -> int:
            terms = []
            for inner in product(*(range(x.shape[axis]) for axis in axes)):
                place = dict(zip(kept, index, strict=True)) | dict(zip(axes, inner, strict=True))
                terms.append(self._convert(int(x[tuple(place[axis] for axis in range(x.ndim))]), wide))
            return self._convert(self._total(terms, self.attr("reducer"), wide, order), self.dtype)

        return self.filled(at)

    def _products(self, pairs: Sequence[tuple[int, int]]) -> int:
        """The sum of products of elements, as the node accumulates it."""
        order = self.attr("accumulate") or Accumulate()
        wide = order.dtype or self.dtype
        factors = [(self._convert(a, wide), self._convert(b, wide)) for a, b in pairs]
        if order.fma:
            length = order.block if order.order == "blocked" else max(len(factors), 1)
            runs = []
            for first in range(0, len(factors), length):
                total = self._identity(wide, "add")
                for a, b in factors[first : first + length]:
                    total = self.table.apply("fma", {}, wide, (a, b, total))
                runs.append(total)
            if order.order == "blocked" or not runs:
                return self._convert(self._total(runs, "add", wide, Accumulate()), self.dtype)
            return self._convert(runs[0], self.dtype)
        times, plus = ("and", "or") if wide.is_bool else ("multiply", "add")
        terms = [self._combine(times, a, b, wide) for a, b in factors]
        return self._convert(self._total(terms, plus, wide, order), self.dtype)

    def _dot_general(self, x: Ids, y: Ids) -> Ids:
        sides = []
        for side, operand in (("lhs", x), ("rhs", y)):
            batch, summed = self.attr(f"{side}_batching_dimensions"), self.attr(f"{side}_contracting_dimensions")
            free = [axis for axis in range(operand.ndim) if axis not in (*batch, *summed)]
            sides.append((operand.transpose((*batch, *free, *summed)), len(batch), len(free)))
        (x, batches, rows), (y, _, _) = sides
        extents = x.shape[batches + rows :]

        def at(*index: int) -> int:
            batch, row, column = index[:batches], index[batches : batches + rows], index[batches + rows :]
            inner = product(*(range(extent) for extent in extents))
            return self._products([(int(x[(*batch, *row, *k)]), int(y[(*batch, *column, *k)])) for k in inner])

        return self.filled(at)

    def _argument(self, x: Ids, direction: str) -> Ids:
        axis = self.attr("dimension")

        def at(*index: int) -> int:
            line = np.moveaxis(x, axis, -1)[index].tolist()
            best, chosen = line[0], self.table.integer(_INT64, 0)
            for k, candidate in enumerate(line[1:], 1):
                better = self._beats(self.dtypes[0], candidate, best, direction)
                best = self.table.apply("select", {}, self.dtypes[0], (better, candidate, best))
                chosen = self.table.apply("select", {}, _INT64, (better, self.table.integer(_INT64, k), chosen))
            return self._convert(chosen, self.dtype)

        return self.filled(at)

    def _argmax(self, x: Ids) -> Ids:
        return self._argument(x, "GT")

    def _argmin(self, x: Ids) -> Ids:
        return self._argument(x, "LT")

    def _beats(self, dtype: DType, a: int, b: int, direction: str) -> int:
        """a is strictly better than b, NaN being better than every number and not than another NaN."""

        def compare(x: int, y: int, how: str) -> int:
            return self.table.apply("compare", {"comparison_direction": how}, BOOL, (x, y))

        better = compare(a, b, direction)
        if not dtype.is_float or not dtype.float_format.has_nan:
            return better
        number = self.table.apply("not", {}, BOOL, (compare(b, b, "NE"),))
        return self._combine("or", better, self._combine("and", compare(a, a, "NE"), number, BOOL), BOOL)

    # ---- order ------------------------------------------------------------------------------------------------------

    def _true(self, direction: str, a: int, b: int) -> bool:
        return bool(self.table.value(self.table.apply("compare", {"comparison_direction": direction}, BOOL, (a, b))))

    def _order(self, dtype: DType, a: int, b: int) -> int:
        """-1, 0 or 1 where a is before b, equal to it or after it as ``sort`` orders elements, ascending."""
        if dtype.is_complex:
            parts = [[self.table.apply(p, {}, dtype.component, (x,)) for x in (a, b)] for p in ("real", "imag")]
            return self._order(dtype.component, *parts[0]) or self._order(dtype.component, *parts[1])
        if dtype.is_float and dtype.float_format.has_nan:
            nans = self._true("NE", a, a), self._true("NE", b, b)
            if any(nans):
                return nans[0] - nans[1]
        return self._true("GT", a, b) - self._true("LT", a, b)

    def _sorted(self, keys: Sequence[Sequence[int]], descending: bool) -> list[int]:
        """The positions in the order of the keys; equal ones stay in theirs."""

        def order(i: int, j: int) -> int:
            for dtype, key in zip(self.dtypes, keys, strict=False):
                found = self._order(dtype, key[i], key[j])
                if found:
                    return -found if descending else found
            return 0

        return sorted(range(len(keys[0])), key=cmp_to_key(order))

    def _sort(self) -> list[Ids]:
        lines = [np.moveaxis(x, self.attr("dimension"), -1) for x in self.operands]
        results = [np.empty_like(x) for x in self.operands]
        targets = [np.moveaxis(x, self.attr("dimension"), -1) for x in results]
        for index in np.ndindex(*lines[0].shape[:-1]):
            keys = [line[index].tolist() for line in lines[: self.attr("num_keys")]]
            if keys[0]:
                order = self._sorted(keys, self.attr("descending"))
                for target, line in zip(targets, lines, strict=True):
                    target[index] = line[index][order]
        return results

    def _top_k(self) -> list[Ids]:
        axis, count = self.attr("dimension"), self.attr("k")
        lines = np.moveaxis(self.operands[0], axis, -1)
        results = [np.empty(type.shape, np.int64) for type in self.node.types]
        values, indices = (np.moveaxis(x, axis, -1) for x in results)
        for index in np.ndindex(*lines.shape[:-1]):
            line = lines[index].tolist()
            for k, position in enumerate(self._sorted([line], True)[:count]):
                values[(*index, k)] = line[position]
                position_word = self.table.integer(_INT64, position)
                indices[(*index, k)] = self._convert(position_word, self.node.types[1].dtype)
        return results

    # ---- transforms -------------------------------------------------------------------------------------------------

    def _fft(self, x: Ids) -> Ids:
        kind, lengths = self.attr("fft_type"), self.attr("fft_length")
        dtype = complex_of(self.dtypes[0]) if kind == "RFFT" else self.dtypes[0]
        part, inverse = dtype.component, kind in ("IFFT", "IRFFT")
        zero = self.table.literal(part, from_integer(part.float_format, 0)[0])
        count = self.table.literal(part, from_integer(part.float_format, prod(lengths))[0])

        def of_part(name: str, number: int) -> int:
            return self.table.apply(name, {}, part, (number,))

        def whole(real: int, imag: int) -> int:
            return self.table.apply("complex", {}, dtype, (real, imag))

        def along(x: Ids, axis: int, inverse: bool) -> Ids:
            if not x.size:
                return x
            return np.apply_along_axis(lambda line: np.array(self._transform(dtype, line.tolist(), inverse)), axis, x)

        def extended(line: Ids, n: int) -> Ids:
            elements = []
            for k in range(n):
                if k == 0 or 2 * k == n:
                    elements.append(whole(of_part("real", int(line[k])), zero))
                elif 2 * k < n:
                    elements.append(int(line[k]))
                else:
                    elements.append(self.table.apply("conjugate", {}, dtype, (int(line[n - k]),)))
            return np.array(elements, np.int64)

        def of_all(function: Callable[[int], int], x: Ids) -> Ids:
            return np.array([function(int(number)) for number in x.reshape(-1)], np.int64).reshape(x.shape)

        if kind == "RFFT":
            x = of_all(lambda number: whole(number, zero), x)
        if kind != "IRFFT":
            x = along(x, -1, inverse)[..., : self.shape[-1]]
        for axis in range(-2, -len(lengths) - 1, -1):
            x = along(x, axis, inverse)
        if kind == "IRFFT":
            if not self.filled(lambda *index: 0).size:
                return self.filled(lambda *index: 0)
            x = along(np.apply_along_axis(extended, -1, x, lengths[-1]), -1, inverse)

            def real(number: int) -> int:
                return self._combine("divide", of_part("real", number), count, part)

            return of_all(real, x)

        def result(number: int) -> int:
            parts = of_part("real", number), of_part("imag", number)
            if inverse:
                return whole(*(self._combine("divide", p, count, part) for p in parts))
            if prod(lengths) == 1 and part.float_format.has_nan:
                # a NaN is the canonical one, as that of every sum
                return whole(*(self._combine("maximum", p, p, part) for p in parts))
            return number

        return of_all(result, x)

    def _transform(self, dtype: DType, x: list[int], inverse: bool) -> list[int]:
        from tlir.floatlib.elementary.special.roots import roots_of_unity

        n = len(x)
        if n == 1:
            return x
        p = next(k for k in range(2, n + 1) if n % k == 0)
        m = n // p
        inner = [self._transform(dtype, x[r::p], inverse) for r in range(p)]
        pairs = roots_of_unity(dtype.float_format, n)
        turn = 1 if inverse else -1
        roots = [self.table.literal(dtype, (pairs[j][0], pairs[turn * j % n][1])) for j in range(n)]
        results = []
        for k in range(n):
            total = inner[0][k % m]
            for r in range(1, p):
                product = self.table.apply("multiply", {}, dtype, (roots[r * k % n], inner[r][k % m]))
                total = self._combine("add", total, product, dtype)
            results.append(total)
        return results

    # ---- windows ----------------------------------------------------------------------------------------------------

    def _at_window(
        self, shape: Sequence[int], position: Sequence[int], offset: Sequence[int], names: tuple[str, ...]
    ) -> tuple[int, ...] | None:
        """The index of an entry of a window in the array itself; None in holes and padding. ``names`` are the
        attributes of the strides, the window's and the base's dilation (or "")."""
        place = []
        ones = (1,) * len(shape)
        strides, holes, base = (self.attr(name) if name else ones for name in names)
        for axis, size in enumerate(shape):
            at = position[axis] * strides[axis] + offset[axis] * holes[axis] - self.attr("padding_low")[axis]
            index, hole = divmod(at, base[axis])
            if hole or not 0 <= index < size:
                return None
            place.append(index)
        return tuple(place)

    def _reduce_window(self, x: Ids) -> Ids:
        order = self.attr("accumulate") or Accumulate()
        reducer, wide = self.attr("reducer"), order.dtype or self.dtype
        names = ("window_strides", "window_dilations", "base_dilations")

        def at(*index: int) -> int:
            terms = []
            for offset in product(*(range(size) for size in self.attr("window_dimensions"))):
                place = self._at_window(x.shape, index, offset, names)
                element = self._identity(self.dtype, reducer) if place is None else int(x[place])
                terms.append(self._convert(element, wide))
            return self._convert(self._total(terms, reducer, wide, order), self.dtype)

        return self.filled(at)

    def _convolution(self, x: Ids, kernel: Ids) -> Ids:
        x, kernel = x.transpose(self.attr("lhs_dimensions")), kernel.transpose(self.attr("rhs_dimensions"))
        groups, batch_groups = self.attr("feature_group_count"), self.attr("batch_group_count")
        outputs, inputs, *window = kernel.shape
        zero = self.table.literal(self.dtypes[0], (0, 0) if self.dtypes[0].is_complex else 0)
        names = ("window_strides", "rhs_dilation", "lhs_dilation")
        space = x.shape[2:]

        def at(*index: int) -> int:
            image, output, *position = (index[axis] for axis in self.attr("output_dimensions"))
            group = output * max(groups, batch_groups) // outputs
            pairs = []
            for feature, *offset in product(range(inputs), *(range(size) for size in window)):
                place = self._at_window(space, position, offset, names)
                if batch_groups > 1:
                    front = (image + group * (x.shape[0] // batch_groups), feature)
                else:
                    front = (image, feature + group * inputs)
                turned = (
                    size - 1 - k if turn else k
                    for size, k, turn in zip(window, offset, self.attr("window_reversal"), strict=True)
                )
                element = zero if place is None else int(x[(*front, *place)])
                pairs.append((element, int(kernel[(output, feature, *turned)])))
            return self._products(pairs)

        return self.filled(at)

    def _cumulative(self, x: Ids) -> Ids:
        axis, reducer = self.attr("dimension"), self.attr("reducer")
        order = self.attr("accumulate") or Accumulate()
        wide = order.dtype or self.dtype
        result = np.empty(self.shape, np.int64)
        lines = np.moveaxis(x, axis, -1)
        totals = np.moveaxis(result, axis, -1)
        for index in np.ndindex(*lines.shape[:-1]):
            total: int | None = None if reducer == "logaddexp" else self._identity(wide, reducer)
            steps = range(lines.shape[-1])
            for k in reversed(steps) if self.attr("reverse") else steps:
                term = self._convert(int(lines[(*index, k)]), wide)
                if total is None:
                    total = self._combine("maximum", term, term, wide)
                else:
                    total = self._combine("log_add_exp" if reducer == "logaddexp" else reducer, total, term, wide)
                totals[(*index, k)] = self._convert(total, self.dtype)
        return result

    def _select_and_scatter(self, x: Ids, source: Ids) -> Ids:
        result = np.full(self.shape, self._identity(self.dtype, "add"), np.int64)
        direction = "GT" if self.attr("select") == "GE" else "LT"
        alone = self._identity(self.dtype, "add")
        for window in np.ndindex(*source.shape):
            best, chosen = alone, self.table.integer(_INT64, -1)
            for offset in product(*(range(size) for size in self.attr("window_dimensions"))):
                place = self._at_window(x.shape, window, offset, ("window_strides", "", ""))
                if place is None:
                    continue
                none_yet = self.table.apply(
                    "compare", {"comparison_direction": "LT"}, BOOL, (chosen, self.table.integer(_INT64, 0))
                )
                better = self._combine("or", none_yet, self._beats(self.dtype, int(x[place]), best, direction), BOOL)
                best = self.table.apply("select", {}, self.dtype, (better, int(x[place]), best))
                flat = self.table.integer(_INT64, int(np.ravel_multi_index(place, x.shape)) if place else 0)
                chosen = self.table.apply("select", {}, _INT64, (better, flat, chosen))
            position = self.table.value(chosen)
            if position >= 0:
                flat_result = result.reshape(-1)
                flat_result[position] = self._combine(
                    "add", int(flat_result[position]), int(source[window]), self.dtype
                )
        return result

    # ---- computed places --------------------------------------------------------------------------------------------

    def _starts(self, starts: Sequence[Ids], shape: Sequence[int], sizes: Sequence[int]) -> list[int]:
        rooms = (size - length for size, length in zip(shape, sizes, strict=True))
        return [min(max(self.table.value(int(start)), 0), room) for start, room in zip(starts, rooms, strict=True)]

    def _dynamic_slice(self, x: Ids, *starts: Ids) -> Ids:
        sizes = self.attr("slice_sizes")
        places = self._starts(starts, x.shape, sizes)
        return x[tuple(slice(start, start + size) for start, size in zip(places, sizes, strict=True))]

    def _dynamic_update_slice(self, x: Ids, update: Ids, *starts: Ids) -> Ids:
        result = x.copy()
        places = self._starts(starts, x.shape, update.shape)
        result[tuple(slice(start, start + n) for start, n in zip(places, update.shape, strict=True))] = update
        return result

    def _vectors(
        self, indices: Ids, axes: Sequence[int], batch: Sequence[tuple[int, int]], rank: int
    ) -> Iterator[tuple[tuple[int, ...], list[int]]]:
        """Each position of the index space with the start along every axis of the operand."""
        vector = self.attr("index_vector_dim")
        if vector == indices.ndim:
            indices = indices[..., np.newaxis]
        vectors = np.moveaxis(indices, vector, -1)
        for position in np.ndindex(*vectors.shape[:-1]):
            start = [0] * rank
            for axis, entry in zip(axes, vectors[position].tolist(), strict=True):
                start[axis] = self.table.value(entry)
            for axis, index_axis in batch:
                start[axis] = position[index_axis - (index_axis > vector)]
            yield position, start

    def _gather(self, x: Ids, indices: Ids) -> Ids:
        sizes = self.attr("slice_sizes")
        batch = self.attr("operand_batching_dims")
        pairs = list(zip(batch, self.attr("start_indices_batching_dims"), strict=True))
        removed = (*self.attr("collapsed_slice_dims"), *batch)
        offsets = self.attr("offset_dims")
        around = [axis for axis in range(len(self.shape)) if axis not in offsets]
        result = np.empty(self.shape, np.int64)
        for position, start in self._vectors(indices, self.attr("start_index_map"), pairs, x.ndim):
            rooms = [n - size for n, size in zip(x.shape, sizes, strict=True)]
            inside = all(0 <= s <= room for s, room in zip(start, rooms, strict=True))
            for inner in np.ndindex(*sizes):
                place = tuple(min(max(s, 0), r) + k for s, r, k in zip(start, rooms, inner, strict=True))
                window = (k for axis, k in enumerate(inner) if axis not in removed)
                target = dict(zip(around, position, strict=True)) | dict(zip(offsets, window, strict=True))
                if inside or self.attr("mode") == "clip":
                    element = int(x[place])
                else:
                    element = int(constant(self.table, self.attr("fill_value"), None))
                result[tuple(target[axis] for axis in range(len(self.shape)))] = element
        return result

    def _scatter(self, x: Ids, indices: Ids, updates: Ids) -> Ids:
        result = x.copy()
        batch = self.attr("input_batching_dims")
        pairs = list(zip(batch, self.attr("scatter_indices_batching_dims"), strict=True))
        removed = (*self.attr("inserted_window_dims"), *batch)
        kept = [axis for axis in range(x.ndim) if axis not in removed]
        own = sorted(self.attr("update_window_dims"))
        around = [axis for axis in range(updates.ndim) if axis not in own]
        sizes = [1] * x.ndim
        for axis, update_axis in zip(kept, own, strict=True):
            sizes[axis] = updates.shape[update_axis]
        for position, start in self._vectors(indices, self.attr("scatter_dims_to_operand_dims"), pairs, x.ndim):
            rooms = [n - size for n, size in zip(x.shape, sizes, strict=True)]
            if self.attr("mode") == "drop" and not all(0 <= s <= r for s, r in zip(start, rooms, strict=True)):
                continue
            for inner in np.ndindex(*sizes):
                place = tuple(min(max(s, 0), r) + k for s, r, k in zip(start, rooms, inner, strict=True))
                of = dict(zip(around, position, strict=True)) | {b: inner[a] for a, b in zip(kept, own, strict=True)}
                update = int(updates[tuple(of[axis] for axis in range(updates.ndim))])
                if self.attr("reducer") != "replace":
                    update = self._combine(self.attr("reducer"), int(result[place]), update, self.dtype)
                result[place] = update
        return result

    # ---- regions ----------------------------------------------------------------------------------------------------

    def _region(self, number: int, inputs: Sequence[Ids]) -> list[Ids]:
        return evaluate(self.table, self.node.regions[number], inputs, region=True)

    def _case(self) -> list[Ids]:
        index, last = self.table.value(int(self.operands[0])), len(self.node.regions) - 1
        return self._region(index if 0 <= index <= last else last, self.operands[1:])

    def _while(self) -> list[Ids]:
        values = list(self.operands)
        while self.table.value(int(self._region(0, values)[0])):
            values = self._region(1, values)
        return values

    def _scan(self) -> list[Ids]:
        consts, carries, length = (self.attr(name) for name in ("num_consts", "num_carry", "length"))
        fixed, carried, stacked = (
            list(self.operands[:consts]),
            list(self.operands[consts : consts + carries]),
            self.operands[consts + carries :],
        )
        results = [np.empty(type.shape, np.int64) for type in self.node.types[carries:]]
        for step in reversed(range(length)) if self.attr("reverse") else range(length):
            outputs = self._region(0, [*fixed, *carried, *(np.asarray(x[step]) for x in stacked)])
            carried = outputs[:carries]
            for result, output in zip(results, outputs[carries:], strict=True):
                result[step] = output
        return [*carried, *results]
