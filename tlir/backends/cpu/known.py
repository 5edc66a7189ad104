"""What is known of a kernel's values before it is emitted: which are equal in all lanes, and which are the canonical
NaN wherever they are NaN."""

from __future__ import annotations

from typing import Any

from tlir.backends.cpu.values import carrier
from tlir.kernel.index import Index, Variable
from tlir.kernel.ir import Apply, Block, Branch, Each, Literal, Load, Loop, Position, Statement, Store, Value

MOVES = frozenset(("select", "negate", "abs", "copysign", "bitcast_convert", "convert", "real", "imag"))
"""Operations whose result may be a NaN with bits of an operand's (``convert``: between equal dtypes)."""


class Known:
    """The numbers of the values that are ``uniform`` and ``canonical`` where lanes run along a variable."""

    own_locals = True
    """Whether every lane has local buffers of its own."""

    def __init__(self, lane: Variable | None) -> None:
        self.lane = lane
        self.uniform: set[int] = set()
        self.canonical: set[int] = set()

    def classify(self, block: Block) -> None:
        """Learns of a block's values."""
        for statement in block.statements:
            match statement:
                case Literal(result, word):
                    self.uniform.add(result.number)
                    if carrier(result.dtype) and not _is_nan(result, word):
                        self.canonical.add(result.number)
                case Position(result, index):
                    if self._is_uniform(index):
                        self.uniform.add(result.number)
                case Load():
                    guards = all(self._is_uniform(bound.index) for bound in statement.guard)
                    other = statement.otherwise is None or statement.otherwise.number in self.uniform
                    local = statement.buffer.role == "local" and self.own_locals
                    if guards and other and not local and self._is_uniform(statement.offset):
                        self.uniform.add(statement.result.number)
                case Apply(result, op, operands):
                    if all(operand.number in self.uniform for operand in operands):
                        self.uniform.add(result.number)
                    if carrier(result.dtype) and (not _moves(statement) or self._all_canonical(op, operands)):
                        self.canonical.add(result.number)
                case Branch(results, _, then, otherwise):
                    self.classify(then)
                    self.classify(otherwise)
                    for result, left, right in zip(results, then.results, otherwise.results, strict=True):
                        if {left.number, right.number} <= self.canonical:
                            self.canonical.add(result.number)
                case Loop():
                    self._classify_loop(statement)
                case Each(_, body):
                    self.classify(body)

    def _all_canonical(self, op: str, operands: tuple[Value, ...]) -> bool:
        return op == "select" and all(operand.number in self.canonical for operand in operands[1:])

    def _classify_loop(self, loop: Loop) -> None:
        # after the first step it is the body's result; what only arithmetic reads may be any NaN before
        hoped = [
            p
            for p, s in zip(loop.parameters, loop.start, strict=True)
            if s.number in self.canonical or (carrier(p.dtype) and _only_calculated(p, loop))
        ]
        while True:
            self.canonical |= {parameter.number for parameter in hoped}
            self.classify(loop.body)
            pairs = dict(zip((p.number for p in loop.parameters), loop.body.results, strict=True))
            kept = [parameter for parameter in hoped if pairs[parameter.number].number in self.canonical]
            if len(kept) == len(hoped):
                break
            for statement in loop.body.walk():
                for value in _assigned(statement):
                    self.canonical.discard(value.number)
            self.canonical -= {parameter.number for parameter in hoped}
            hoped = kept
        self.canonical |= {r.number for r, p in zip(loop.results, loop.parameters, strict=True) if p in hoped}

    def _is_uniform(self, index: Index) -> bool:
        values = all(value.number in self.uniform for value in index.values())
        return values and self.lane not in index.variables()


def _is_nan(value: Value, word: Any) -> bool:
    return bool(value.dtype.float_format.is_nan(word))


def _moves(statement: Apply) -> bool:
    converts = statement.op == "convert" and statement.operands[0].dtype != statement.result.dtype
    return statement.op in MOVES and not converts


def _only_calculated(parameter: Value, loop: Loop) -> bool:
    """Whether a loop runs, and only arithmetic reads what it carries in a parameter: all NaN are the same to it."""
    if not loop.variable.extent or loop.span is not None or parameter in loop.body.results:
        return False
    for statement in loop.body.walk():
        match statement:
            case Apply(_, _, operands):
                if parameter in operands and _moves(statement):
                    return False
            case Store(_, _, value):
                if value == parameter:
                    return False
            case Load(otherwise=other):
                if other == parameter:
                    return False
            case Branch(_, _, then, otherwise):
                if parameter in (*then.results, *otherwise.results):
                    return False
            case Loop(_, _, start, parameters, body):
                if parameter in body.results:
                    return False
                inner = [p for p, s in zip(parameters, start, strict=True) if s == parameter]
                if not all(_only_calculated(p, statement) for p in inner):
                    return False
    return True


def _assigned(statement: Statement) -> tuple[Value, ...]:
    if isinstance(statement, Branch):
        return statement.results
    if isinstance(statement, Loop):
        return (*statement.results, *statement.parameters)
    return () if isinstance(statement, Each | Store) else (statement.result,)
