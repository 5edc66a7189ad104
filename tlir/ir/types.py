"""Element types and tensor types.

A ``DType`` is a Boolean, a two's complement or unsigned integer of 2 to 64 bits, a binary floating-point format, or a
complex number over one. Its ``name`` is what artifacts say; formats that an artifact declares itself are passed to
``parse_dtype`` as a table of names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod

import numpy as np

from tlir.floatlib.format import FORMATS, Format

MAX_RANK = 64
MAX_ELEMENTS = 2**40
"""Largest number of elements of one tensor: far above what fits in memory, low enough that sizes never overflow."""

INTEGER_WIDTHS = (2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class DType:
    """One element type. ``kind`` is "bool", "int", "uint", "float" or "complex"; ``bits`` is the width of one word
    (of one component, for a complex type); ``format`` is the floating-point format (of the components)."""

    name: str
    kind: str
    bits: int
    format: Format | None = None

    @property
    def is_bool(self) -> bool:
        return self.kind == "bool"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_complex(self) -> bool:
        return self.kind == "complex"

    @property
    def is_signed(self) -> bool:
        """True of two's complement integers."""
        return self.kind == "int"

    @property
    def float_format(self) -> Format:
        """The floating-point format of the element or of its components; an AttributeError for other kinds."""
        if self.format is None:
            raise AttributeError(f"{self.name} has no floating-point format")
        return self.format

    @cached_property
    def component(self) -> DType:
        """The type of the real and imaginary parts of a complex type; any other type itself."""
        if not self.is_complex:
            return self
        for dtype in NAMED.values():
            if dtype.is_float and dtype.format == self.format:
                return dtype
        return DType(self.name.removeprefix("complex<").removesuffix(">"), "float", self.bits, self.format)

    @property
    def components(self) -> int:
        """Words per element: two for a complex type, otherwise one."""
        return 2 if self.is_complex else 1

    @property
    def word_bytes(self) -> int:
        """Bytes of one word in base64 and external encodings: its bits rounded up to whole bytes."""
        return (self.bits + 7) // 8

    @property
    def limbs(self) -> int:
        """64-bit limbs of one word in memory; 1 where a word fits one NumPy integer."""
        return (self.bits + 63) // 64

    @property
    def word_dtype(self) -> np.dtype[np.unsignedinteger]:
        """The NumPy type that holds one word, or one limb of it: uint8, uint16, uint32 or uint64."""
        for bits in (8, 16, 32):
            if self.bits <= bits:
                return np.dtype(f"uint{bits}")
        return np.dtype("uint64")

    def __str__(self) -> str:
        return self.name


BOOL = DType("bool", "bool", 1)


def _named() -> dict[str, DType]:
    table = {"bool": BOOL}
    for width in INTEGER_WIDTHS:
        table[f"int{width}"] = DType(f"int{width}", "int", width)
        table[f"uint{width}"] = DType(f"uint{width}", "uint", width)
    for name, fmt in FORMATS.items():
        table[name] = DType(name, "float", fmt.width, fmt)
    for name, part in (("complex64", "float32"), ("complex128", "float64")):
        table[name] = DType(name, "complex", FORMATS[part].width, FORMATS[part])
    return table


NAMED: dict[str, DType] = _named()
"""Every dtype that has a name of its own."""

_COMPLEX = re.compile(r"complex<([A-Za-z_][A-Za-z0-9_]*)>")


@lru_cache(maxsize=1024)
def _complex_over(name: str, fmt: Format) -> DType:
    return DType(name, "complex", fmt.width, fmt)


def complex_of(component: DType) -> DType:
    """The complex type whose parts have the float type ``component``: complex64 for float32, ``complex<float16>``."""
    name = {"float32": "complex64", "float64": "complex128"}.get(component.name, f"complex<{component.name}>")
    return _complex_over(name, component.float_format)


def parse_dtype(name: str, formats: Mapping[str, Format] | None = None) -> DType:
    """The dtype called ``name``; ``formats`` are the formats that the artifact declares. KeyError if there is none."""
    if name in NAMED:
        return NAMED[name]
    declared = formats or {}
    if name in declared:
        return DType(name, "float", declared[name].width, declared[name])
    if match := _COMPLEX.fullmatch(name):
        component = parse_dtype(match.group(1), formats)
        canonical = complex_of(component) if component.is_float else None
        if canonical is not None and canonical.name == name:
            return canonical
    raise KeyError(name)


@dataclass(frozen=True)
class TensorType:
    """Shape and dtype of a value; a rank-0 shape is a scalar."""

    shape: tuple[int, ...]
    dtype: DType

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the words in memory."""
        return self.size * self.dtype.components * self.dtype.limbs * self.dtype.word_dtype.itemsize

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"
