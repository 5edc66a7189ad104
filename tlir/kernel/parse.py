"""Reading the text form of ``tlir.kernel.text``: the same records come back, with the same numbers and names."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

from tlir.errors import ArtifactError
from tlir.floatlib.format import Format
from tlir.ir.graph import Ref
from tlir.ir.tensor import Tensor
from tlir.ir.types import DType, TensorType, parse_dtype
from tlir.kernel.index import Atom, FromValue, Index, Quotient, Remainder, Variable
from tlir.kernel.ir import (
    Alias,
    Apply,
    Block,
    Bound,
    Branch,
    Buffer,
    Each,
    Fallback,
    Kernel,
    Launch,
    Literal,
    Load,
    Loop,
    Position,
    Program,
    Span,
    Statement,
    Step,
    Store,
    Value,
)
from tlir.kernel.tables import FUNCTIONS, table

_SPACE = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?[0-9]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DTYPE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(<[A-Za-z_][A-Za-z0-9_]*>)?")
_VALUE = re.compile(r"v([0-9]+)\b")
_VARIABLE = re.compile(r"i([0-9]+)\b")
_WORD = re.compile(r"0x[0-9a-f]+")
_REF = re.compile(r"%([0-9]+)(?:#([0-9]+))?")

T = TypeVar("T")


class _Scanner:
    """A place in a text. What is expected and not there is an ArtifactError TL0217 with the line."""

    def __init__(self, text: str, formats: Mapping[str, Format] | None) -> None:
        self.text, self.at, self.formats = text, 0, formats
        self.values: dict[int, Value] = {}
        self.variables: dict[int, Variable] = {}
        self.buffers: dict[str, Buffer] = {}

    def fail(self, what: str) -> NoReturn:
        line = self.text.count("\n", 0, self.at) + 1
        found = self.text[self.at : self.at + 20].split("\n")[0]
        raise ArtifactError("TL0217", f"line {line} of the kernel text: expected {what} at {found!r}")

    def skip(self) -> None:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def take(self, literal: str) -> bool:
        """Pass over this text if it comes next."""
        self.skip()
        if not self.text.startswith(literal, self.at):
            return False
        end = self.at + len(literal)
        if literal[-1].isalnum() and end < len(self.text) and (self.text[end].isalnum() or self.text[end] == "_"):
            return False
        self.at = end
        return True

    def expect(self, literal: str) -> None:
        if not self.take(literal):
            self.fail(repr(literal))

    def match(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        self.skip()
        match = pattern.match(self.text, self.at)
        if match is None:
            self.fail(what)
        self.at = match.end()
        return match

    def sees(self, pattern: re.Pattern[str]) -> bool:
        self.skip()
        return pattern.match(self.text, self.at) is not None

    def number(self) -> int:
        return int(self.match(_NUMBER, "a number").group())

    def name(self) -> str:
        return self.match(_NAME, "a name").group()

    def dtype(self) -> DType:
        name = self.match(_DTYPE, "a dtype").group()
        try:
            return parse_dtype(name, self.formats)
        except KeyError:
            self.fail(f"a dtype that is known, not {name}")

    def several(self, item: Callable[[], T], end: str) -> tuple[T, ...]:
        """Items with commas between them up to ``end``, which is passed over."""
        items: list[T] = []
        while not self.take(end):
            if items:
                self.expect(",")
            items.append(item())
        return tuple(items)

    # ---- values and indices -----------------------------------------------------------------------------------------

    def value(self) -> Value:
        number = int(self.match(_VALUE, "a value").group(1))
        if number not in self.values:
            self.fail(f"a value that is known, not v{number}")
        return self.values[number]

    def new_value(self) -> Value:
        number = int(self.match(_VALUE, "a value").group(1))
        self.expect(":")
        self.values[number] = Value(number, self.dtype())
        return self.values[number]

    def new_variable(self) -> Variable:
        number = int(self.match(_VARIABLE, "a variable").group(1))
        self.expect("<")
        self.variables[number] = Variable(number, self.number())
        return self.variables[number]

    def index(self) -> Index:
        terms: list[tuple[int, Atom]] = []
        constant = 0
        sign = -1 if self.take("-") else 1
        while True:
            if self.sees(_NUMBER):
                number = sign * self.number()
                if self.take("*"):
                    terms.append((number, self.atom()))
                else:
                    constant += number
            else:
                terms.append((sign, self.atom()))
            if self.take("+"):
                sign = 1
            elif self.take("-"):
                sign = -1
            else:
                return Index(tuple(terms), constant)

    def atom(self) -> Atom:
        if self.take("("):
            dividend = self.index()
            kind: type[Quotient] | type[Remainder] = Quotient if self.take("floordiv") else Remainder
            if kind is Remainder:
                self.expect("mod")
            atom = kind(dividend, self.number())
            self.expect(")")
            return atom
        if self.take("["):
            value = self.value()
            self.expect(":")
            least = self.number()
            self.expect("to")
            greatest = self.number()
            self.expect("]")
            return FromValue(value, least, greatest)
        number = int(self.match(_VARIABLE, "an index").group(1))
        if number not in self.variables:
            self.fail(f"a variable that is known, not i{number}")
        return self.variables[number]

    def element(self) -> tuple[Buffer, Index]:
        name = self.name()
        if name not in self.buffers:
            self.fail(f"a buffer that is known, not {name}")
        self.expect("[")
        offset = self.index()
        self.expect("]")
        return self.buffers[name], offset

    # ---- statements -------------------------------------------------------------------------------------------------

    def block(self) -> Block:
        """Statements up to the closing brace, which is passed over."""
        statements: list[Statement] = []
        results: tuple[Value, ...] = ()
        while not self.take("}"):
            if self.take("yield"):
                results = (self.value(),)
                while self.take(","):
                    results += (self.value(),)
                self.expect("}")
                break
            statements.append(self.statement())
        return Block(tuple(statements), results)

    def statement(self) -> Statement:
        if self.take("store"):
            buffer, offset = self.element()
            self.expect("=")
            return Store(buffer, offset, self.value())
        if self.take("each"):
            return self.each()
        if self.take("loop"):
            return self.loop(())
        if self.take("if"):
            return self.branch(())
        results: tuple[Value, ...] = (self.new_value(),)
        while self.take(","):
            results += (self.new_value(),)
        self.expect("=")
        if self.take("loop"):
            return self.loop(results)
        if self.take("if"):
            return self.branch(results)
        if len(results) != 1:
            self.fail("loop or if")
        return self.single(results[0])

    def single(self, result: Value) -> Statement:
        if self.take("literal"):
            word = int(self.match(_WORD, "a word").group(), 16)
            if self.take(","):
                return Literal(result, (word, int(self.match(_WORD, "a word").group(), 16)))
            return Literal(result, word)
        if self.take("position"):
            return Position(result, self.index())
        if self.take("load"):
            buffer, offset = self.element()
            guard: tuple[Bound, ...] = ()
            if self.take("where"):
                guard = (self.bound(),)
                while self.take(","):
                    guard += (self.bound(),)
            return Load(result, buffer, offset, guard, self.value() if self.take("else") else None)
        op = self.name()
        self.expect("(")
        operands = self.several(self.value, ")")
        return Apply(result, op, operands, dict(self.several(self.attribute, "}")) if self.take("{") else {})

    def bound(self) -> Bound:
        low = self.number()
        self.expect("<=")
        index = self.index()
        self.expect("<")
        return Bound(index, low, self.number())

    def attribute(self) -> tuple[str, Any]:
        name = self.name()
        self.expect("=")
        return name, self.json()

    def json(self) -> Any:
        self.skip()
        try:
            value, self.at = json.JSONDecoder().raw_decode(self.text, self.at)
        except ValueError:
            self.fail("a JSON value")
        return value

    def each(self) -> Each:
        variables: tuple[Variable, ...] = ()
        span = None
        while not self.take("{"):
            if variables:
                span = self.span()
                if span is not None:
                    self.expect("{")
                    break
                self.expect(",")
            variables += (self.new_variable(),)
        return Each(variables, self.block(), span)

    def span(self) -> Span | None:
        if not self.take("from"):
            return None
        first = self.index()
        self.expect("to")
        return Span(first, self.index())

    def loop(self, results: tuple[Value, ...]) -> Loop:
        variable = self.new_variable()
        span = self.span()
        self.expect("carry")
        self.expect("(")
        pairs = self.several(self.carried, ")")
        self.expect("{")
        start, parameters = tuple(pair[1] for pair in pairs), tuple(pair[0] for pair in pairs)
        return Loop(results, variable, start, parameters, self.block(), span)

    def carried(self) -> tuple[Value, Value]:
        parameter = self.new_value()
        self.expect("=")
        return parameter, self.value()

    def branch(self, results: tuple[Value, ...]) -> Branch:
        condition = self.value()
        self.expect("{")
        then = self.block()
        self.expect("else")
        self.expect("{")
        return Branch(results, condition, then, self.block())

    # ---- kernels and programs ---------------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        self.values, self.variables, self.buffers = {}, {}, {}
        self.expect("kernel")
        self.expect("@")
        name = self.name()
        self.expect("(")
        buffers = self.several(self.new_buffer, ")")
        self.expect("space")
        self.expect("(")
        space = self.several(self.new_variable, ")")
        nodes: tuple[int, ...] = ()
        if self.take("nodes"):
            self.expect("(")
            nodes = self.several(self.number, ")")
        self.expect("{")
        return Kernel(name, buffers, space, self.block(), nodes)

    def new_buffer(self) -> Buffer:
        name = self.name()
        self.expect(":")
        role = self.name()
        if role not in ("input", "output", "local"):
            self.fail("input, output or local")
        dtype = self.dtype()
        self.expect("[")
        size = self.number()
        self.expect("]")
        self.buffers[name] = Buffer(name, dtype, size, role)
        return self.buffers[name]

    def ref(self) -> Ref:
        match = self.match(_REF, "a value of the graph")
        return Ref(int(match.group(1)), int(match.group(2) or 0))

    def type(self) -> TensorType:
        dtype = self.dtype()
        self.expect("[")
        return TensorType(self.several(self.number, "]"), dtype)

    def program(self, constants: Mapping[Ref, Tensor]) -> Program:
        self.expect("program")
        self.expect("{")
        types: dict[Ref, TensorType] = {}
        given: dict[Ref, Tensor] = {}
        tables: dict[Ref, str] = {}
        steps: list[Step | tuple[str, tuple[Ref, ...]]] = []
        while not self.take("inputs"):
            if self.take("launch"):
                self.expect("@")
                name = self.name()
                self.expect("(")
                steps.append((name, self.several(self.ref, ")")))
            elif self.take("fallback"):
                steps.append(Fallback(self.number(), str(self.json())))
            elif self.take("alias"):
                value = self.ref()
                self.expect("=")
                steps.append(Alias(value, self.ref()))
            else:
                constant = self.take("constant")
                self.take("input")
                ref = self.ref()
                self.expect(":")
                types[ref] = self.type()
                if constant and self.take("="):
                    tables[ref] = self.name()
                    if tables[ref] not in FUNCTIONS or not self.is_line_of_floats(types[ref]):
                        self.fail(f"a table of floats: {' or '.join(FUNCTIONS)}")
                    given[ref] = constants.get(ref) or table(tables[ref], types[ref])
                elif constant:
                    if ref not in constants:
                        self.fail(f"words given for the constant {ref}, before")
                    given[ref] = constants[ref]
        self.expect("(")
        inputs = self.several(self.ref, ")")
        self.expect("outputs")
        self.expect("(")
        outputs = self.several(self.ref, ")")
        self.expect("}")
        kernels: dict[str, Kernel] = {}
        while self.sees(re.compile("kernel")):
            kernel = self.kernel()
            kernels[kernel.name] = kernel
        linked: list[Step] = []
        for step in steps:
            if isinstance(step, tuple):
                if step[0] not in kernels:
                    self.fail(f"the kernel @{step[0]}")
                linked.append(Launch(kernels[step[0]], step[1]))
            else:
                linked.append(step)
        return Program(types, given, inputs, outputs, tuple(linked), tables)

    @staticmethod
    def is_line_of_floats(type: TensorType) -> bool:
        return type.rank == 1 and type.size > 0 and type.dtype.is_float

    def end(self) -> None:
        self.skip()
        if self.at != len(self.text):
            self.fail("the end")


def parse_kernel(text: str, formats: Mapping[str, Format] | None = None) -> Kernel:
    """The kernel that the text describes; ``formats`` are the number formats that the artifact declares.

    ArtifactError TL0217 for text that is not a kernel's."""
    scanner = _Scanner(text, formats)
    kernel = scanner.kernel()
    scanner.end()
    return kernel


def parse_program(
    text: str, constants: Mapping[Ref, Tensor] | None = None, formats: Mapping[str, Format] | None = None
) -> Program:
    """The program that the text describes; the words of the graph's constants, which the text does not hold, are given.

    ArtifactError TL0217 for text that is not a program's."""
    scanner = _Scanner(text, formats)
    program = scanner.program(constants or {})
    scanner.end()
    return program
