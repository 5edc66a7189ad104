"""A piece as a program of its frontend: the text that stands in ``reproduce.py``, and the same text evaluated here."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.compare.reduce.expressions import FRONTENDS, expression, loaded
from tlir.compare.reduce.piece import Piece
from tlir.errors import UnsupportedError
from tlir.ir.graph import Body, Node
from tlir.ir.tensor import Tensor, numpy_dtype
from tlir.ir.types import DType

RESERVED = {"data", "known", "got", "low", "high", "np", "jnp", "jax", "lax", "torch", "sys", "Path", "here", "program"}

IMPORTS = {"jax": "import jax\nfrom jax import lax, numpy as jnp\n", "torch": "import torch\n"}

Frontend = Callable[[Piece], Tensor]
"""Evaluates a piece on its inputs as a frontend does."""


def input_names(body: Body) -> list[str]:
    """A Python name per input, each different."""
    names: list[str] = []
    for text in body.input_names():
        name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_").lower() or "x"
        if name[0].isdigit() or keyword.iskeyword(name) or name in RESERVED or re.fullmatch(r"v\d+", name):
            name = f"x_{name}"
        unique, k = name, 2
        while unique in names:
            unique, k = f"{name}_{k}", k + 1
        names.append(unique)
    return names


def stored(tensor: Tensor) -> NDArray[Any]:
    """The array that an .npz file holds for a tensor: its values, or the words where NumPy has no such dtype."""
    native = numpy_dtype(tensor.dtype)
    if native is not None and native.type.__module__ == "numpy":
        return tensor.to_numpy()
    return tensor.words


def constant_names(piece: Piece) -> dict[int, str]:
    """The name of each constant in the file of inputs, by node."""
    return {node.id: f"constant_{node.id}" for node in piece.body.nodes if node.op == "constant"}


def statements(piece: Piece, frontend: str) -> tuple[list[str], list[str], str]:
    """The lines that load what the piece reads, the lines that compute, and the name of the result. UnsupportedError
    TL0804 where an operation has no expression."""
    if frontend not in FRONTENDS:
        raise UnsupportedError("TL0804", f"{frontend} is no frontend that expressions are known of")
    body = piece.body
    names = dict(zip(body.input_ids, input_names(body), strict=True))
    names |= constant_names(piece)
    load = [f"{name} = {loaded(frontend, name, _of(body, place).dtype)}" for place, name in sorted(names.items())]
    compute = []
    for node in body.nodes:
        if node.op in ("input", "constant"):
            continue
        if any(ref.result for ref in node.inputs):
            raise UnsupportedError("TL0804", f"{node.op} reads a later result of a node")
        operands = [names[ref.node] for ref in node.inputs]
        names[node.id] = f"v{node.id}"
        compute.append(f"v{node.id} = {expression(frontend, node, operands, body.operand_types(node))}")
    if body.outputs[0].result:
        raise UnsupportedError("TL0804", "the output is a later result of a node")
    return load, compute, names[body.outputs[0].node]


def _of(body: Body, place: int) -> Any:
    return body.nodes[place].type


def arrays(piece: Piece) -> dict[str, NDArray[Any]]:
    """What the file of inputs holds: the inputs and constants by the names that the program gives them."""
    found = {name: stored(t) for name, t in zip(input_names(piece.body), piece.inputs, strict=True)}
    return found | {name: stored(piece.body.nodes[k].attrs["value"]) for k, name in constant_names(piece).items()}


def script(piece: Piece, frontend: str, compiled: bool, summary: str) -> str:
    """The program: loads ``inputs.npz`` and ``expected.npz`` beside it, computes, prints, and exits with 1 while any
    element is outside of what is permitted. UnsupportedError TL0804 as ``statements``."""
    load, compute, result = statements(piece, frontend)
    of = numpy_text(frontend, piece.expected.dtype)
    lines = [f'"""{summary}"""', "", "import sys", "from pathlib import Path", ""]
    lines += [*IMPORTS[frontend].splitlines(), "import numpy as np", ""]
    if frontend == "jax":
        lines.append('jax.config.update("jax_enable_x64", True)')
    lines.append('data, known = (np.load(Path(__file__).with_name(f"{name}.npz")) for name in ("inputs", "expected"))')
    lines += load
    if compiled and frontend == "jax":
        given = [line.partition(" = ")[0] for line in load]
        lines += ["", "", "@jax.jit", f"def program({', '.join(given)}):"]
        lines += [f"    {line}" for line in compute] + [f"    return {result}", "", ""]
        result = f"program({', '.join(given)})"
    else:
        lines += compute
    lines += [
        f"got = {of.format(result)}",
        'print("here:      ", got)',
        *(f'print("{text}", known["{name}"])' for text, name in SHOWN.items()),
        *_verdict(piece.expected.dtype),
        'print("the fault is there" if wrong.any() else "every element is permitted")',
        "sys.exit(int(wrong.any()))",
    ]
    return "\n".join(lines) + "\n"


SHOWN = {"recorded:  ": "recorded", "reference: ": "reference"}


def numpy_text(frontend: str, dtype: DType) -> str:
    """A pattern that turns a result into an array: of float64 for small formats, that NumPy does not have."""
    small = dtype.is_float and dtype.bits <= 16
    if frontend == "torch":
        return "{}.double().numpy()" if small else "{}.resolve_conj().numpy()"
    return "np.asarray({}).astype(np.float64)" if small else "np.asarray({})"


def _verdict(dtype: DType) -> list[str]:
    if dtype.format is None:
        return ['wrong = got != known["reference"]']
    lines = ["got = np.stack([got.real, got.imag], -1)"] if dtype.is_complex else []
    return [
        *lines,
        'low, high = known["low"], known["high"]',
        'print("permitted:  from", low, "to", high)',
        'wrong = ~((got >= low) & (got <= high)) & ~(np.isnan(got) & known["nan"])',
    ]


def available(frontend: str) -> bool:
    """Whether the frontend can be imported here."""
    return frontend in FRONTENDS and find_spec(frontend) is not None


def evaluator(frontend: str, compiled: bool) -> Frontend:
    """A function that evaluates pieces in the frontend. UnsupportedError TL0803 where it is not installed."""
    if not available(frontend):
        raise UnsupportedError("TL0803", f"{frontend or 'the frontend'} is not installed here")

    def run(piece: Piece) -> Tensor:
        load, compute, result = statements(piece, frontend)
        names: dict[str, Any] = {}
        if frontend == "jax":
            import jax

            with jax.enable_x64(True):
                exec("import numpy as np\n" + IMPORTS[frontend], names)
                names["data"] = arrays(piece)
                exec("\n".join(load), names)
                given = [line.partition(" = ")[0] for line in load]
                body = "\n".join(f"    {line}" for line in [*compute, f"return {result}"])
                exec(f"def program({', '.join(given)}):\n{body}", names)
                program = jax.jit(names["program"]) if compiled else names["program"]
                return _fitting(piece, np.asarray(program(*(names[name] for name in given))))
        import torch

        exec("import numpy as np\n" + IMPORTS[frontend], names)
        names["data"] = arrays(piece)
        exec("\n".join([*load, *compute]), names)
        made = names[result].detach().resolve_conj().contiguous()
        words = f"int{8 * made.element_size()}" if made.dtype.is_floating_point else ""
        if words:
            array = made.view(getattr(torch, words)).numpy().view(piece.expected.dtype.word_dtype)
            if array.shape != piece.expected.words.shape:
                raise UnsupportedError("TL0804", f"{frontend} gives another shape")
            return Tensor(piece.expected.type, np.ascontiguousarray(array))
        return _fitting(piece, made.numpy())

    return run


def _fitting(piece: Piece, array: NDArray[Any]) -> Tensor:
    """The result, which must be of the type that the piece declares. UnsupportedError TL0804 otherwise."""
    tensor = Tensor.from_numpy(np.asarray(array, order="C"))
    if tensor.type != piece.expected.type:
        raise UnsupportedError("TL0804", f"the frontend gives {tensor.type} and not {piece.expected.type}")
    return tensor


def nodes_without_expression(piece: Piece, frontend: str) -> list[Node]:
    """The operations that keep the piece from being a program of the frontend."""
    found = []
    for node in piece.body.nodes:
        if node.op in ("input", "constant"):
            continue
        try:
            expression(frontend, node, [f"v{k}" for k in range(len(node.inputs))], piece.body.operand_types(node))
        except UnsupportedError:
            found.append(node)
    return found
