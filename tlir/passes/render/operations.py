"""The inventory of operations, from their declarations: as rows, as JSON, and as the page ``docs/ops.md``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from tlir.ir.ops import FAMILIES, OPERATIONS, Attribute, Operation
from tlir.ir.ops.attributes import Accumulation, AttributeKind, Boolean, Choice, Integer, Integers, TensorData

Evaluated = Mapping[str, Collection[str]]
"""For every device the names of the operations that it evaluates."""


def family_title(family: str) -> str:
    """The name of a family as a heading."""
    return family.replace("_", " ").capitalize()


def families() -> Iterator[tuple[str, str, list[Operation]]]:
    """Every family's name, what it is in one sentence, and its operations."""
    for module in FAMILIES:
        operations = list(module.OPERATIONS)
        family = operations[0].family
        sentence = (module.__doc__ or "").split("\n", 1)[0].removeprefix(f"{family_title(family)}: ")
        yield family, sentence[:1].upper() + sentence[1:], operations


def kind_text(kind: AttributeKind) -> str:
    """The values that an attribute takes, in words."""
    match kind:
        case Integer():
            return f"an integer from {kind.low} to {kind.high}"
        case Integers():
            return f"a list of {'different ' if kind.unique else ''}integers from {kind.low} to {kind.high}"
        case Choice():
            return "one of " + ", ".join(kind.values)
        case Boolean():
            return "true or false"
        case TensorData():
            return "a tensor"
        case Accumulation():
            return 'an object {"dtype": name, "order": "sequential", "pairwise" or "blocked(n)", "fma": Boolean}'


def default_text(attribute: Attribute) -> str:
    """``required``, the default value, or ``optional`` where its meaning is told by the attribute's sentence."""
    if attribute.required:
        return "required"
    if attribute.default is None:
        return "optional"
    if isinstance(attribute.default, bool):
        return "true" if attribute.default else "false"
    return str(list(attribute.default) if isinstance(attribute.default, tuple) else attribute.default)


def signature(operation: Operation) -> str:
    """``reduce(operand)``, with ``results: 2`` or ``regions: 1`` where an operation does not have one and none."""
    parts = [f"{operation.name}({', '.join(operation.operands)})"]
    if operation.results != 1:
        parts.append(f"results: {'as the node says' if operation.results is None else operation.results}")
    if operation.regions != 0:
        parts.append(f"regions: {'as the node says' if operation.regions is None else operation.regions}")
    return "; ".join(parts)


def attribute_names(operation: Operation) -> str:
    """The names of the attributes, a question mark after those that may be left out."""
    return ", ".join(name + ("" if item.required else "?") for name, item in operation.attributes.items())


def operation_json(operation: Operation, evaluated: Evaluated) -> dict[str, Any]:
    """The whole declaration as a JSON object, and which devices evaluate the operation.

    ``results`` and ``regions`` are null where their number depends on the node.
    """
    attributes = {
        name: {"kind": kind_text(item.kind), "schema": item.kind.schema(), "required": item.required, "doc": item.doc}
        | ({} if item.required else {"default": item.default})
        for name, item in operation.attributes.items()
    }
    return {
        "name": operation.name,
        "family": operation.family,
        "operands": list(operation.operands),
        "results": operation.results,
        "regions": operation.regions,
        "dtypes": operation.dtypes,
        "attributes": attributes,
        "constraints": dict(operation.constraints),
        "meaning": operation.meaning,
        "devices": {device: operation.name in names for device, names in evaluated.items()},
    }


def markdown(evaluated: Evaluated) -> str:
    """The page ``docs/ops.md``."""
    return "\n".join(_page(evaluated)) + "\n"


def _page(evaluated: Evaluated) -> Iterator[str]:
    yield "# Operations"
    yield ""
    yield f"{len(OPERATIONS)} operations, generated from their declarations in `tlir/ir/ops/` by `make docs`."
    yield "[numerics.md](numerics.md) says what rounding, NaN and the formats mean, [artifact.md](artifact.md) how a"
    yield "node is written. A constraint's number stands in the message of `tlir check` where it does not hold."
    yield ""
    for family, sentence, operations in families():
        names = ", ".join(f"[`{operation.name}`](#{operation.name})" for operation in operations)
        yield f"* **{family_title(family)}.** {sentence} {names}"
    yield ""
    yield "## Devices"
    yield ""
    yield from _devices(evaluated)
    for family, sentence, operations in families():
        yield ""
        yield f"## {family_title(family)}"
        yield ""
        yield sentence
        for operation in operations:
            yield ""
            yield from _section(operation)


def _devices(evaluated: Evaluated) -> Iterator[str]:
    yield (
        "How many operations of each family a device evaluates by itself; `tlir ops` lists every one. "
        "The others are evaluated"
    )
    yield "by the reference on every device."
    yield ""
    yield f"| family | operations | {' | '.join(evaluated)} |"
    yield f"|---|---|{'---|' * len(evaluated)}"
    for family, _, operations in families():
        counts = [sum(operation.name in names for operation in operations) for names in evaluated.values()]
        cells = [_share(count, len(operations)) for count in counts]
        yield f"| {family_title(family)} | {len(operations)} | {' | '.join(cells)} |"


def _share(count: int, total: int) -> str:
    return "all" if count == total else "the reference" if count == 0 else str(count)


def _section(operation: Operation) -> Iterator[str]:
    yield f"### {operation.name}"
    yield ""
    yield f"`{signature(operation)}` · {_prose(operation.dtypes)}"
    yield ""
    yield _prose(operation.meaning)
    if operation.attributes:
        yield ""
        yield "| attribute | value | default | meaning |"
        yield "|---|---|---|---|"
        for name, item in operation.attributes.items():
            cells = (f"`{name}`", _kind(item.kind), default_text(item), _prose(item.doc))
            yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    if operation.constraints:
        yield ""
        for label, text in operation.constraints.items():
            yield f"* {label}: {_prose(text)}"


def _kind(kind: AttributeKind) -> str:
    if isinstance(kind, Choice):
        return "one of " + ", ".join(f"`{value}`" for value in kind.values)
    if isinstance(kind, Accumulation):
        return "see [accumulate](artifact.md#producer-samples-trees-formats)"
    return kind_text(kind)


def _prose(text: str) -> str:
    """The text with what Markdown would take for markup escaped, outside of code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if k % 2 else re.sub(r"([*<>\[\]|\\])", r"\\\1", part) for k, part in enumerate(parts))
