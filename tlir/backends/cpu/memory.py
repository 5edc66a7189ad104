"""Loads and stores of several lanes, and the arithmetic of their addresses.

An offset is a scalar, a stride per lane, and where that does not suffice a vector: lane l is at
``scalar + stride * l + vector[l]``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from tlir.backends.cpu.values import Item, Lanes, word_type
from tlir.floatlib.soft.lanes import (
    I1,
    I32,
    I64,
    broadcast,
    element_bytes,
    gather,
    joined,
    masked_load,
    masked_store,
    places,
    scatter,
    splat,
)
from tlir.ir.types import DType
from tlir.kernel.index import FromValue, Index, Quotient, Remainder, Variable


@dataclass
class Offset:
    scalar: Any
    stride: int = 0
    vector: Any = None

    @property
    def uniform(self) -> bool:
        return self.stride == 0 and self.vector is None


class Addresses:
    """Emits offsets: ``counters`` are the loop variables' values (i64), ``lane`` the variable that the lanes run along,
    ``item`` gives the scalar or vector integer of a computed value."""

    def __init__(self, lanes: Lanes, lane: Variable | None, item: Callable[[Any], Item]) -> None:
        self.lanes = lanes
        self.builder = lanes.builder
        self.lane = lane
        self.item = item
        self.counters: dict[Variable, Any] = {}

    def offset(self, index: Index) -> Offset:
        b = self.builder
        result = Offset(ir.Constant(I64, index.constant))
        for coefficient, atom in index.terms:
            if isinstance(atom, Variable):
                part = Offset(self.counters[atom], int(atom == self.lane))
            elif isinstance(atom, FromValue):
                part = self._value(atom)
            else:
                part = self._divided(atom)
            result.scalar = b.add(result.scalar, b.mul(part.scalar, ir.Constant(I64, coefficient)))
            result.stride += coefficient * part.stride
            if part.vector is not None:
                scaled = b.mul(part.vector, self.lanes.splat(I64, coefficient))
                result.vector = scaled if result.vector is None else b.add(result.vector, scaled)
        return result

    def _value(self, atom: FromValue) -> Offset:
        item = self.item(atom.value)
        b, word = self.builder, item.limbs[0]  # type: ignore[index]
        signed = atom.value.dtype.is_signed
        wide = I64 if item.lanes == 1 else ir.VectorType(I64, item.lanes)
        if word_type(atom.value.dtype) != I64 or atom.value.dtype.is_bool:
            word = b.sext(word, wide) if signed else b.zext(word, wide)
        return Offset(word) if item.lanes == 1 else Offset(ir.Constant(I64, 0), 0, word)

    def _divided(self, atom: Quotient | Remainder) -> Offset:
        b, dividend = self.builder, self.offset(atom.dividend)
        # floor and truncated division agree from 0 on
        shift = max(0, -(atom.dividend.least // atom.divisor))
        whole = isinstance(atom, Quotient)
        if dividend.uniform or self.lanes.lanes == 1:
            x = dividend.scalar if dividend.vector is None else b.add(dividend.scalar, dividend.vector)
            x = b.add(x, ir.Constant(I64, shift * atom.divisor))
            divisor = ir.Constant(I64, atom.divisor)
            result = b.sub(b.udiv(x, divisor), ir.Constant(I64, shift)) if whole else b.urem(x, divisor)
            return Offset(result)
        x = b.add(self.full(dividend), self.lanes.splat(I64, shift * atom.divisor))
        small = atom.dividend.greatest + shift * atom.divisor < 1 << 31
        kind = I32 if small else I64
        x = self.lanes.resized(x, kind)
        divisor = self.lanes.splat(kind, atom.divisor)
        result = self.lanes.resized(b.udiv(x, divisor) if whole else b.urem(x, divisor), I64)
        if whole and shift:
            result = b.sub(result, self.lanes.splat(I64, shift))
        return Offset(ir.Constant(I64, 0), 0, result)

    def full(self, offset: Offset) -> Any:
        """The offsets of all lanes, as a vector."""
        b, lanes = self.builder, self.lanes.lanes
        result = broadcast(b, offset.scalar, lanes)
        if offset.stride:
            steps = ir.Constant(ir.VectorType(I64, lanes), [ir.Constant(I64, offset.stride * k) for k in range(lanes)])
            result = b.add(result, steps)
        return result if offset.vector is None else b.add(result, offset.vector)

    # ---- memory -----------------------------------------------------------------------------------------------------

    def load(self, start: Any, dtype: DType, offset: Offset, mask: Any = None, rest: Item | None = None) -> Item:
        """The elements at an offset from ``start``; a scalar item where all lanes read the same one. Where ``mask``
        (an i1 per lane) does not hold, nothing is read and the lanes are those of ``rest``."""
        if offset.uniform and (mask is None or not isinstance(mask.type, ir.VectorType)):
            return self._load_scalar(start, dtype, offset.scalar, mask, rest)
        limbs = dtype.limbs
        if mask is None and offset.vector is None and offset.stride == 1 and limbs > 1:
            words = self._load_interleaved(start, offset.scalar, limbs)
        else:
            passed = [None] * limbs if rest is None else self.lanes.limbs(rest)
            if dtype.is_bool and rest is not None:
                passed = [self.builder.zext(passed[0], self.lanes.type(ir.IntType(8)))]
            words = [self._load_limb(start, offset, limbs, k, mask, passed[k]) for k in range(limbs)]
        return self._item(dtype, words, self.lanes)

    def _item(self, dtype: DType, words: list[Any], lanes: Lanes) -> Item:
        if dtype.is_bool:
            words = [lanes.builder.trunc(words[0], lanes.type(I1))]
        return Item(dtype, lanes.lanes, words)

    def _load_scalar(self, start: Any, dtype: DType, scalar: Any, mask: Any, rest: Item | None) -> Item:
        b, limbs = self.builder, dtype.limbs

        def read() -> list[Any]:
            return [b.load(self._element(start, scalar, limbs, k)) for k in range(limbs)]

        one = Lanes(b, 1)
        if mask is None:
            return self._item(dtype, read(), one)
        assert rest is not None
        other = [b.zext(rest.limbs[0], ir.IntType(8))] if dtype.is_bool else one.limbs(rest)  # type: ignore[index]
        before = b.block
        with b.if_then(mask):
            words = read()
            inside = b.block
        pairs = zip(words, other, strict=True)
        return self._item(dtype, [joined(b, word, inside, otherwise, before) for word, otherwise in pairs], one)

    def _element(self, start: Any, scalar: Any, limbs: int, limb: int) -> Any:
        b = self.builder
        if limbs > 1:
            scalar = b.add(b.mul(scalar, ir.Constant(I64, limbs)), ir.Constant(I64, limb))
        return b.gep(start, [scalar])

    def _vector_at(self, place: Any, element: Any, count: int) -> Any:
        return self.builder.bitcast(place, ir.VectorType(element, count).as_pointer())

    def _load_interleaved(self, start: Any, scalar: Any, limbs: int) -> list[Any]:
        b, lanes, element = self.builder, self.lanes.lanes, start.type.pointee
        pointer = self._vector_at(self._element(start, scalar, limbs, 0), element, lanes * limbs)
        together = b.load(pointer, align=element_bytes(element))
        undefined = ir.Constant(together.type, ir.Undefined)
        masks = [[k + limbs * lane for lane in range(lanes)] for k in range(limbs)]
        return [b.shuffle_vector(together, undefined, shuffle_mask(mask)) for mask in masks]

    def _load_limb(self, start: Any, offset: Offset, limbs: int, limb: int, mask: Any, rest: Any) -> Any:
        b, lanes, element = self.builder, self.lanes.lanes, start.type.pointee
        if offset.vector is None and offset.stride in (1, -1) and limbs == 1:
            back = offset.stride == -1
            scalar = b.sub(offset.scalar, ir.Constant(I64, lanes - 1)) if back else offset.scalar
            pointer = self._vector_at(b.gep(start, [scalar]), element, lanes)
            if mask is None:
                words = b.load(pointer, align=element_bytes(element))
                return self._reversed(words) if back else words
            if not back:
                return masked_load(b, pointer, mask, rest)
        offsets = self.full(offset)
        if limbs > 1:
            offsets = b.add(b.mul(offsets, splat(I64, lanes, limbs)), splat(I64, lanes, limb))
        return gather(b, element, places(b, start, offsets, element), lanes, mask, rest)

    def _reversed(self, words: Any) -> Any:
        lanes = self.lanes.lanes
        undefined = ir.Constant(words.type, ir.Undefined)
        return self.builder.shuffle_vector(words, undefined, shuffle_mask(list(reversed(range(lanes)))))

    def store(self, start: Any, dtype: DType, offset: Offset, item: Item, mask: Any = None) -> None:
        """Writes the lanes of an item (of one lane: the element itself) where the mask holds."""
        b, limbs = self.builder, dtype.limbs
        lanes = Lanes(b, 1) if item.lanes == 1 else self.lanes
        words = lanes.limbs(item)
        if dtype.is_bool:
            words = [b.zext(words[0], lanes.type(ir.IntType(8)))]
        if item.lanes == 1:
            if mask is None:
                self._store_scalar(start, words, offset, limbs)
            else:
                with b.if_then(mask):
                    self._store_scalar(start, words, offset, limbs)
        elif offset.vector is None and offset.stride == 1 and mask is None:
            element, count = start.type.pointee, self.lanes.lanes
            pointer = self._vector_at(self._element(start, offset.scalar, limbs, 0), element, count * limbs)
            b.store(self._interleaved(words), pointer, align=element_bytes(element))
        elif offset.vector is None and offset.stride == 1 and limbs == 1:
            pointer = self._vector_at(self._element(start, offset.scalar, 1, 0), start.type.pointee, self.lanes.lanes)
            masked_store(b, words[0], pointer, mask)
        else:
            self._scatter(start, words, offset, limbs, mask)

    def _store_scalar(self, start: Any, words: list[Any], offset: Offset, limbs: int) -> None:
        for k, word in enumerate(words):
            self.builder.store(word, self._element(start, offset.scalar, limbs, k))

    def _scatter(self, start: Any, words: list[Any], offset: Offset, limbs: int, mask: Any) -> None:
        b, lanes, element = self.builder, self.lanes.lanes, start.type.pointee
        offsets = self.full(offset)
        for k, word in enumerate(words):
            at = offsets
            if limbs > 1:
                at = b.add(b.mul(offsets, splat(I64, lanes, limbs)), splat(I64, lanes, k))
            scatter(b, word, places(b, start, at, element), lanes, mask)

    def _interleaved(self, words: list[Any]) -> Any:
        """The limbs of all lanes in the order of memory."""
        b, lanes, limbs = self.builder, self.lanes.lanes, len(words)
        if limbs == 1:
            return words[0]
        joined, parts = list(words), limbs
        while len(joined) > 1:
            if len(joined) % 2:
                joined.append(ir.Constant(joined[0].type, ir.Undefined))
            size = joined[0].type.count
            both = shuffle_mask(list(range(2 * size)))
            joined = [b.shuffle_vector(joined[k], joined[k + 1], both) for k in range(0, len(joined), 2)]
        order = [lane + lanes * limb for lane in range(lanes) for limb in range(parts)]
        return b.shuffle_vector(joined[0], ir.Constant(joined[0].type, ir.Undefined), shuffle_mask(order))


def shuffle_mask(order: list[int]) -> Any:
    """The operand of shuffle_vector that says which element of its two vectors, counted through, stands where."""
    return ir.Constant(ir.VectorType(I32, len(order)), [ir.Constant(I32, k) for k in order])
