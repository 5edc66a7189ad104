"""The rules that every kernel and every program obeys. ``RULES`` numbers them; ``docs/kernels.md`` lists them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tlir.ir.graph import Body, Ref
from tlir.ir.ops import OPERATIONS, Call, Violation, arithmetic, complex_numbers, elementary, logic, special
from tlir.ir.types import DType, TensorType
from tlir.kernel.index import Atom, FromValue, Index, Quotient, Remainder, Variable
from tlir.kernel.ir import (
    Alias,
    Apply,
    Block,
    Bound,
    Branch,
    Buffer,
    Each,
    Kernel,
    Launch,
    Literal,
    Load,
    Loop,
    Position,
    Program,
    Span,
    Statement,
    Store,
    Value,
    results_of,
)
from tlir.kernel.ranges import Place, apart, covers, limits

RULES = {
    "KV01": "Every value and every variable is defined once.",
    "KV02": "Buffers have names of their own and a role; local ones come last; statements use the kernel's buffers.",
    "KV03": "Values and variables are used where they are defined, indices take integer values.",
    "KV04": "A literal is a word of its dtype; a position is an integer; loads and stores have their buffer's dtype.",
    "KV05": "Apply is an elementwise operation, with the operands, attributes and result that it has in a graph.",
    "KV06": "A branch's condition is bool, and both blocks leave values of its results' dtypes.",
    "KV07": "A loop's start, parameters, the results of its body and its own results have the same dtypes.",
    "KV08": "Offsets lie in their buffers: by the ranges of their variables, or by the guard of a load.",
    "KV09": "A load with a guard says what it is otherwise.",
    "KV10": "Only outputs and local buffers are written, and they are read only after a store.",
    "KV11": "The body of each leaves no values.",
    "KV12": "No two iterations of the space write to the same element of an output.",
    "KV13": "Every element of an output is written.",
    "KV14": "A span is in the range of its variable, an each's only one, and depends on ordered loops around it alone.",
    "KV20": "A launch has one argument per buffer that is not local, of its dtype and size or its parts.",
    "KV21": "Every value is computed by one step, before it is read.",
    "KV22": "An alias has the dtype and the number of elements of what it stands for.",
}
"""Where data decides where a kernel writes, KV12 and KV13 cannot be decided; nor can KV08 for every guard."""

ELEMENTWISE = frozenset(
    operation.name
    for family in (arithmetic, elementary, special, logic, complex_numbers)
    for operation in family.OPERATIONS
) | {"convert", "reduce_precision", "bitcast_convert"}
"""The operations that ``Apply`` may name."""

_ROLES = ("input", "output", "local")


@dataclass(frozen=True)
class Fault:
    """A rule that does not hold, or is not seen to hold."""

    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}"


@dataclass(frozen=True)
class Verification:
    """``faults`` are rules that do not hold, ``undecided`` those of which that is not known."""

    faults: tuple[Fault, ...]
    undecided: tuple[Fault, ...]

    @property
    def ok(self) -> bool:
        return not self.faults


def verify(kernel: Kernel) -> Verification:
    """Check one kernel against the rules KV01 to KV14."""
    verifier = _Verifier(kernel)
    verifier.run()
    return Verification(tuple(verifier.faults), tuple(verifier.undecided))


class _Verifier:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.faults: list[Fault] = []
        self.undecided: list[Fault] = []
        self.numbers: set[int] = set()
        self.variable_numbers: set[int] = set()
        self.visible: set[Value | Variable] = set()
        self.written: set[Buffer] = set()
        self.places: dict[Buffer, list[Place]] = {}
        self.inner: tuple[Variable, ...] = ()
        self.ordered: set[Variable] = set()
        self.conditional = False

    def fault(self, rule: str, message: str) -> None:
        self.faults.append(Fault(rule, message))

    def run(self) -> None:
        self._buffers()
        for variable in self.kernel.space:
            self._define_variable(variable)
        self._block(self.kernel.body)
        if self.kernel.body.results:
            self.fault("KV11", "the kernel's body leaves values")
        for buffer in self.kernel.buffers:
            if buffer.role == "output" and not any(v.extent == 0 for v in self.kernel.space):
                self._stores(buffer)

    def _buffers(self) -> None:
        names = [buffer.name for buffer in self.kernel.buffers]
        if len(set(names)) != len(names):
            self.fault("KV02", "two buffers have the same name")
        local = [buffer.role == "local" for buffer in self.kernel.buffers]
        if local != sorted(local):
            self.fault("KV02", "a local buffer comes before another one")
        for buffer in self.kernel.buffers:
            if buffer.role not in _ROLES or buffer.size < 0:
                self.fault("KV02", f"{buffer.name} is {buffer.role} of {buffer.size} elements")

    def _stores(self, buffer: Buffer) -> None:
        places, space = self.places.get(buffer, []), self.kernel.space
        for rule, holds, what in (
            ("KV12", apart(places, space), "iterations write to elements of their own"),
            ("KV13", covers(places, space, buffer.size), "every element is written"),
        ):
            if holds is False:
                self.fault(rule, f"{buffer.name}: it is not so that {what}")
            elif holds is None:
                self.undecided.append(Fault(rule, f"{buffer.name}: it is not seen that {what}"))

    # ---- definitions ------------------------------------------------------------------------------------------------

    def _define(self, value: Value) -> None:
        if value.number in self.numbers:
            self.fault("KV01", f"{value} is defined twice")
        self.numbers.add(value.number)
        self.visible.add(value)

    def _define_variable(self, variable: Variable) -> None:
        if variable.number in self.variable_numbers:
            self.fault("KV01", f"{variable} is defined twice")
        if variable.extent < 0:
            self.fault("KV03", f"{variable} has the extent {variable.extent}")
        self.variable_numbers.add(variable.number)
        self.visible.add(variable)

    def _use(self, *values: Value) -> None:
        for value in values:
            if value not in self.visible:
                self.fault("KV03", f"{value} is not defined where it is used")

    def _index(self, index: Index) -> None:
        for _, atom in index.terms:
            self._atom(atom)

    def _atom(self, atom: Atom) -> None:
        if isinstance(atom, Variable):
            if atom not in self.visible:
                self.fault("KV03", f"{atom} of extent {atom.extent} is not defined where it is used")
        elif isinstance(atom, FromValue):
            self._use(atom.value)
            if not atom.value.dtype.is_integer:
                self.fault("KV03", f"the index {atom} is {atom.value.dtype.name}")
        elif isinstance(atom, Quotient | Remainder):
            if atom.divisor <= 0:
                self.fault("KV03", f"the index {atom} divides by {atom.divisor}")
            self._index(atom.dividend)

    # ---- statements -------------------------------------------------------------------------------------------------

    def _block(self, block: Block) -> None:
        for statement in block.statements:
            self._statement(statement)
            for value in results_of(statement):
                self._define(value)
        self._use(*block.results)

    def _inner(
        self, block: Block, variables: Sequence[Variable] = (), values: Sequence[Value] = (), branch: bool = False
    ) -> None:
        """A block in a scope of its own."""
        before = set(self.visible), self.inner, self.conditional, set(self.ordered)
        for variable in variables:
            self._define_variable(variable)
        for value in values:
            self._define(value)
        self.inner, self.conditional = (*self.inner, *variables), self.conditional or branch
        self._block(block)
        self.visible, self.inner, self.conditional, self.ordered = before

    def _span(self, span: Span | None, variables: tuple[Variable, ...]) -> None:
        if span is None:
            return
        for index in (span.first, span.end):
            self._index(index)
            if index.values() or not index.variables() <= self.ordered:
                self.fault("KV14", f"a loop goes to or from {index}, which is no matter of ordered loops around it")
            if index.least < 0 or index.greatest > variables[0].extent:
                self.fault("KV14", f"a loop over {variables[0]} goes to or from {index}")
        if len(variables) > 1:
            self.fault("KV14", f"each {', '.join(map(str, variables))} has a span")

    def _statement(self, statement: Statement) -> None:
        match statement:
            case Literal(result, word):
                if not _is_word(result.dtype, word):
                    self.fault("KV04", f"{result} of {result.dtype.name} is the literal {word!r}")
            case Position(result, index):
                self._index(index)
                if not result.dtype.is_integer:
                    self.fault("KV04", f"the position {result} is {result.dtype.name}")
            case Load():
                self._load(statement)
            case Apply():
                self._use(*statement.operands)
                self._apply(statement)
            case Branch(results, condition, then, otherwise):
                self._use(condition)
                if not condition.dtype.is_bool:
                    self.fault("KV06", f"the condition {condition} is {condition.dtype.name}")
                for block in (then, otherwise):
                    self._inner(block, branch=True)
                    if _dtypes(block.results) != _dtypes(results):
                        self.fault("KV06", f"a block leaves {_named(block.results)} for {_named(results)}")
            case Loop(results, variable, start, parameters, body):
                self._use(*start)
                self._span(statement.span, (variable,))
                known = set(self.ordered)
                self.ordered.add(variable)
                self._inner(body, (variable,), parameters, branch=statement.span is not None)
                self.ordered = known
                kinds = {_dtypes(values) for values in (results, start, parameters, body.results)}
                if len(kinds) > 1:
                    self.fault(
                        "KV07",
                        f"the loop over {variable} starts with {_named(start)}, takes {_named(parameters)}, carries on "
                        f"{_named(body.results)} and gives {_named(results)}",
                    )
            case Each(variables, body):
                self._span(statement.span, variables)
                self._inner(body, variables, branch=statement.span is not None)
                if body.results:
                    self.fault("KV11", f"the body of each {', '.join(map(str, variables))} leaves values")
            case Store(buffer, offset, value):
                self._store(buffer, offset, value)

    def _load(self, load: Load) -> None:
        self._known(load.buffer)
        self._index(load.offset)
        for bound in load.guard:
            self._index(bound.index)
        if load.result.dtype != load.buffer.dtype:
            self.fault("KV04", f"{load.result} of {load.result.dtype.name} is loaded from {load.buffer.name}")
        if load.otherwise is not None:
            self._use(load.otherwise)
            if load.otherwise.dtype != load.buffer.dtype:
                self.fault("KV04", f"{load.result} is otherwise {load.otherwise} of {load.otherwise.dtype.name}")
        elif load.guard:
            self.fault("KV09", f"{load.result} has a guard, and nothing for where it does not hold")
        self._inside(load.buffer, load.offset, load.guard)
        if load.buffer.role != "input" and load.buffer not in self.written:
            self.fault("KV10", f"{load.buffer.name} is read before anything is stored in it")

    def _store(self, buffer: Buffer, offset: Index, value: Value) -> None:
        self._known(buffer)
        self._use(value)
        self._index(offset)
        if value.dtype != buffer.dtype:
            self.fault("KV04", f"{value} of {value.dtype.name} is stored in {buffer.name} of {buffer.dtype.name}")
        if buffer.role == "input":
            self.fault("KV10", f"the input {buffer.name} is written")
        self._inside(buffer, offset, ())
        self.written.add(buffer)
        self.places.setdefault(buffer, []).append(Place(offset, self.inner, self.conditional))

    def _known(self, buffer: Buffer) -> None:
        if buffer not in self.kernel.buffers:
            self.fault("KV02", f"{buffer.name} is not a buffer of the kernel")

    def _inside(self, buffer: Buffer, offset: Index, guard: tuple[Bound, ...]) -> None:
        if any(bound.low >= bound.high for bound in guard) or any(v.extent == 0 for v in offset.variables()):
            return
        least, greatest = limits(offset, guard)
        if least < 0 or greatest >= buffer.size:
            fault = Fault(
                "KV08", f"{buffer.name} has {buffer.size} elements, and {offset} is from {least} to {greatest}"
            )
            # without a guard the ranges are all there is to know
            (self.undecided if guard else self.faults).append(fault)

    def _apply(self, apply: Apply) -> None:
        if apply.op not in ELEMENTWISE:
            self.fault("KV05", f"{apply.op} is not an elementwise operation")
            return
        operation = OPERATIONS[apply.op]
        if not operation.arity(len(apply.operands)):
            self.fault("KV05", f"{apply.op} of {len(apply.operands)} operands")
            return
        unknown = [name for name in apply.attrs if name not in operation.attributes]
        absent = [name for name, item in operation.attributes.items() if item.required and name not in apply.attrs]
        if unknown or absent:
            self.fault("KV05", f"{apply.op} has the attributes {sorted(apply.attrs)}")
            return
        scalars = tuple(TensorType((), operand.dtype) for operand in apply.operands)
        result = TensorType((), apply.result.dtype)
        try:
            types = operation.rule(Call(scalars, apply.attrs, (result,)))
        except Violation as violation:
            self.fault("KV05", f"{apply.op}: {violation.message}")
            return
        if types != (result,):
            self.fault("KV05", f"{apply.op} gives {types[0].dtype.name}, not {result.dtype.name}")


def _is_word(dtype: DType, word: object) -> bool:
    parts = word if isinstance(word, tuple) else (word,)
    if len(parts) != dtype.components or isinstance(word, tuple) != dtype.is_complex:
        return False
    return all(isinstance(part, int) and 0 <= part < 1 << dtype.bits for part in parts)


def _dtypes(values: Sequence[Value]) -> tuple[DType, ...]:
    return tuple(value.dtype for value in values)


def _named(values: Sequence[Value]) -> str:
    return ", ".join(value.dtype.name for value in values) or "nothing"


# ---- programs -------------------------------------------------------------------------------------------------------


def verify_program(program: Program, body: Body) -> Verification:
    """Check a program of a body, and each of its kernels. Messages about a kernel begin with its name."""
    faults = list(_program_faults(program, body))
    undecided: list[Fault] = []
    seen: set[str] = set()
    for step in program.steps:
        if isinstance(step, Launch) and step.kernel.name not in seen:
            seen.add(step.kernel.name)
            found = verify(step.kernel)
            faults += [Fault(f.rule, f"{step.kernel.name}: {f.message}") for f in found.faults]
            undecided += [Fault(f.rule, f"{step.kernel.name}: {f.message}") for f in found.undecided]
    return Verification(tuple(faults), tuple(undecided))


def _program_faults(program: Program, body: Body) -> Iterator[Fault]:
    known: set[Ref] = set(program.inputs) | set(program.constants)
    for step in program.steps:
        if isinstance(step, Launch):
            buffers = [buffer for buffer in step.kernel.buffers if buffer.role != "local"]
            if len(buffers) != len(step.arguments):
                yield Fault(
                    "KV20", f"{step.kernel.name} has {len(step.arguments)} arguments for {len(buffers)} buffers"
                )
                continue
            for buffer, ref in zip(buffers, step.arguments, strict=True):
                type = program.types.get(ref)
                if type is None or (type.dtype.component, type.size * type.dtype.components) != (
                    buffer.dtype,
                    buffer.size,
                ):
                    yield Fault("KV20", f"{step.kernel.name}: {buffer.name} stands for {ref}: {type}")
            reads = [ref for buffer, ref in zip(buffers, step.arguments, strict=True) if buffer.role == "input"]
            writes = [ref for buffer, ref in zip(buffers, step.arguments, strict=True) if buffer.role == "output"]
        elif isinstance(step, Alias):
            reads, writes = [step.of], [step.value]
            types = program.types.get(step.of), program.types.get(step.value)
            if (
                types[0] is None
                or types[1] is None
                or (types[0].dtype, types[0].size) != (types[1].dtype, types[1].size)
            ):
                yield Fault("KV22", f"{step.value}: {types[1]} is not {step.of}: {types[0]}")
        else:
            node = body.nodes[step.node]
            reads, writes = list(node.inputs), [Ref(node.id, k) for k in range(len(node.types))]
        for ref in reads:
            if ref not in known:
                yield Fault("KV21", f"{ref} is read before it is computed")
        for ref in writes:
            if ref in known:
                yield Fault("KV21", f"{ref} is computed twice")
            known.add(ref)
    for ref in program.outputs:
        if ref not in known:
            yield Fault("KV21", f"the output {ref} is not computed")
