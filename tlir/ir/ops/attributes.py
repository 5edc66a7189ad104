"""The kinds of attributes: how each is read from JSON, written to JSON, and described in JSON Schema.

``decode`` takes the JSON value and raises ``AttributeValueError`` with a sentence when it is not one; ``encode`` is its
inverse; ``schema`` is the JSON Schema (draft 2020-12) of the values that ``decode`` takes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tlir.floatlib.format import Format
from tlir.ir.types import MAX_ELEMENTS, MAX_RANK, DType, parse_dtype

MAX_INDEX = MAX_ELEMENTS
"""Largest magnitude of an integer in an attribute."""


class AttributeValueError(ValueError):
    """A JSON value that is not a value of the attribute."""


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


@dataclass(frozen=True)
class Integer:
    """An integer from ``low`` to ``high``."""

    low: int = 0
    high: int = MAX_INDEX

    def decode(self, value: Any, formats: Mapping[str, Format]) -> int:
        if not _is_int(value) or not self.low <= value <= self.high:
            raise AttributeValueError(f"expected an integer from {self.low} to {self.high}")
        return int(value)

    def encode(self, value: Any) -> Any:
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


@dataclass(frozen=True)
class Integers:
    """A list of integers, each from ``low`` to ``high``; ``unique`` ones where an axis may be named only once."""

    low: int = 0
    high: int = MAX_INDEX
    unique: bool = False

    def decode(self, value: Any, formats: Mapping[str, Format]) -> tuple[int, ...]:
        if not isinstance(value, list) or len(value) > MAX_RANK:
            raise AttributeValueError(f"expected a list of at most {MAX_RANK} integers")
        for item in value:
            if not _is_int(item) or not self.low <= item <= self.high:
                raise AttributeValueError(f"expected integers from {self.low} to {self.high}")
        if self.unique and len(set(value)) != len(value):
            raise AttributeValueError("expected integers that are all different")
        return tuple(value)

    def encode(self, value: Any) -> Any:
        return list(value)

    def schema(self) -> dict[str, Any]:
        item = {"type": "integer", "minimum": self.low, "maximum": self.high}
        array: dict[str, Any] = {"type": "array", "items": item, "maxItems": MAX_RANK}
        return array | ({"uniqueItems": True} if self.unique else {})


@dataclass(frozen=True)
class Choice:
    """One of a few strings."""

    values: tuple[str, ...]

    def decode(self, value: Any, formats: Mapping[str, Format]) -> str:
        if not isinstance(value, str) or value not in self.values:
            raise AttributeValueError("expected one of " + ", ".join(self.values))
        return value

    def encode(self, value: Any) -> Any:
        return value

    def schema(self) -> dict[str, Any]:
        return {"enum": list(self.values)}


@dataclass(frozen=True)
class Boolean:
    """true or false."""

    def decode(self, value: Any, formats: Mapping[str, Format]) -> bool:
        if not isinstance(value, bool):
            raise AttributeValueError("expected true or false")
        return value

    def encode(self, value: Any) -> Any:
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


@dataclass(frozen=True)
class TensorData:
    """A tensor with its words; decoded by the reader of the artifact, which knows where external data lies."""

    def decode(self, value: Any, formats: Mapping[str, Format]) -> Any:
        raise TypeError("tensor data is decoded by the artifact's reader")

    def encode(self, value: Any) -> Any:
        raise TypeError("tensor data is encoded by the artifact's writer")

    def schema(self) -> dict[str, Any]:
        return {"$ref": "#/$defs/tensor"}


_BLOCKED = re.compile(r"blocked\(([1-9][0-9]{0,8})\)")


@dataclass(frozen=True)
class Accumulate:
    """How a reduction or contraction accumulates.

    ``dtype`` is the type of the accumulator (None: the type of the result), ``order`` is "sequential", "pairwise" or
    "blocked", ``block`` the length of a block for the last, ``fma`` fuses each product with its addition.
    """

    dtype: DType | None = None
    order: str = "sequential"
    block: int = 0
    fma: bool = False

    @property
    def order_text(self) -> str:
        return f"blocked({self.block})" if self.order == "blocked" else self.order


@dataclass(frozen=True)
class Accumulation:
    """The attribute ``accumulate``: ``{"dtype": name, "order": text, "fma": Boolean}``, each part optional."""

    def decode(self, value: Any, formats: Mapping[str, Format]) -> Accumulate:
        if not isinstance(value, dict) or not value or not value.keys() <= {"dtype", "order", "fma"}:
            raise AttributeValueError("expected an object with dtype, order or fma")
        dtype = None
        if "dtype" in value:
            try:
                dtype = parse_dtype(value["dtype"], formats) if isinstance(value["dtype"], str) else None
            except KeyError:
                dtype = None
            if dtype is None:
                raise AttributeValueError(f"the dtype {value['dtype']!r} is not known")
        order = value.get("order", "sequential")
        if not isinstance(order, str):
            raise AttributeValueError("the order must be a string")
        fma = value.get("fma", False)
        if not isinstance(fma, bool):
            raise AttributeValueError("fma must be true or false")
        if match := _BLOCKED.fullmatch(order):
            return Accumulate(dtype, "blocked", int(match.group(1)), fma)
        if order not in ("sequential", "pairwise"):
            raise AttributeValueError(f"the order {order!r} is not sequential, pairwise or blocked(n)")
        return Accumulate(dtype, order, 0, fma)

    def encode(self, value: Any) -> Any:
        parts = {"order": value.order_text, "fma": value.fma}
        return parts | ({"dtype": value.dtype.name} if value.dtype else {})

    def schema(self) -> dict[str, Any]:
        return {"$ref": "#/$defs/accumulate"}


AttributeKind = Integer | Integers | Choice | Boolean | TensorData | Accumulation
