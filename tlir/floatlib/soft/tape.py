"""A kernel recorded once as a list of operations, and written out as a Python function of NumPy expressions, or carried
out by another machine.

Building a kernel's ``Uint`` values takes longer than the arithmetic of a small array, so it happens once per kernel.
Recording folds constants, computes equal expressions once, and drops what no result needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from tlir.floatlib.soft.machine import Machine, NumpyMachine
from tlir.floatlib.soft.uint import Uint, limb_count


@dataclass(frozen=True, slots=True)
class Value:
    """What a recorded operation returns: the number of a value, or a constant known already."""

    index: int
    constant: Any = None


@dataclass(frozen=True, slots=True)
class Step:
    """One operation; ``multiply_wide`` has two results."""

    name: str
    arguments: tuple[Value, ...]
    results: tuple[Value, ...]


_TEXT = {
    "add": "{} + {}",
    "subtract": "{} - {}",
    "multiply": "{} * {}",
    "and_": "{} & {}",
    "or_": "{} | {}",
    "xor": "{} ^ {}",
    "shift_left": "{} << {}",
    "shift_right": "{} >> {}",
    "equal": "{} == {}",
    "less": "{} < {}",
    "both": "{} & {}",
    "either": "{} | {}",
    "differ": "{} ^ {}",
    "negation": "~{}",
    "real_add": "{} + {}",
    "real_subtract": "{} - {}",
    "real_multiply": "{} * {}",
    "real_divide": "{} / {}",
    "real_negate": "-{}",
    "real_less": "{} < {}",
    "real_equal": "{} == {}",
}
"""Operations written as expressions; the others are calls of ``NumpyMachine``."""

_PREDICATES = ("equal", "less", "both", "either", "differ", "negation", "real_less", "real_equal")

_NEUTRAL = {"add": 0, "or_": 0, "xor": 0, "either": False, "differ": False, "both": True}
"""Constants that leave the other operand as it is."""
_ABSORBING = {"and_": 0, "multiply": 0, "both": False, "either": True}
"""Constants that are the result whatever the other operand is."""
_FROM_RIGHT = {"subtract": 0, "shift_left": 0, "shift_right": 0}
"""Neutral constants on the right alone."""


class Recorder:
    """A machine whose operations are recorded in ``steps``."""

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.numpy = NumpyMachine(bits)
        self.has_fma = self.numpy.has_fma
        self.steps: list[Step] = []
        self._count = 0
        self._known: dict[Any, Any] = {}

    def new(self) -> Value:
        self._count += 1
        return Value(self._count)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return partial(self._record, name)

    def _record(self, name: str, *arguments: Any) -> Any:
        if name in ("constant", "truth", "real_constant"):
            return Value(0, getattr(self.numpy, name)(*arguments))
        if name == "table":
            arguments = (Value(0, arguments[0]), arguments[1])
        if all(argument.index == 0 for argument in arguments):
            with np.errstate(all="ignore"):
                result = getattr(self.numpy, name)(*(argument.constant for argument in arguments))
            return tuple(_scalar(part) for part in result) if isinstance(result, tuple) else _scalar(result)
        simpler = _simplified(name, arguments)
        if simpler is not None:
            return simpler
        key = (name, *(a.index or _identity(a.constant) for a in arguments))
        if key not in self._known:
            results = tuple(self.new() for _ in range(2 if name == "multiply_wide" else 1))
            self.steps.append(Step(name, arguments, results))
            self._known[key] = results if len(results) > 1 else results[0]
        return self._known[key]


def _identity(constant: Any) -> Any:
    """What tells constants apart; -0 from 0 too."""
    return constant if isinstance(constant, tuple) else (constant.dtype.str, constant.tobytes())


def _scalar(result: Any) -> Value:
    return Value(0, np.asarray(result)[()])


def _simplified(name: str, arguments: tuple[Value, ...]) -> Value | None:
    if name in ("select", "real_select"):
        condition, x, y = arguments
        if condition.index == 0:
            return x if condition.constant else y
        return x if x == y and x.index else None
    if len(arguments) != 2:
        return None
    left, right = arguments
    for constant, other in ((left, right), (right, left)):
        if constant.index == 0:
            if name in _NEUTRAL and constant.constant == _NEUTRAL[name]:
                return other
            if name in _ABSORBING and constant.constant == _ABSORBING[name]:
                return constant
    if right.index == 0 and name in _FROM_RIGHT and right.constant == _FROM_RIGHT[name]:
        return left
    return None


@dataclass(frozen=True)
class Tape:
    """A kernel's operations in order, those that a result needs: of the limbs of all operands, least significant first,
    to the limbs of the result and, where the kernel has them, its flags."""

    bits: int
    inputs: tuple[Value, ...]
    steps: tuple[Step, ...]
    outputs: tuple[Value, ...]

    def carried_out(self, m: Machine, inputs: Sequence[Any]) -> list[Any]:
        """What a machine of the same ``bits`` makes of its words ``inputs``: the outputs."""
        known: dict[int, Any] = {value.index: word for value, word in zip(self.inputs, inputs, strict=True)}

        def of(value: Value) -> Any:
            return known[value.index] if value.index else _made(m, value.constant)

        for step in self.steps:
            if step.name == "table":
                results = m.table(step.arguments[0].constant, of(step.arguments[1]))
            else:
                results = getattr(m, step.name)(*map(of, step.arguments))
            for value, result in zip(step.results, results if len(step.results) > 1 else (results,), strict=True):
                known[value.index] = result
        return [of(value) for value in self.outputs]


def _made(m: Machine, constant: Any) -> Any:
    """A constant of a recording on a machine."""
    if isinstance(constant, np.bool_):
        return m.truth(bool(constant))
    return m.real_constant(float(constant)) if isinstance(constant, np.float64) else m.constant(int(constant))


def record(build: Callable[..., Any], bits: int, widths: Sequence[int], flags: bool) -> Tape:
    """A kernel's function of a machine, recorded."""
    recorder = Recorder(bits)
    machine = cast(Machine, recorder)
    inputs = [[recorder.new() for _ in range(limb_count(machine, width))] for width in widths]
    result = build(machine, *(Uint(machine, list(limbs), width) for limbs, width in zip(inputs, widths, strict=True)))
    outputs: list[Value] = [*result.word.limbs, *([result.flags] if flags else [])]
    names = [value for limbs in inputs for value in limbs]
    return Tape(bits, tuple(names), tuple(_needed(recorder.steps, outputs)), tuple(outputs))


def compile_numpy(
    build: Callable[..., Any], bits: int, widths: Sequence[int], flags: bool
) -> Callable[..., tuple[Any, ...]]:
    """A function of the limbs of all operands, least significant first, as arrays of the machine's type, that returns
    those of the result, and the flags after them if there are."""
    tape = record(build, bits, widths, flags)
    return _write(list(tape.steps), list(tape.inputs), list(tape.outputs), NumpyMachine(bits))


def _needed(steps: list[Step], outputs: list[Value]) -> list[Step]:
    wanted = {value.index for value in outputs}
    kept = []
    for step in reversed(steps):
        if any(value.index in wanted for value in step.results):
            kept.append(step)
            wanted |= {value.index for value in step.arguments}
    return kept[::-1]


def _write(
    steps: list[Step], inputs: list[Value], outputs: list[Value], machine: NumpyMachine
) -> Callable[..., tuple[Any, ...]]:
    last = {value.index: k for k, step in enumerate(steps) for value in step.arguments}
    last |= {value.index: len(steps) for value in outputs}
    scope: dict[str, Any] = {"machine": machine}
    slots: dict[int, str] = {value.index: f"v{k}" for k, value in enumerate(inputs)}
    free: list[str] = []
    predicates: set[int] = set()

    def text(value: Value) -> str:
        if value.index:
            return slots[value.index]
        name = f"c{len(scope)}"
        scope[name] = value.constant
        return name

    lines = [f"def loop({', '.join(slots[value.index] for value in inputs)}):"]
    for k, step in enumerate(steps):
        expression = _expression(step, [text(value) for value in step.arguments], predicates)
        # a slot whose value is used here for the last time may take the result
        free += [slots[v.index] for v in dict.fromkeys(step.arguments) if v.index and last[v.index] == k]
        for value in step.results:
            slots[value.index] = free.pop() if free else f"v{len(slots)}"
        lines.append(f"    {', '.join(slots[value.index] for value in step.results)} = {expression}")
        free += [slots[value.index] for value in step.results if value.index not in last]
    lines.append(f"    return ({', '.join(text(value) for value in outputs)},)")
    exec(compile("\n".join(lines), "<kernel>", "exec"), scope)
    loop: Callable[..., tuple[Any, ...]] = scope["loop"]
    return loop


def _expression(step: Step, arguments: list[str], predicates: set[int]) -> str:
    if step.name in _PREDICATES:
        predicates |= {value.index for value in step.results}
    if step.name in _TEXT:
        return _TEXT[step.name].format(*arguments)
    if step.name != "select":
        return f"machine.{step.name}({', '.join(arguments)})"
    # numpy.where branches on each element; these expressions pass over whole vectors
    condition, x, y = arguments
    of_x, of_y = step.arguments[1:]
    if {of_x.index, of_y.index} & predicates or isinstance(of_x.constant, np.bool_):
        predicates |= {value.index for value in step.results}
        return f"{condition} & {x} | ~{condition} & {y}"
    if of_y.index == 0 and of_y.constant == 0:
        return f"{condition} * {x}"
    if of_x.index == 0 and of_x.constant == 0:
        return f"~{condition} * {y}"
    return f"{condition} * ({x} ^ {y}) ^ {y}"
