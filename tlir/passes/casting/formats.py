"""Which format a cast leads to, and which it starts from."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tlir.errors import UsageError
from tlir.floatlib.format import FORMATS, NAN_CONVENTIONS, Format, FormatError
from tlir.ir.types import NAMED, DType, parse_dtype
from tlir.passes.render.escape import printable
from tlir.passes.render.formats import find

HINT = "`tlir info` lists the dtypes; e11m100 is a format of 11 exponent and 100 fraction bits"


def target_dtype(to: str | Format, declared: Mapping[str, Format]) -> DType:
    """The dtype of the target: a named one where the format has a name, by itself or in ``declared``; otherwise one
    that the artifact must declare. UsageError TL0901 for no such name, TL0213 for bits that no format has."""
    fmt = to if isinstance(to, Format) else _format(to, declared)
    if not isinstance(to, Format) and to in declared:
        return parse_dtype(to, declared)
    for name, known in [*FORMATS.items(), *declared.items()]:
        if known == fmt:
            return parse_dtype(name, declared)
    name = described_name(fmt)
    if name in declared:
        raise UsageError("TL0901", f"the artifact declares {name} as another format", hint="cast to that one by bits")
    return DType(name, "float", fmt.width, fmt)


def source_formats(names: Sequence[str], declared: Mapping[str, Format]) -> Collection[Format] | None:
    """The formats with these names; None without names, which stands for all. Errors as for ``target_dtype``."""
    return {_format(name, declared) for name in names} if names else None


def declared_name(name: str) -> bool:
    """Whether an artifact has to declare the format of this dtype."""
    return name not in NAMED


def _format(name: str, declared: Mapping[str, Format]) -> Format:
    if name in declared:
        return declared[name]
    try:
        found = find(name)
    except FormatError as error:
        raise UsageError("TL0213", str(error)) from None
    if isinstance(found, Format):
        return found
    if found is not None and found.is_float:
        return found.float_format
    if found is not None:
        hint = f"a complex value has the format of its parts: {found.component.name}" if found.is_complex else HINT
        raise UsageError("TL0901", f"{found.name} is not a floating-point format", hint=hint)
    raise UsageError("TL0901", f"there is no floating-point format {printable(name)!r}", hint=HINT)


def described_name(fmt: Format) -> str:
    """A name that an artifact can declare, made of everything in which the format differs from an IEEE one."""
    parts = [f"e{fmt.exponent_bits}m{fmt.fraction_bits}"]
    if fmt.bias != (1 << (fmt.exponent_bits - 1)) - 1:
        parts.append(f"bias{'_minus' if fmt.bias < 0 else ''}{abs(fmt.bias)}")
    if fmt.nans != NAN_CONVENTIONS[0]:
        parts.append({"all_ones": "nan_ones", "negative_zero": "nan_zero", "none": "no_nan"}[fmt.nans])
        if fmt.infinities:
            parts.append("inf")
    if not fmt.signed:
        parts.append("unsigned")
    if not fmt.subnormals:
        parts.append("no_zero")
    return "_".join(parts)


def contains(wide: Format, narrow: Format) -> bool:
    """Whether every value of ``narrow``, infinities, NaN and -0 included, is one of ``wide`` too.

    Numbers of ``narrow`` are multiples of its least place below its largest; those with as many bits fit ``wide`` if
    both ends do."""
    if wide == narrow:
        return True
    for what in ("has_nan", "infinities", "signed", "signed_zero", "has_zero"):
        if getattr(narrow, what) and not getattr(wide, what):
            return False
    if narrow.precision > wide.precision:
        return False
    # the place of the last bit of the smallest number, and the largest number
    return wide.emin - _subnormal_bits(wide) <= narrow.emin - _subnormal_bits(narrow) and _largest_fits(wide, narrow)


def _subnormal_bits(fmt: Format) -> int:
    return fmt.fraction_bits if fmt.subnormals else 0


def _largest_fits(wide: Format, narrow: Format) -> bool:
    _, significand, exponent = narrow.decode(narrow.max_finite)
    try:
        wide.encode(0, significand, exponent)
    except ValueError:
        return False
    return True
