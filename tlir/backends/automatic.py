"""Which device ``auto`` is. It is a matter of time alone: every device returns the same words."""

from __future__ import annotations

from importlib.util import find_spec
from math import prod

from tlir.backends import DEVICES, unknown_device
from tlir.ir.graph import Body, Node
from tlir.ir.ops import OPERATIONS

AUTO = "auto"

COMPILED_FROM = 1 << 24
"""Scalar operations from which a run is compiled, for every ``NODES`` nodes: the reference takes about as long for so
many as their kernels take to compile (0.1 to 1 s)."""

NODES = 32


STEPS = {"geqrf": 8, "eigh": 32, "svd": 64}
"""About how much more than an elimination of a matrix of its size an operation is."""

COMPILED_RUNS = 200
"""Runs from which even a small graph is compiled."""


def chosen(device: str, body: Body, *, plain: bool = True, runs: int = 1) -> str:
    """``device`` itself, or for ``auto`` the device ``cpu`` where it is there and ``runs`` runs of the body are work
    enough. ``plain``: neither flags nor the values of nodes are wanted, which only the reference gives. UsageError
    TL0901 for a device that does not exist."""
    if device != AUTO:
        if device not in DEVICES:
            raise unknown_device(device, (*DEVICES, AUTO))
        return device
    if not plain or find_spec("llvmlite") is None:
        return "reference"
    worth = COMPILED_FROM * (1 + len(body.nodes) // NODES)
    return "cpu" if runs >= COMPILED_RUNS or runs * operations(body) >= worth else "reference"


def operations(body: Body) -> int:
    """About how many scalar operations an evaluation takes; a loop of unknown length counts once."""
    return sum(_of_node(body, node) for node in body.nodes)


def _of_node(body: Body, node: Node) -> int:
    if node.op in ("input", "constant"):
        return 0
    if node.regions:
        return node.attrs.get("length", 1) * sum(operations(region) for region in node.regions)
    results = sum(type.size for type in node.types)
    operands = body.operand_types(node)
    if node.op == "dot_general":
        return results * prod(operands[0].shape[axis] for axis in node.attrs["lhs_contracting_dimensions"])
    if node.op == "convolution":
        outputs = operands[1].shape[node.attrs["rhs_dimensions"][0]]
        return results * (operands[1].size // max(outputs, 1))
    largest = max([results, *(type.size for type in operands)])
    if node.op == "fft":
        return largest * 8 * sum(max(n, 1).bit_length() for n in node.attrs["fft_length"])
    if node.op in ("sort", "top_k"):
        return largest * 4 * operands[0].shape[node.attrs["dimension"]].bit_length()
    if OPERATIONS[node.op].family == "linalg":
        return largest * max(type.shape[-1] for type in operands) * STEPS.get(node.op, 1)
    return largest
