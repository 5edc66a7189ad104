"""The devices that evaluate graphs, and the one function that runs a graph on one of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlir.backends.liveness import fits_numpy, peak_memory
from tlir.errors import UnsupportedError, UsageError
from tlir.ir.graph import Body, Graph, Node
from tlir.ir.remember import remembered
from tlir.ir.tensor import Tensor
from tlir.ir.types import TensorType
from tlir.ir.verify import type_errors

if TYPE_CHECKING:
    from tlir.backends.cpu.device import Statistics

DEVICES: dict[str, str] = {
    "reference": "NumPy and exact arithmetic: the definition of every operation",
    "cpu": "compiled code for the processor, by LLVM (extra cpu)",
    "gpu": "generated CUDA, through CuPy (extra gpu)",
}
"""Every device's name and one line about it."""

ALWAYS_THERE = 1 << 26
"""Bytes that are taken without asking the system whether they are there."""

Observe = Callable[[Node, tuple[Tensor, ...]], None]
CollectFlags = Callable[[Node, NDArray[np.uint8]], None]
Evaluate = Callable[..., list[Tensor]]


def run(
    graph: Graph,
    inputs: Sequence[Tensor] | None = None,
    device: str = "reference",
    observe: Observe | None = None,
    flags: CollectFlags | None = None,
    memory_limit: int | None = None,
) -> list[Tensor]:
    """The graph's outputs for ``inputs`` in the order of ``input_ids``, or for its first recorded sample.

    ``observe`` and ``flags`` are called as ``tlir.backends.reference.evaluate`` says. ``memory_limit`` is in bytes; by
    default the memory that is available.

    Raises ArtifactError (TL03xx) for a graph whose declared types do not hold; UsageError TL0601 for inputs that do
    not fit, TL0602 where there is no sample, TL0901 for a device that does not exist; UnsupportedError TL0802 for one
    that is not here, TL0603 where memory does not suffice, TL0604 where the floating-point environment is not the
    default one, TL0801 for shapes and values beyond what the device can compute.
    """
    inputs = prepare(graph, inputs, device, memory_limit)
    return evaluator(device)(graph.body, inputs, observe=observe, flags=flags)


def prepare(
    graph: Graph,
    inputs: Sequence[Tensor] | None = None,
    device: str = "reference",
    memory_limit: int | None = None,
    kept: Iterable[TensorType] = (),
) -> Sequence[Tensor]:
    """Check everything that ``run`` checks before it evaluates; the inputs, or those of the first recorded sample.

    ``kept`` are tensors that take memory beside those of the evaluation. Raises what ``run`` raises.
    """
    _require_device(device)
    needs = _needs(graph.body, device != "reference")
    if inputs is None:
        inputs = _sample_inputs(graph)
    _require_inputs(graph.body, inputs)
    if memory_limit is not None or kept or needs.bytes > ALWAYS_THERE:
        _require_memory(needs, available_memory() if memory_limit is None else memory_limit, tuple(kept))
    return inputs


class _Needs(NamedTuple):
    """The bytes that the evaluation of a body takes, and the node where it takes most."""

    bytes: int
    worst: Node | None


@remembered()
def _needs(body: Body, compiled: bool) -> _Needs:
    """To look at every node again would cost more than a small graph. ArtifactError where a declared type does not
    hold, UnsupportedError TL0801 for shapes beyond NumPy's."""
    errors = type_errors(Graph(body))
    if errors:
        raise errors[0]
    _require_shapes(body)
    if compiled:
        from tlir.backends.cpu.device import executable

        return _Needs(*executable(body).peak_memory())
    return _Needs(*peak_memory(body))


def evaluator(device: str) -> Evaluate:
    """The function that evaluates a body on a device: ``tlir.backends.reference.evaluate``, or one that is called as
    that is and returns the same words."""
    _require_device(device)
    if device == "cpu":
        from tlir.backends.cpu.device import evaluate as compiled

        return compiled
    if device == "gpu":
        from tlir.backends.cuda.device import evaluate as on_gpu

        return on_gpu
    from tlir.backends.reference import evaluate

    return evaluate


def statistics(graph: Graph, device: str) -> Statistics:
    """What the last run of the graph on a compiled device did."""
    if device == "gpu":
        from tlir.backends.cuda import device as gpu

        return gpu.executable(graph.body).statistics
    from tlir.backends.cpu import device as cpu

    return cpu.executable(graph.body).statistics


def prepare_compiled(graph: Graph) -> Any:
    """``tlir.backends.cpu.direct.Direct`` for a graph that it suits, otherwise False. Raises what ``run`` raises."""
    _require_device("cpu")
    if _needs(graph.body, True).bytes > ALWAYS_THERE:
        return False
    from tlir.backends.cpu.device import executable
    from tlir.backends.cpu.direct import direct

    return direct(executable(graph.body)) or False


def available_memory() -> int:
    """Bytes of memory that can still be taken without swapping, as far as the system says."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 1 << 62


def _require_device(device: str) -> None:
    if device not in DEVICES:
        raise unknown_device(device, DEVICES)
    if device != "reference" and find_spec("llvmlite") is None:
        raise UnsupportedError(
            "TL0802",
            f"the device {device} needs llvmlite; the reference gives the same words",
            hint=f"pip install 'tlir[{device}]'",
        )
    if device == "cpu":
        from tlir.backends.cpu.threads import threads

        threads()  # that a setting is wrong is said for small graphs too
    if device == "gpu":
        from tlir.backends.cuda.device import cupy

        cupy()


def unknown_device(device: str, known: Iterable[str]) -> UsageError:
    """The error of a device that is none of those known."""
    return UsageError("TL0901", f"there is no device {device!r}", hint="the devices are " + ", ".join(known))


def _sample_inputs(graph: Graph) -> Sequence[Tensor]:
    if graph.samples:
        return graph.samples[0].inputs
    if graph.body.input_ids:
        raise UsageError("TL0602", "the artifact has no sample", hint="give the inputs: " + _signature(graph.body))
    return ()


def _signature(body: Body) -> str:
    return ", ".join(f"{name}: {type}" for name, type in zip(body.input_names(), body.input_types, strict=True))


def _require_inputs(body: Body, inputs: Sequence[Tensor]) -> None:
    types = body.input_types
    if len(inputs) != len(types):
        raise UsageError(
            "TL0601",
            f"{len(inputs)} inputs for a graph of {len(types)}",
            hint=f"its inputs are {_signature(body)}" if types else "it has no inputs",
        )
    for name, type, given in zip(body.input_names(), types, inputs, strict=True):
        if given.type != type:
            raise UsageError("TL0601", f"the input {name} is {type}, and {given.type} was given")


def _require_shapes(body: Body) -> None:
    for node in body.walk():
        for type in node.types:
            if not fits_numpy(type):
                raise UnsupportedError(
                    "TL0801",
                    f"{type} has more axes, or larger ones, than the reference's arrays can have",
                    node=str(node),
                    source=node.source,
                )


def _require_memory(needs: _Needs, limit: int, kept: Sequence[TensorType]) -> None:
    of_kept = sum(type.nbytes for type in kept)
    if of_kept > limit or not all(map(fits_numpy, kept)):
        raise UnsupportedError(
            "TL0603",
            f"what is kept of every step takes {_bytes(of_kept)} of memory, and {_bytes(limit)} are available",
        )
    peak, worst = needs
    if peak + of_kept > limit and worst is not None:
        raise UnsupportedError(
            "TL0603",
            f"the run needs about {_bytes(peak + of_kept)} of memory here, and {_bytes(limit)} are available",
            node=str(worst),
            source=worst.source,
        )


def _bytes(count: int) -> str:
    """A number of bytes in the largest binary unit that leaves at least one."""
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
