"""What a comparison found: one record per output and sample, and the report that holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tlir.compare.rule import Rule
from tlir.errors import Source
from tlir.floatlib.value import Value
from tlir.ir.graph import Producer
from tlir.ir.types import TensorType

if TYPE_CHECKING:
    from tlir.compare.against import Pair
    from tlir.compare.locate import Location


@dataclass(frozen=True)
class Element:
    """One element: its index, what the frontend recorded and what this evaluation got, as exact text and as words.

    ``absolute`` and ``relative`` are numbers of 64 bits of precision (None where one side is not finite and the other
    is different, or where a relative difference would divide by zero); ``ulps`` counts in the output's own format.
    """

    index: tuple[int, ...]
    expected: str
    got: str
    expected_words: str
    got_words: str
    absolute: Value | None
    relative: Value | None
    ulps: int | None

    def to_json(self) -> dict[str, Any]:
        return {
            "index": list(self.index),
            "expected": self.expected,
            "got": self.got,
            "expected_words": self.expected_words,
            "got_words": self.got_words,
            "absolute": None if self.absolute is None else str(self.absolute),
            "relative": None if self.relative is None else str(self.relative),
            "ulps": self.ulps,
        }


@dataclass(frozen=True)
class OutputComparison:
    """One output for one sample.

    ``count`` elements were compared, ``equal_words`` of them have equal words, ``failing`` do not pass, of which
    ``worst`` are the first few, worst first. ``max_ulps``, ``max_absolute`` and ``max_relative`` are the elements of
    the largest distance and differences (elements that are not finite on one side only have none); None where nothing
    differs. ``mismatched`` counts elements whose NaN or infinity does not match. ``freedom`` says up to what the output
    was compared where its definition does not fix it, as the signs of eigenvectors.
    ``histogram`` counts the elements by their distance: pairs of a number of bits b, ascending, and how many elements
    are 2^(b-1) to 2^b - 1 ulps away (0 bits: none); those that are ``mismatched`` are not in it.
    """

    sample: int
    position: int
    name: str
    type: TensorType
    node: str
    source: Source | None
    count: int
    equal_words: int
    failing: int
    mismatched: int
    max_ulps: Element | None
    max_absolute: Element | None
    max_relative: Element | None
    worst: tuple[Element, ...]
    freedom: str | None = None
    histogram: tuple[tuple[int, int], ...] = ()

    @property
    def ok(self) -> bool:
        """Every element passes."""
        return self.failing == 0

    @property
    def ulps(self) -> int:
        """The largest distance, 0 where nothing differs."""
        return self.max_ulps.ulps or 0 if self.max_ulps else 0

    def to_json(self) -> dict[str, Any]:
        def optional(element: Element | None) -> dict[str, Any] | None:
            return None if element is None else element.to_json()

        parts: dict[str, Any] = {
            "sample": self.sample,
            "output": self.position,
            "name": self.name,
            "dtype": self.type.dtype.name,
            "shape": list(self.type.shape),
            "node": self.node,
            "ok": self.ok,
            "elements": self.count,
            "equal_words": self.equal_words,
            "failing": self.failing,
            "mismatched": self.mismatched,
            "max_ulps": optional(self.max_ulps),
            "max_absolute": optional(self.max_absolute),
            "max_relative": optional(self.max_relative),
            "worst": [element.to_json() for element in self.worst],
            "histogram": [
                {"from": 1 << bits >> 1, "to": (1 << bits) - 1, "elements": count} for bits, count in self.histogram
            ],
        }
        if self.freedom:
            parts["freedom"] = self.freedom
        if self.source:
            parts["source"] = {"file": self.source.file, "line": self.source.line, "function": self.source.function}
        return parts


@dataclass(frozen=True)
class CompareReport:
    """The comparison of one graph: every output of every sample, the rule, the device, and who recorded the outputs.
    ``locations`` are what the traces show of the samples that were looked into; ``pair`` is there where two artifacts
    were compared with each other."""

    outputs: tuple[OutputComparison, ...]
    rule: Rule
    device: str
    samples: int
    producer: Producer | None = None
    locations: tuple[Location, ...] = ()
    pair: Pair | None = None

    @property
    def ok(self) -> bool:
        """Every element of every output of every sample passes."""
        return all(output.ok for output in self.outputs)

    @property
    def count(self) -> int:
        """How many elements were compared."""
        return sum(output.count for output in self.outputs)

    def to_json(self) -> dict[str, Any]:
        parts: dict[str, Any] = {
            "ok": self.ok,
            "rule": str(self.rule),
            "device": self.device,
            "samples": self.samples,
            "elements": self.count,
            "outputs": [output.to_json() for output in self.outputs],
        }
        if self.producer:
            parts["recorded"] = {
                "frontend": self.producer.frontend,
                "version": self.producer.frontend_version,
                "outputs": self.producer.outputs,
            }
        if self.locations:
            parts["located"] = [location.summary() for location in self.locations]
        if self.pair is not None:
            parts["against"] = self.pair.to_json()
        return parts
