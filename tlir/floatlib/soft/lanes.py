"""The machine of the software kernels, on several lanes at once: words, predicates and reals are LLVM vectors."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from tlir.floatlib.soft import objects
from tlir.floatlib.soft.llvm import LlvmMachine
from tlir.floatlib.soft.machine import Predicate, Real, Word

I1, I32, I64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)
FLOAT, DOUBLE = ir.FloatType(), ir.DoubleType()
BYTE = ir.IntType(8).as_pointer()
_NAMES = {"float": "f32", "double": "f64", "half": "f16"}


def vector(element: Any, lanes: int) -> Any:
    """The LLVM type of ``lanes`` elements; of one, the element itself."""
    return element if lanes == 1 else ir.VectorType(element, lanes)


def splat(element: Any, lanes: int, value: Any) -> Any:
    """A constant in every lane."""
    one = ir.Constant(element, value)
    return one if lanes == 1 else ir.Constant(ir.VectorType(element, lanes), [one] * lanes)


def mangled(kind: Any) -> str:
    """A type's part of the name of an overloaded intrinsic."""
    if isinstance(kind, ir.VectorType):
        return f"v{kind.count}{_NAMES.get(str(kind.element), str(kind.element))}"
    return "p0" if isinstance(kind, ir.PointerType) else _NAMES.get(str(kind), str(kind))


def intrinsic(builder: ir.IRBuilder, name: str, result: Any, arguments: list[Any], overloads: list[Any]) -> Any:
    """A call of ``name`` overloaded by the types ``overloads``."""
    full = ".".join([name, *(mangled(kind) for kind in overloads)])
    function = builder.module.globals.get(full)
    if function is None:
        kind = ir.FunctionType(result, [argument.type for argument in arguments])
        function = ir.Function(builder.module, kind, full)
    return builder.call(function, arguments)


def broadcast(builder: ir.IRBuilder, value: Any, lanes: int) -> Any:
    """A scalar in every lane."""
    if lanes == 1:
        return value
    kind = ir.VectorType(value.type, lanes)
    undefined = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(I32, 0))
    mask = ir.Constant(ir.VectorType(I32, lanes), [0] * lanes)
    return builder.shuffle_vector(first, undefined, mask)


def joined(builder: ir.IRBuilder, one: Any, from_one: Any, other: Any, from_other: Any) -> Any:
    """What a block has that two others lead to."""
    phi = builder.phi(one.type)
    phi.add_incoming(one, from_one)
    phi.add_incoming(other, from_other)
    return phi


class LaneMachine(LlvmMachine):
    """``LlvmMachine`` with every word, predicate and real ``lanes`` wide."""

    def __init__(self, builder: ir.IRBuilder, bits: int, lanes: int) -> None:
        super().__init__(builder, bits)
        self.lanes = lanes
        self.element = ir.IntType(bits)
        self.type = vector(self.element, lanes)
        self.real = vector(self.real_element, lanes)

    def constant(self, value: int) -> Word:
        return splat(self.element, self.lanes, value)

    def truth(self, value: bool) -> Predicate:
        return splat(I1, self.lanes, int(value))

    def real_constant(self, value: float) -> Real:
        return splat(self.real_element, self.lanes, value)

    def multiply_wide(self, x: Word, y: Word) -> tuple[Word, Word]:
        if self.bits == 64:
            return super().multiply_wide(x, y)
        b, wide = self.builder, vector(I64, self.lanes)
        product = b.mul(b.zext(x, wide), b.zext(y, wide))
        return b.trunc(product, self.type), b.trunc(b.lshr(product, splat(I64, self.lanes, 32)), self.type)

    def _funnel(self, name: str, high: Word, low: Word, count: Word) -> Word:
        return intrinsic(self.builder, name, self.type, [high, low, count], [self.type])

    def leading_zeros(self, x: Word) -> Word:
        return intrinsic(self.builder, "llvm.ctlz", self.type, [x, ir.Constant(I1, 0)], [self.type])

    def real_of(self, x: Word) -> Real:
        return self.builder.uitofp(x, self.real)

    def _real_call(self, name: str, *arguments: Real) -> Real:
        return intrinsic(self.builder, name, self.real, list(arguments), [self.real])

    def real_from_bits(self, x: Word) -> Real:
        return self.builder.bitcast(x, self.real)

    def real_from_signed(self, x: Word) -> Real:
        return self.builder.sitofp(x, self.real)

    def real32_of_bits(self, x: Word) -> Real:
        b, narrow = self.builder, vector(I32, self.lanes)
        word = x if self.bits == 32 else b.trunc(x, narrow)
        return b.fpext(b.bitcast(word, vector(FLOAT, self.lanes)), self.real)

    def round32(self, x: Real) -> Word:
        b = self.builder
        word = b.bitcast(b.fptrunc(x, vector(FLOAT, self.lanes)), vector(I32, self.lanes))
        return word if self.bits == 32 else b.zext(word, self.type)

    def table(self, values: tuple[float, ...] | tuple[int, ...], index: Word) -> Real | Word:
        if self.lanes == 1:
            return super().table(values, index)
        element = self.real_element if isinstance(values[0], float) else self.element
        first = super()._entry(values, ir.Constant(I64, 0))
        return gather(self.builder, element, places(self.builder, first, self._index(index), element), self.lanes)

    def _index(self, index: Word) -> Any:
        return index if self.bits == 64 else self.builder.zext(index, vector(I64, self.lanes))


class SingleMachine(LaneMachine):
    """Words of 32 bits, and reals that are binary32 numbers."""

    real_element = FLOAT

    def __init__(self, builder: ir.IRBuilder, lanes: int) -> None:
        super().__init__(builder, 32, lanes)

    def permuted(self, values: tuple[float, ...], index: Word) -> Real:
        """The entry of a table of a power of two of entries, of whose number the low bits of ``index`` are."""
        if len(values) != 2 * REGISTER or self.lanes != REGISTER or not objects.has_feature("avx512f"):
            return self.table(values, self.and_(index, self.constant(len(values) - 1)))
        # from two registers that hold the table; memory would be asked lane by lane
        low, high = (ir.Constant(self.real, list(half)) for half in (values[:REGISTER], values[REGISTER:]))
        return _call(self.builder, "llvm.x86.avx512.vpermi2var.ps.512", self.real, [low, index, high])


REGISTER = 16
"""Numbers of 32 bits in the widest registers."""


def part(builder: ir.IRBuilder, value: Any, first: int, count: int) -> Any:
    """``count`` lanes of a vector, from ``first`` on."""
    if count == value.type.count:
        return value
    mask = ir.Constant(ir.VectorType(I32, count), list(range(first, first + count)))
    return builder.shuffle_vector(value, ir.Constant(value.type, ir.Undefined), mask)


def concatenated(builder: ir.IRBuilder, vectors: list[Any]) -> Any:
    """Vectors of equal length, one behind the other; their number is a power of two."""
    while len(vectors) > 1:
        size = vectors[0].type.count
        mask = ir.Constant(ir.VectorType(I32, 2 * size), list(range(2 * size)))
        vectors = [builder.shuffle_vector(x, y, mask) for x, y in zip(vectors[::2], vectors[1::2], strict=True)]
    return vectors[0]


def places(builder: ir.IRBuilder, start: Any, offsets: Any, element: Any) -> Any:
    """The addresses of the elements at a vector of offsets from ``start``."""
    # llvmlite's getelementptr takes no vectors
    lanes = offsets.type.count
    size = element_bytes(element)
    steps = offsets if size == 1 else builder.mul(offsets, splat(I64, lanes, size))
    address = broadcast(builder, builder.ptrtoint(start, I64), lanes)
    return builder.inttoptr(builder.add(address, steps), ir.VectorType(element.as_pointer(), lanes))


def gather(builder: ir.IRBuilder, element: Any, addresses: Any, lanes: int, mask: Any = None, rest: Any = None) -> Any:
    """The elements at a vector of addresses; where there is a mask and it does not hold, the lanes of ``rest``."""
    kind = ir.VectorType(element, lanes)
    mask = splat(I1, lanes, 1) if mask is None else mask
    rest = ir.Constant(kind, ir.Undefined) if rest is None else rest
    arguments = [addresses, ir.Constant(I32, element_bytes(element)), mask, rest]
    return _call(builder, f"llvm.masked.gather.{mangled(kind)}.v{lanes}p0", kind, arguments)


def scatter(builder: ir.IRBuilder, values: Any, addresses: Any, lanes: int, mask: Any = None) -> None:
    """Writes the lanes where the mask holds to a vector of addresses, the first lane first."""
    name = f"llvm.masked.scatter.{mangled(values.type)}.v{lanes}p0"
    size = ir.Constant(I32, element_bytes(values.type.element))
    _call(builder, name, ir.VoidType(), [values, addresses, size, splat(I1, lanes, 1) if mask is None else mask])


def masked_load(builder: ir.IRBuilder, place: Any, mask: Any, otherwise: Any) -> Any:
    """A vector at an address, read only where the mask holds."""
    kind = otherwise.type
    size = ir.Constant(I32, element_bytes(kind.element))
    return _call(builder, f"llvm.masked.load.{mangled(kind)}.p0", kind, [place, size, mask, otherwise])


def masked_store(builder: ir.IRBuilder, values: Any, place: Any, mask: Any) -> None:
    """Writes the lanes where the mask holds to consecutive elements."""
    size = ir.Constant(I32, element_bytes(values.type.element))
    _call(builder, f"llvm.masked.store.{mangled(values.type)}.p0", ir.VoidType(), [values, place, size, mask])


def prefetch(builder: ir.IRBuilder, place: Any, writes: bool) -> None:
    """Asks for the cache line of an address (i8*), which need not be one that can be read."""
    arguments = [place, *(ir.Constant(I32, value) for value in (int(writes), 2, 1))]
    _call(builder, "llvm.prefetch.p0", ir.VoidType(), arguments)


def _call(builder: ir.IRBuilder, name: str, result: Any, arguments: list[Any]) -> Any:
    function = builder.module.globals.get(name)
    if function is None:
        kind = ir.FunctionType(result, [argument.type for argument in arguments])
        function = ir.Function(builder.module, kind, name)
    return builder.call(function, arguments)


def element_bytes(element: Any) -> int:
    """The size of an integer or floating-point type in memory."""
    if isinstance(element, ir.IntType):
        return max(element.width // 8, 1)
    return {"half": 2, "float": 4, "double": 8}[str(element)]
