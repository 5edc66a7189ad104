"""Slices, gathers and scatters at computed places on expressions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tlir.passes.check.expressions import Ids
from tlir.passes.check.step import constant
from tlir.passes.check.sums import Sums


class Placed(Sums):
    """Results whose places data decides."""

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
