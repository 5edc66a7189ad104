"""Which outputs become which inputs when a graph is run again and again, said by their names.

A name stands for the value that has it, or for every value below it: ``params`` for ``params['w']`` and
``params['b'][0]``. Of an output's name the beginning may be left out: ``loss`` is ``output['loss']`` or
``output.loss``, and ``0`` is ``output[0]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from tlir.arguments import leaves, require_unique, tensor_of, unknown_input
from tlir.errors import UsageError
from tlir.ir.graph import Graph
from tlir.ir.tensor import Tensor
from tlir.ir.types import TensorType

Pairs = Mapping[str, str | Sequence[str]] | Iterable[tuple[str, str]]

_HEAD = re.compile(r"([^.\[\]]+)(.*)", re.DOTALL)

_SHOWN = 5
"""Names that a message lists at most."""


def carries(graph: Graph, pairs: Pairs) -> list[tuple[int, int]]:
    """Positions of outputs and inputs for names OUT and IN: a mapping from OUT to IN or to several, or pairs of them.

    Both stand for one value, or both for a tree of values whose paths below OUT and below IN are the same. UsageError
    TL0901 for an OUT, TL0601 for an IN that is not there, and TL0601 for trees that differ.
    """
    if isinstance(pairs, Mapping):
        pairs = [
            (out, into)
            for out, several in pairs.items()
            for into in ([several] if isinstance(several, str) else several)
        ]
    found: list[tuple[int, int]] = []
    for pair in pairs:
        out, into = _names(pair)
        found += _joined(graph, out, into)
    return list(dict.fromkeys(found))


def _names(pair: Any) -> tuple[str, str]:
    if not isinstance(pair, tuple) or len(pair) != 2 or not all(isinstance(name, str) for name in pair):
        raise UsageError(
            "TL0901", f"{pair!r} does not name an output and an input", hint='give carry={"output": "input"}'
        )
    return pair


def _joined(graph: Graph, out: str, into: str) -> list[tuple[int, int]]:
    sources, targets = _outputs(graph, out), _inputs(graph, into)
    if sources.keys() == targets.keys():
        return [(position, targets[path]) for path, position in sources.items()]
    outputs, inputs = graph.output_names(), graph.body.input_names()
    missing = [inputs[position] for path, position in targets.items() if path not in sources]
    extra = [outputs[position] for path, position in sources.items() if path not in targets]
    parts = [f"no output below {out} for {_listed(missing)}"] if missing else []
    parts += [f"no input below {into} for {_listed(extra)}"] if extra else []
    raise UsageError("TL0601", f"{out} and {into} are not trees of the same structure: {' and '.join(parts)}")


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def _below(names: Sequence[str], name: str) -> dict[str, int]:
    """The positions of the values that a name stands for, by what follows it in their own names."""
    return {
        other[len(name) :]: position
        for position, other in enumerate(names)
        if other == name or other.startswith((f"{name}[", f"{name}."))
    }


def _outputs(graph: Graph, name: str) -> dict[str, int]:
    names = graph.output_names()
    readings = [name]
    if match := _HEAD.fullmatch(name):
        head, rest = match.groups()
        readings += [f"output[{head}]{rest}", f"output[{head!r}]{rest}", f"output.{head}{rest}"]
    for reading in readings:
        if found := _below(names, reading):
            return found
    close = get_close_matches(name, [*names, *(other.partition("output")[2] for other in names)], 1)
    hint = f"did you mean {close[0]}?" if close else f"the outputs are {_listed(names)}" if names else "it has none"
    raise UsageError("TL0901", f"there is no output {name!r}", hint=hint)


def _inputs(graph: Graph, name: str) -> dict[str, int]:
    names = graph.body.input_names()
    found = _below(names, name)
    if not found:
        raise unknown_input(name, names)
    for position in found.values():
        require_unique(names[position], names)
    return found


def split_pair(graph: Graph, text: str) -> tuple[str, str]:
    """OUT and IN of ``OUT=IN``, where both may hold a "=": the split of which both sides are there, else the first.
    UsageError TL0901 for text without one."""
    places = [k for k, character in enumerate(text) if character == "="]
    if not places:
        raise UsageError("TL0901", f"{text}: expected OUT=IN")
    pairs = [(text[:k], text[k + 1 :]) for k in places]
    for out, into in pairs if len(pairs) > 1 else ():
        try:
            _outputs(graph, out)
            _inputs(graph, into)
        except UsageError:
            continue
        return out, into
    return pairs[0]


def recorded(graph: Graph, names: Iterable[str]) -> list[int]:
    """The positions of the outputs that the names stand for, in order, each once. UsageError TL0901."""
    wanted = (names,) if isinstance(names, str) else tuple(names)
    return sorted({position for name in wanted for position in _outputs(graph, name).values()})


def for_each(graph: Graph, arrays: Mapping[str, Any], steps: int) -> dict[int, Tensor]:
    """The positions of inputs with their tensors for every step, from arrays with a leading axis of ``steps``.

    A mapping under a name stands for the inputs below it. UsageError TL0601 for arrays that do not fit.
    """
    names, types = graph.body.input_names(), graph.body.input_types
    given: dict[str, Any] = {}
    for name, value in arrays.items():
        given.update({name: value} if name in names else leaves(value, str(name)))
    found: dict[int, Tensor] = {}
    for name, value in given.items():
        if name not in names:
            raise unknown_input(name, names)
        require_unique(name, names)
        position = names.index(name)
        found[position] = tensor_of(value, stacked(types[position], steps), name)
    return found


def stacked(type: TensorType, steps: int) -> TensorType:
    """The type of one value of ``type`` for each of so many steps."""
    return TensorType((steps, *type.shape), type.dtype)
