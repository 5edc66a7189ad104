"""Sorting and Fourier transforms on expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cmp_to_key
from math import prod

import numpy as np

from tlir.floatlib.convert import from_integer
from tlir.ir.types import BOOL, DType, complex_of
from tlir.passes.check.expressions import Ids
from tlir.passes.check.step import INT64
from tlir.passes.check.sums import Sums


class Ordered(Sums):
    """Results whose elements change places, or are made in stages."""

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
                position_word = self.table.integer(INT64, position)
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
