"""When an element passes: the rule that the options of a comparison state, and its exact decision.

Without other options ``|got - expected| <= tolerance + rtol * |expected|``, decided exactly: the tolerances are the
decimals that were written, and the numbers those that the words stand for. ``ulps`` replaces that rule by a distance in
units in the last place; given together with a tolerance, an element passes that satisfies either, so that an absolute
bound serves near zero and a relative one elsewhere. ``words`` asks for equal bits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

from tlir.compare.exact import Terms, negated, product, scaled, sign
from tlir.errors import ArtifactError, TlirError, UsageError

DEFAULT_TOLERANCE = "2e-5"

_DECIMAL = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_RATIONAL = re.compile(r"[0-9]+/0*[1-9][0-9]*")

Number = int | float | str | Fraction | Decimal


@dataclass(frozen=True)
class Rule:
    """What passes. ``tolerance`` and ``rtol`` are exact; without a tolerance only ``ulps`` or ``words`` count."""

    tolerance: Fraction | None
    rtol: Fraction = Fraction(0)
    ulps: int | None = None
    words: bool = False
    nan_payload: bool = False
    origin: str = "default"
    """Where the tolerance comes from: "default", "artifact" or "given"."""

    def __str__(self) -> str:
        """The rule as a condition that an element meets."""
        if self.words:
            return "equal words" + (", NaN payloads included" if self.nan_payload else "")
        parts = []
        if self.tolerance is not None:
            bound = decimal_text(self.tolerance)
            if self.rtol:
                bound += f" + {decimal_text(self.rtol)}*|recorded|"
            parts.append(f"|got - recorded| <= {bound}")
        if self.ulps is not None:
            parts.append(f"at most {self.ulps} ulps apart")
        return " or ".join(parts)

    def within(self, expected: list[Terms], got: list[Terms]) -> bool:
        """Whether finite numbers satisfy the tolerances, exactly. A complex number has two components."""
        if self.tolerance is None:
            return False
        # everything is multiplied by the denominators, so that only integers and powers of two are left
        denominator = self.tolerance.denominator * self.rtol.denominator
        absolute = self.tolerance.numerator * self.rtol.denominator
        relative = self.rtol.numerator * self.tolerance.denominator
        differences = [[*g, *negated(e)] for e, g in zip(expected, got, strict=True)]
        if len(differences) == 1:
            bound = [(absolute, 0), *_magnitude(scaled(expected[0], relative))]
            return sign([*scaled(_magnitude(differences[0]), denominator), *negated(bound)]) <= 0
        # |d|^2 <= (a + r|e|)^2, that is x <= 2ar|e| with x = |d|^2 - a^2 - r^2|e|^2
        x = [
            *scaled(_squared(differences), denominator**2),
            (-(absolute**2), 0),
            *scaled(_squared(expected), -(relative**2)),
        ]
        if sign(x) <= 0:
            return True
        mixed = scaled(_squared(expected), (2 * absolute * relative) ** 2)
        return sign([*product(x, x), *negated(mixed)]) <= 0


def _magnitude(terms: Terms) -> Terms:
    return negated(terms) if sign(terms) < 0 else terms


def _squared(components: list[Terms]) -> Terms:
    return [term for part in components for term in product(part, part)]


def make_rule(
    tolerance: Number | None,
    rtol: Number,
    ulps: int | None,
    words: bool,
    nan_payload: bool,
    artifact_tolerance: str | None = None,
) -> Rule:
    """The rule that the options state. UsageError TL0901 for options that do not fit together."""
    relative = exact_number("rtol", rtol)
    if ulps is not None and (not isinstance(ulps, int) or isinstance(ulps, bool) or ulps < 0):
        raise UsageError("TL0901", f"ulps is {ulps!r}; it must be an integer that is not negative")
    if words:
        others = {"tolerance": tolerance is not None, "rtol": relative != 0, "ulps": ulps is not None}
        for name in (name for name, given in others.items() if given):
            raise UsageError(
                "TL0901", f"words and {name} exclude each other", hint="words asks for equal bits and has no tolerance"
            )
        return Rule(None, words=True, nan_payload=nan_payload)
    if nan_payload:
        raise UsageError("TL0901", "nan_payload only has a meaning together with words", hint="give words too")
    if tolerance is not None:
        return Rule(exact_number("tolerance", tolerance), relative, ulps, origin="given")
    if ulps is not None and not relative:
        return Rule(None, ulps=ulps)
    if ulps is not None:
        return Rule(Fraction(0), relative, ulps, origin="given")
    if artifact_tolerance is not None:
        return Rule(exact_number("tolerance", artifact_tolerance, ArtifactError), relative, origin="artifact")
    return Rule(exact_number("tolerance", DEFAULT_TOLERANCE), relative)


def exact_number(name: str, value: Number, error: type[TlirError] = UsageError) -> Fraction:
    """The number that the text says; a Python float stands for the shortest decimal that reads back to it."""
    if isinstance(value, Fraction) and value >= 0:
        return value
    text = repr(float(value)) if isinstance(value, float) else str(value).strip()
    if not isinstance(value, bool) and (_DECIMAL.fullmatch(text) or _RATIONAL.fullmatch(text)) and len(text) <= 1000:
        return Fraction(text)
    code, pointer = ("TL0901", None) if error is UsageError else ("TL0204", f"/{name}")
    message = f"{name} is {text[:60]}; it must be a number that is not negative, such as 1e-6"
    raise error(code, message, pointer=pointer)


def decimal_text(value: Fraction) -> str:
    """A fraction as a decimal where it is a short one, otherwise as a quotient."""
    number = Context(prec=20).divide(Decimal(value.numerator), Decimal(value.denominator)).normalize()
    if Fraction(number) != value:
        return f"{value.numerator}/{value.denominator}"
    return f"{number:e}" if number and not -5 < number.adjusted() < 6 else f"{number:f}"
