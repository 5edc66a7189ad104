"""Reductions and contractions on expressions, term by term in their order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from tlir.floatlib.convert import from_integer
from tlir.ir.ops import Accumulate
from tlir.ir.types import BOOL, DType
from tlir.passes.check.expressions import Ids
from tlir.passes.check.step import INT64, Step


class Sums(Step):
    """Results that are made of many terms."""

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
            best, chosen = line[0], self.table.integer(INT64, 0)
            for k, candidate in enumerate(line[1:], 1):
                better = self._beats(self.dtypes[0], candidate, best, direction)
                best = self.table.apply("select", {}, self.dtypes[0], (better, candidate, best))
                chosen = self.table.apply("select", {}, INT64, (better, self.table.integer(INT64, k), chosen))
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
