"""``tlir ops``: the inventory of operations, and which device evaluates which."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tlir.cli.console import Output
    from tlir.ir.ops import Operation


@click.command("ops", short_help="List the operations, or explain one.")
@click.argument("name", metavar="[NAME]", required=False)
@click.option(
    "--frontend",
    "frontends",
    metavar="NAME",
    multiple=True,
    help="Instead: what becomes of every operation of the installed jax or torch; may be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the page docs/ops.md, or docs/coverage.md.")
def command(name: str | None, frontends: tuple[str, ...], as_json: bool, as_markdown: bool) -> None:
    """List the operations: operands, attributes (? for those that may be left out), dtypes, and the devices that
    evaluate them. With NAME: what the operation returns for every input, and its constraints.

    With --frontend: every primitive of JAX, or every operator of PyTorch that is in core ATen or has a rule, with the
    operations that it becomes or the reason why it is refused. NAME is then one of these.
    """
    from tlir.cli.console import Output, to_json
    from tlir.errors import UsageError
    from tlir.ir.ops import OPERATIONS
    from tlir.passes.render.operations import markdown, operation_json

    if as_json and as_markdown:
        raise UsageError("TL0901", "--json and --markdown exclude each other")
    if frontends:
        _frontends(Output(), list(dict.fromkeys(frontends)), name, as_json, as_markdown)
        return
    if as_markdown and name is not None:
        raise UsageError("TL0901", "--markdown is the page of all operations")
    if name is not None and name not in OPERATIONS:
        from difflib import get_close_matches

        close = get_close_matches(name, OPERATIONS, 3)
        hint = f"did you mean {' or '.join(close)}?" if close else "`tlir ops` lists them"
        raise UsageError("TL0901", f"there is no operation {name!r}", hint=hint)
    devices = evaluated()
    output = Output()
    if as_markdown:
        output.raw(markdown(devices), end="")
    elif as_json and name is not None:
        output.raw(to_json(operation_json(OPERATIONS[name], devices)))
    elif as_json:
        operations = [operation_json(operation, devices) for operation in OPERATIONS.values()]
        output.raw(to_json({"devices": list(devices), "operations": operations}))
    elif name is not None:
        _explain(output, OPERATIONS[name], devices)
    else:
        _list(output, devices)


def _frontends(output: Output, frontends: list[str], name: str | None, as_json: bool, as_markdown: bool) -> None:
    from tlir.api import frontend_operations
    from tlir.cli.console import to_json
    from tlir.errors import UsageError
    from tlir.passes.render.coverage import becomes, markdown, summary

    if as_markdown and name is not None:
        raise UsageError("TL0901", "--markdown is the page of all operations")
    listings = [frontend_operations(frontend) for frontend in frontends]
    if name is not None:
        listings = [
            {**listing, "operations": [entry for entry in listing["operations"] if _is_called(entry["name"], name)]}
            for listing in listings
        ]
        if not any(listing["operations"] for listing in listings):
            raise UsageError("TL0901", f"there is no operation {name!r} in {' or '.join(frontends)}")
    if as_markdown:
        output.raw(markdown(listings), end="")
    elif as_json:
        output.raw(to_json({"frontends": listings}))
    else:
        for k, listing in enumerate(listings):
            if k:
                output.blank()
            rows = [(entry["name"], becomes(entry)) for entry in listing["operations"]]
            output.table(("operation", "becomes"), rows)
            if name is None:
                output.blank()
                output.line(summary(listing))


def _is_called(full: str, name: str) -> bool:
    """Whether a frontend's operation has this name: ``aten.add.Tensor`` is also called ``aten.add`` and ``add``."""
    return name == full or f".{name}." in f".{full}."


def evaluated() -> dict[str, Collection[str]]:
    """For every device the names of the operations that it evaluates."""
    from tlir.backends import DEVICES
    from tlir.backends.reference import EVALUATORS, SEVERAL
    from tlir.backends.reference.control import REGION_EVALUATORS
    from tlir.ir.ops import OPERATIONS
    from tlir.passes.lower import LOWERED

    tables: dict[str, Collection[str]] = {
        "reference": {"input", *EVALUATORS, *SEVERAL, *REGION_EVALUATORS} & OPERATIONS.keys(),
        # what has no kernel is evaluated by the reference there, or refused
        "cpu": LOWERED,
        "gpu": LOWERED,
    }
    return {device: tables.get(device, set()) for device in DEVICES}


def _list(output: Output, devices: dict[str, Collection[str]]) -> None:
    from tlir.passes.render.operations import attribute_names, families, family_title

    total = 0
    for family, sentence, operations in families():
        if total:
            output.blank()
        output.line((family_title(family), "heading"), f": {sentence}")
        rows = [
            (
                operation.name,
                ", ".join(operation.operands),
                attribute_names(operation),
                operation.dtypes,
                *(("yes" if operation.name in names else "no") for names in devices.values()),
            )
            for operation in operations
        ]
        output.table(("operation", "operands", "attributes", "dtypes", *devices), rows, indent=2)
        total += len(operations)
    output.blank()
    counts = [f"{device} evaluates {len(names) or 'none'}" for device, names in devices.items()]
    output.line(f"{total} operations: {', '.join(counts)}")


def _explain(output: Output, operation: Operation, devices: dict[str, Collection[str]]) -> None:
    from tlir.passes.render.operations import default_text, family_title, kind_text, signature

    output.line((signature(operation), "heading"))
    output.line(("family   ", "label"), family_title(operation.family))
    output.line(("dtypes   ", "label"), operation.dtypes)
    states = [f"{device} {'yes' if operation.name in names else 'no'}" for device, names in devices.items()]
    output.line(("devices  ", "label"), ", ".join(states))
    output.blank()
    output.line(operation.meaning)
    for name, item in operation.attributes.items():
        output.blank()
        output.line((name, "heading"), f" ({default_text(item)})")
        output.line(item.doc, indent=2)
        output.line((kind_text(item.kind), "label"), indent=2)
    if operation.constraints:
        output.blank()
    for label, text in operation.constraints.items():
        output.line((f"{label}  ", "heading"), text)
