"""Windows, convolutions and running totals on expressions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from tlir.ir.ops import Accumulate
from tlir.ir.types import BOOL
from tlir.passes.check.expressions import Ids
from tlir.passes.check.step import INT64
from tlir.passes.check.sums import Sums


class Windowed(Sums):
    """Results that are made of neighbourhoods."""

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
            best, chosen = alone, self.table.integer(INT64, -1)
            for offset in product(*(range(size) for size in self.attr("window_dimensions"))):
                place = self._at_window(x.shape, window, offset, ("window_strides", "", ""))
                if place is None:
                    continue
                none_yet = self.table.apply(
                    "compare", {"comparison_direction": "LT"}, BOOL, (chosen, self.table.integer(INT64, 0))
                )
                better = self._combine("or", none_yet, self._beats(self.dtype, int(x[place]), best, direction), BOOL)
                best = self.table.apply("select", {}, self.dtype, (better, int(x[place]), best))
                flat = self.table.integer(INT64, int(np.ravel_multi_index(place, x.shape)) if place else 0)
                chosen = self.table.apply("select", {}, INT64, (better, flat, chosen))
            position = self.table.value(chosen)
            if position >= 0:
                flat_result = result.reshape(-1)
                flat_result[position] = self._combine(
                    "add", int(flat_result[position]), int(source[window]), self.dtype
                )
        return result
