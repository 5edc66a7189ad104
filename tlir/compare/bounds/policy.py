"""What an execution may do differently from the written program, as named policies.

A policy names freedoms. ``resolve`` makes them definite for what recorded the outputs: the frontend's accuracy table,
whether it flushes subnormal numbers, and whether it compiled the graph.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import Any

from tlir.errors import ArtifactError, UsageError
from tlir.floatlib.format import FORMATS, Format
from tlir.ir.graph import Producer
from tlir.ir.ops import OPERATIONS

TABLE = Path(__file__).with_name("accuracy.toml")
"""The accuracy of the frontends' elementary functions, which can be edited or replaced."""

FORMATS_OF_ENTRIES = ("float32", "float64", "float16", "bfloat16")
SECTION = frozenset({"name", "frontend", "versions", "flushes_subnormals", "default", *FORMATS_OF_ENTRIES})
"""What a section of the table holds."""


@dataclass(frozen=True)
class Accuracy:
    """Largest errors of elementary functions, in units in the last place of the exact value.

    ``ulps`` maps (function, dtype name) to ``(ulps, floor)``: the unit is that of max(|exact|, floor). ``default`` is
    taken for functions that are not named. Formats narrower than float32 are computed in float32 and rounded once, but
    for functions that have an entry for the format itself.
    """

    source: str
    ulps: Mapping[tuple[str, str], tuple[float, float]]
    default: float

    def of(self, function: str, dtype: str) -> tuple[float, float]:
        return self.ulps.get((function, dtype), (self.default, 0.0))


@dataclass(frozen=True)
class Policy:
    """``order``: sums and products of many terms in any order and grouping. ``fma``: a product may be added without
    being rounded. ``accuracy``: elementary functions as accurate as the frontend's table says (correctly rounded
    otherwise). ``flush``: subnormal numbers may be taken as zero where the frontend does so. ``excess``: results in
    formats narrower than float32 may be kept in float32 until they are converted or returned. ``reciprocal``: x / y
    may be x * (1 / y): "never", "compiled" (for a constant or repeated y, in compiled outputs) or "always"."""

    name: str
    meaning: str
    order: bool = True
    fma: bool = True
    accuracy: bool = True
    flush: bool = True
    excess: bool = True
    reciprocal: str = "compiled"
    margin: float = 1.0
    """By what the table's ulps are multiplied."""


POLICIES: dict[str, Policy] = {
    policy.name: policy
    for policy in (
        Policy(
            "strict",
            "the written order, every operation rounded once to nearest even",
            order=False,
            fma=False,
            accuracy=False,
            flush=False,
            excess=False,
            reciprocal="never",
        ),
        Policy(
            "reorder",
            "any order and grouping of sums and products, with or without fused multiply-add; else as strict",
            accuracy=False,
            flush=False,
            excess=False,
            reciprocal="never",
        ),
        Policy(
            "frontend",
            "any order, fused multiply-add, the frontend's accuracy of elementary functions, its treatment of "
            "subnormal numbers, float16 and narrower results kept in float32; in compiled outputs, division by a "
            "constant or repeated value through its reciprocal, two constants that are added or multiplied one after "
            "the other combined first, and conversions to narrow formats left out where an operation takes the result",
        ),
        Policy(
            "loose",
            "as frontend, with elementary functions of twice the error, any division through a reciprocal, and "
            "subnormal numbers flushed or kept whatever the frontend is",
            reciprocal="always",
            margin=2.0,
        ),
    )
}
DEFAULT_POLICY = "frontend"


@dataclass(frozen=True)
class Freedoms:
    """A policy made definite. ``accuracy`` is None where elementary functions are correctly rounded."""

    policy: str
    order: bool
    fma: bool
    accuracy: Accuracy | None
    margin: float
    flush: bool
    excess: bool
    reciprocal: str
    """ "never", "constant" or "always"."""
    compiled: bool = False
    """Whether narrow results of conversions may stay wide too, where an operation of the narrow format takes them, and
    the constants of two sums or products be combined."""

    def __str__(self) -> str:
        """The policy and what it permits here, in one line."""
        parts = ["any order" if self.order else "the written order"]
        if self.fma:
            parts.append("fused multiply-add")
        if self.accuracy is None:
            parts.append("correctly rounded functions")
        else:
            factor = f" times {self.margin:g}" if self.margin != 1 else ""
            parts.append(f"functions as accurate as {self.accuracy.source}{factor}")
        if self.flush:
            parts.append("subnormals flushed or kept")
        if self.excess:
            parts.append("narrow results kept in float32")
        if self.reciprocal != "never":
            parts.append(
                f"division by {'a constant or repeated' if self.reciprocal == 'constant' else 'any'} value as a product"
            )
        return f"{self.policy}: {', '.join(parts)}"

    @property
    def any(self) -> bool:
        """Whether something is permitted at all."""
        return self.order or self.fma or self.accuracy is not None or self.flush or self.excess

    def in_written_order(self) -> Freedoms:
        """The same without another order, fused operations, wider intermediates, flushed subnormals and reciprocals:
        what is left is other rounding inside elementary functions."""
        return replace(self, order=False, fma=False, excess=False, flush=False, reciprocal="never", compiled=False)

    def ulps(self, function: str, fmt: Format) -> tuple[Format, float, float]:
        """The format in which a function is computed, and the largest error in its units in the last place, at values
        from ``floor`` up in magnitude. An error of 0.5 is correct rounding."""
        if self.accuracy is None:
            return fmt, 0.5, 0.0
        own = self.accuracy.ulps.get((function, fmt.name))
        if fmt.precision < 24 and own is not None and own[0]:
            return fmt, max(0.5, own[0] * self.margin), own[1]
        inner = FORMATS["float32"] if fmt.precision < 24 and fmt.emax <= 127 else fmt
        ulps, floor = self.accuracy.of(function, "float32" if inner.precision <= 24 else "float64")
        return inner, max(0.5, ulps * self.margin), own[1] if own is not None and inner != fmt else floor

    def flushed_below(self, fmt: Format) -> float:
        """The magnitude below which values of this format may be flushed to zero: that of its own smallest normal
        number; of float32's in formats of a smaller range, which processors compute in float32 and convert to and from
        it exactly, subnormals included. 0 where nothing is flushed."""
        if not self.flush:
            return 0.0
        wide = FORMATS["float32"].emin
        return 2.0 ** max(fmt.emin if fmt.emin <= wide or self.policy == "loose" else wide, -1074)

    def keeps_excess(self, fmt: Format) -> bool:
        """Whether results in this format may stay in float32."""
        return self.excess and fmt.precision < 24


def resolve(policy: str = DEFAULT_POLICY, producer: Producer | None = None, table: Path | None = None) -> Freedoms:
    """The freedoms of a named policy for outputs that ``producer`` recorded; ``table`` replaces the accuracy table.

    Raises UsageError TL0901 for a name that is none, and ArtifactError TL0701 for a table that cannot be read.
    """
    if policy not in POLICIES:
        raise UsageError("TL0901", f"there is no policy {policy!r}", hint="the policies are " + ", ".join(POLICIES))
    chosen = POLICIES[policy]
    frontend = producer.frontend if producer else ""
    version = producer.frontend_version if producer else ""
    section = _section(_read(table or TABLE), frontend, version)
    accuracy = _accuracy(section) if chosen.accuracy else None
    reciprocal = chosen.reciprocal
    if reciprocal == "compiled":
        reciprocal = "constant" if producer and producer.outputs == "compiled" else "never"
    return Freedoms(
        policy=chosen.name,
        order=chosen.order,
        fma=chosen.fma,
        accuracy=accuracy,
        margin=chosen.margin,
        flush=chosen.flush and (policy == "loose" or bool(section["flushes_subnormals"])),
        excess=chosen.excess,
        reciprocal=reciprocal,
        compiled=chosen.excess and (chosen.name == "loose" or bool(producer and producer.outputs == "compiled")),
    )


def _section(table: list[dict[str, Any]], frontend: str, version: str) -> dict[str, Any]:
    """The first section of that frontend whose version is a prefix of the one given; the last one is for all others."""
    for section in table:
        if section["frontend"] == frontend and any(version.startswith(prefix) for prefix in section["versions"]):
            return section
    return table[-1]


def _accuracy(section: Mapping[str, Any]) -> Accuracy:
    ulps = {}
    for dtype in FORMATS_OF_ENTRIES:
        # narrow formats have entries only where a function is not computed in float32 and rounded once
        entries = section.get(dtype, {}) if dtype.endswith("16") else section[dtype]
        for function, entry in entries.items():
            pair = entry if isinstance(entry, list) else [entry, 0.0]
            ulps[function, dtype] = (float(pair[0]), float(pair[1]))
    return Accuracy(section["name"], ulps, float(section["default"]))


@lru_cache(maxsize=8)
def _read(path: Path) -> list[dict[str, Any]]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        _require("table", document.get("table"), list)
        for section in document["table"]:
            _require("table", section, dict)
            for name, kind in (("name", str), ("frontend", str), ("flushes_subnormals", bool), ("versions", list)):
                _require(name, section[name], kind)
            for version in section["versions"]:
                _require("versions", version, str)
            for dtype in FORMATS_OF_ENTRIES:
                _require(dtype, section.get(dtype, {}), dict)
            _require_entries(section)
            accuracy = _accuracy(section)
            for number in (accuracy.default, *(part for pair in accuracy.ulps.values() for part in pair)):
                if not 0 <= number < inf:
                    raise ValueError(f"an error in ulps is a number that is not negative, not {number}")
        if not document["table"]:
            raise KeyError("table")
    except KeyError as error:
        raise ArtifactError("TL0701", f"the accuracy table {path} cannot be read: it has no {error}") from error
    except (OSError, TypeError, ValueError, IndexError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ArtifactError("TL0701", f"the accuracy table {path} cannot be read: {reason}") from error
    sections: list[dict[str, Any]] = document["table"]
    return sections


def _require_entries(section: Mapping[str, Any]) -> None:
    """Every field, function and entry of a section means something, so that a misspelt one is not ignored."""
    for name, value in section.items():
        if name not in SECTION and isinstance(value, dict):
            raise ValueError(f"a section has no table {name!r}, only " + ", ".join(FORMATS_OF_ENTRIES))
        if name not in SECTION:
            raise ValueError(f"a section has no field {name!r}")
    for dtype in FORMATS_OF_ENTRIES:
        for function, entry in section.get(dtype, {}).items():
            if function not in OPERATIONS:
                raise ValueError(f"there is no function {function!r}")
            if isinstance(entry, bool) or (isinstance(entry, list) and len(entry) > 2):
                raise ValueError(f"{function} is {entry!r}, neither a number nor [ulps, floor]")


def _require(name: str, value: object, kind: type) -> None:
    if value is None:
        raise KeyError(name)
    if not isinstance(value, kind):
        raise TypeError(f"{name} is {value!r}, not a {kind.__name__}")
