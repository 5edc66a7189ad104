"""Expressions that are equal exactly if they are the same operations on the same operands in the same order.

An expression is a number in a table; asking for the same operation on the same operands gives the same number
(hash-consing). Nothing is rearranged. Only what is exact is evaluated on the way: integers and Booleans that are known,
so that an index computed in one way and an index computed in another are the same.

Where data decides what is computed (an index that is read from an input, a comparison of floats), each expression has
one value that stands for what data might give: equal expressions have the same, and a ``salt`` chooses others.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.ir.types import DType
from tlir.passes.check.complex_numbers import by_parts

Ids = NDArray[np.int64]
"""Numbers of expressions."""

Key = tuple[Any, ...]

SALTS = (0, 1, 2, 3, 4, 5)
"""Choices of data that are tried where it decides."""

ZEROS_AND_ONES = (3, 4)
"""Those in which every integer is 0 or 1, so that the first regions of a case are taken."""

GROWING = 5
"""The one in which a float is greater than all that were computed before it, so that what is done while something is
large is done to the end."""

NOT_A_NUMBER = 6
"""What stands for NaN among the integers that stand for floats, in the other choices."""

_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "GE": operator.ge,
    "GT": operator.gt,
    "LE": operator.le,
    "LT": operator.lt,
}
_ARITHMETIC: dict[str, Callable[..., int]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "negate": operator.neg,
    "maximum": max,
    "minimum": min,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "clamp": lambda low, x, high: min(max(x, low), high),
}


_ROUNDED = frozenset(("add", "subtract", "multiply", "divide", "sqrt", "fma", "hypot", "maximum", "minimum"))
"""Operations whose results are the canonical NaN where they are NaN."""

_WHOLE = ("leaf", "literal", "opaque")
"""Kinds of expressions that have no operands."""


class Expressions:
    """The table. ``salt`` chooses the values that stand for data."""

    def __init__(self, salt: int = 0) -> None:
        self.salt = salt
        self._ids: dict[Key, int] = {}
        self._keys: list[Key] = []
        self._dtypes: list[DType] = []
        self._values: dict[int, int] = {}
        self._names: dict[Key, str] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def _intern(self, key: Key, dtype: DType) -> int:
        found = self._ids.get(key)
        if found is None:
            found = self._ids[key] = len(self._keys)
            self._keys.append(key)
            self._dtypes.append(dtype)
        return found

    def name(self, what: Key, name: str) -> str:
        """The first name that was given to this."""
        return self._names.setdefault(what, name)

    def leaf(self, name: str, position: int, dtype: DType) -> int:
        """Element ``position`` of something that is given."""
        return self._intern(("leaf", name, position, dtype), dtype)

    def literal(self, dtype: DType, word: int | tuple[int, int]) -> int:
        return self._intern(("literal", dtype, word), dtype)

    def integer(self, dtype: DType, value: int) -> int:
        """A literal of an integer dtype or bool, modulo 2^bits."""
        return self.literal(dtype, value & ((1 << dtype.bits) - 1))

    def apply(self, op: str, attrs: Mapping[str, Any], dtype: DType, operands: Sequence[int]) -> int:
        """The expression of an operation on expressions."""
        if op == "convert" and self._dtypes[operands[0]] == dtype:
            return operands[0]
        simpler = self._known(op, attrs, dtype, operands)
        if simpler is None and (dtype.is_complex or any(self._dtypes[x].is_complex for x in operands)):
            simpler = self._moved(op, dtype, operands)
            if simpler is None:
                simpler = by_parts(self, op, attrs, dtype, operands)
        if simpler is not None:
            return simpler
        written = tuple(sorted((name, value) for name, value in attrs.items()))
        return self._intern((op, written, dtype, tuple(operands)), dtype)

    def dtype(self, expression: int) -> DType:
        return self._dtypes[expression]

    def opaque(self, what: Key, position: int, dtype: DType) -> int:
        """Element ``position`` of something that is computed as a whole."""
        return self._intern(("opaque", what, position, dtype), dtype)

    def _known(self, op: str, attrs: Mapping[str, Any], dtype: DType, operands: Sequence[int]) -> int | None:
        """What the operation gives where that is known without data: exact integers, and true or false."""
        literals = [self._literal(operand) for operand in operands]
        if op == "select" and literals[0] is not None:
            return operands[1] if literals[0] else operands[2]
        if op in ("and", "or") and dtype.is_bool and any(literal is not None for literal in literals):
            decided = int(op == "or")
            if decided in literals:
                return self.integer(dtype, decided)
            return operands[1] if literals[0] is not None else operands[0]
        if op == "maximum" and operands[0] == operands[1] and self._canonical(operands[0]):
            return operands[0]
        if any(literal is None for literal in literals):
            return None
        value = _exact(op, attrs, dtype, [literal for literal in literals if literal is not None])
        return None if value is None else self.integer(dtype, value)

    def _canonical(self, expression: int) -> bool:
        """Whether a float, if it is NaN, is known to be the canonical one: so it is its own maximum."""
        key, dtype = self._keys[expression], self._dtypes[expression]
        if not dtype.is_float:
            return False
        if key[0] == "literal":
            return not dtype.float_format.is_nan(key[2]) or key[2] == dtype.float_format.invalid_word
        if key[0] == "select":
            return all(self._canonical(operand) for operand in key[3][1:])
        if key[0] in ("real", "imag"):
            return bool(self._keys[key[3][0]][0] == "divide")
        return key[0] in _ROUNDED

    def _moved(self, op: str, dtype: DType, operands: Sequence[int]) -> int | None:
        """What putting complex numbers together or taking them apart gives where that undoes itself."""
        keys = [self._keys[x] for x in operands]
        if op in ("real", "imag"):
            number = int(op == "imag")
            if keys[0][0] == "complex":
                part: int = keys[0][3][number]
                return part
            if keys[0][0] == "literal":
                return self.literal(dtype, keys[0][2][number])
        elif op == "complex":
            if keys[0][0] == keys[1][0] == "literal":
                return self.literal(dtype, (keys[0][2], keys[1][2]))
            if (keys[0][0], keys[1][0]) == ("real", "imag") and keys[0][3] == keys[1][3]:
                whole: int = keys[0][3][0]
                return whole
        return None

    def _literal(self, expression: int) -> int | None:
        """The integer or truth that an expression is, if it is a literal."""
        key, dtype = self._keys[expression], self._dtypes[expression]
        if key[0] != "literal" or not (dtype.is_integer or dtype.is_bool):
            return None
        return _signed(dtype, key[2])

    def value(self, expression: int) -> int:
        """The integer or truth of an expression; where data decides, the value that stands for it."""
        literal = self._literal(expression)
        if literal is not None:
            return literal
        if expression not in self._values:
            self._values[expression] = self._decided(expression)
        return self._values[expression]

    def first_difference(self, one: int, other: int) -> tuple[int, int]:
        """The innermost place, from the left, at which two expressions are different."""
        while True:
            a, b = self._keys[one], self._keys[other]
            if a[0] in _WHOLE or b[0] in _WHOLE or a[:3] != b[:3] or len(a[3]) != len(b[3]):
                return one, other
            pairs = [(x, y) for x, y in zip(a[3], b[3], strict=True) if x != y]
            alike = [
                (x, y) for x, y in pairs if self._keys[x][0] == self._keys[y][0] and self._keys[x][0] not in _WHOLE
            ]
            if len(pairs) > 1 and not alike:
                return one, other  # the operands are exchanged, or none of them is right
            one, other = alike[0] if alike else pairs[0]

    def text(self, expression: int, depth: int = 3) -> str:
        """The expression as text; below ``depth`` operations it says …"""
        key, dtype = self._keys[expression], self._dtypes[expression]
        match key[0]:
            case "leaf":
                return f"{key[1]}[{key[2]}]"
            case "literal":
                parts = key[2] if isinstance(key[2], tuple) else (key[2],)
                return f"{dtype.name} {' '.join(f'{part:#x}' for part in parts)}"
            case "opaque":
                return f"{key[1][0]}[{key[2]}]"
        if not depth:
            return "…"
        operands = ", ".join(self.text(operand, depth - 1) for operand in key[3])
        return f"{key[0]}({operands}){'' if key[0] != 'convert' else f' to {dtype.name}'}"

    def _decided(self, expression: int) -> int:
        key, dtype = self._keys[expression], self._dtypes[expression]
        if key[0] not in _WHOLE:
            op, attrs, _, operands = key
            whole = [self._dtypes[x].is_integer or self._dtypes[x].is_bool for x in operands]
            if op == "select" and all(whole):
                return self.value(operands[1] if self.value(operands[0]) else operands[2])
            if all(whole):
                value = _exact(op, dict(attrs), dtype, [self.value(x) for x in operands])
                if value is not None:
                    return _signed(dtype, value & ((1 << dtype.bits) - 1))
            if op == "compare" and dict(attrs).get("compare_type", "DEFAULT") == "DEFAULT":
                return self._compared(dict(attrs)["comparison_direction"], operands)
            if op == "is_finite":
                return int(not self._holds_nan(operands))
        if dtype.is_float and self.salt == GROWING:
            return expression
        random = Random(expression * 1000003 + self.salt)
        if dtype.is_bool or self.salt in ZEROS_AND_ONES:
            return random.randrange(2)
        # mostly small, so that it lies in what it may be an index of
        return random.randrange(0 if dtype.kind == "uint" else -1, 1 << min(dtype.bits - 1, 3))

    def _compared(self, direction: str, operands: Sequence[int]) -> int:
        """The truth of a comparison of floats: of the integers that stand for them, one of which is NaN. So elements
        have an order whatever they are compared with."""
        if self._holds_nan(operands):
            return int(direction == "NE")
        return int(_COMPARE[direction](*(self.value(x) for x in operands)))

    def _holds_nan(self, floats: Sequence[int]) -> bool:
        """Whether a NaN stands for one of these."""
        numbers = self.salt in (*ZEROS_AND_ONES, GROWING) or not self._dtypes[floats[0]].float_format.has_nan
        return not numbers and any(self.value(x) == NOT_A_NUMBER for x in floats)


def _signed(dtype: DType, word: int) -> int:
    return word - (1 << dtype.bits) if dtype.is_signed and word >> (dtype.bits - 1) else word


def _exact(op: str, attrs: Mapping[str, Any], dtype: DType, values: Sequence[int]) -> int | None:
    """The result of an operation on integers (before it is taken modulo 2^bits); None for what is not needed here."""
    if op == "compare":
        return int(_COMPARE[attrs["comparison_direction"]](*values))
    if op == "convert" and (dtype.is_integer or dtype.is_bool):
        return int(values[0] != 0) if dtype.is_bool else values[0]
    if op == "not":
        return 1 - values[0] if dtype.is_bool else ~values[0]
    if op in _ARITHMETIC and (dtype.is_integer or dtype.is_bool):
        return _ARITHMETIC[op](*values)
    return None


class SymbolicDomain:
    """Elements that are numbers of expressions, for ``tlir.kernel.interpret``."""

    def __init__(self, table: Expressions) -> None:
        self.table = table

    def tail(self, dtype: DType) -> tuple[int, ...]:
        return ()

    def blank(self, dtype: DType, size: int) -> Ids:
        return np.full(size, self.table.opaque(("nothing",), 0, dtype), np.int64)

    def literal(self, dtype: DType, word: int | tuple[int, int]) -> Ids:
        return np.asarray(self.table.literal(dtype, word), np.int64)

    def position(self, dtype: DType, integers: Ids) -> Ids:
        return self._each(lambda value: self.table.integer(dtype, value), integers)

    def integers(self, dtype: DType, elements: Ids) -> Ids:
        return self._each(self.table.value, elements)

    def apply(
        self, op: str, attrs: Mapping[str, Any], result: DType, dtypes: Sequence[DType], operands: Sequence[Ids]
    ) -> Ids:
        return self._each(lambda *ids: self.table.apply(op, attrs, result, ids), *operands)

    def _each(self, function: Callable[..., int], *arrays: Ids) -> Ids:
        """A function of each element, called once for equal ones."""
        known: dict[tuple[int, ...], int] = {}
        flat = zip(*(np.asarray(array).reshape(-1).tolist() for array in arrays), strict=True)
        results = []
        for item in flat:
            if item not in known:
                known[item] = function(*item)
            results.append(known[item])
        return np.array(results, np.int64).reshape(np.shape(arrays[0]))
