"""Special operands of functions that their kernels do not get right by themselves.

Each function gives conditions on the operands' values, and the word and flags that the specification has where they
hold; later ones count before earlier ones. A signaling NaN raises INVALID besides.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from tlir.floatlib.elementary.exponential import pole
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.elementary.scalar import elementary
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import infinity_word, round_exact, zero_result
from tlir.floatlib.soft.machine import Predicate

Case = tuple[Predicate, int, int]


def hypot(fmt: Format, x: Number, y: Number) -> list[Case]:
    """Infinite where an operand is, a NaN beside it or not."""
    if fmt.inf is None:
        return []
    infinite = x.m.either(abs(x).equals(inf), abs(y).equals(inf))
    return [(infinite, *_result("hypot", fmt, fmt.inf, fmt.inf))]


def atan2(fmt: Format, y: Number, x: Number) -> list[Case]:
    """An exact zero where x is infinite, its sign that of y, which is finite."""
    if fmt.inf is None:
        return []
    m = x.m
    flat = m.both(x.equals(inf), abs(y) < inf)
    negative = m.less(m.constant(0), y.sign)
    cases = [(m.both(flat, m.negation(negative)), *_result("atan2", fmt, fmt.max_finite, fmt.inf))]
    if fmt.signed:
        cases.append((m.both(flat, negative), *_result("atan2", fmt, fmt.lowest_finite, fmt.inf)))
    return cases


def power(fmt: Format, x: Number, y: Number) -> list[Case]:
    """Zeros and infinities to a power, infinite exponents, and what is 1 even beside a NaN."""
    m = x.m
    cases: list[Case] = []
    words = {number: round_exact(fmt, int(number < 0), int(abs(number)), 0)[0] for number in (1, 2, 3, -2, -3)}
    magnitude, exponent = abs(x), abs(y)
    negative = m.less(m.constant(0), x.sign)
    half = y * 0.5
    odd = m.both(y.equals(y.rounded()), m.negation(half.equals(half.rounded())))
    finite = m.both(exponent < inf, exponent > 0.0)
    sources = [(0.0, fmt.zero(0))] if fmt.has_zero else []
    sources += [(inf, fmt.inf)] if fmt.inf is not None else []
    for value, word in sources:
        for n in (2, 3, -2, -3):
            sign = fmt.sign_mask if n % 2 and fmt.signed else 0
            if n < 0 and not fmt.signed:
                continue
            here = m.both(m.both(finite, magnitude.equals(value)), y > 0.0 if n > 0 else y < 0.0)
            turned = m.both(odd, negative)
            here = m.both(here, turned if n % 2 else m.negation(turned))
            base = word | sign if _exists(fmt, word | sign) else word
            cases.append((here, *_result("power", fmt, base, words[n])))
    one = m.either(y.equals(0.0), x.equals(1.0))
    if fmt.inf is not None:
        infinite = exponent.equals(inf)
        for sign in (0, 1) if fmt.signed else (0,):
            to = m.both(infinite, y > 0.0 if sign == 0 else y < 0.0)
            to_word = fmt.inf | (fmt.sign_mask if sign else 0)
            cases.append((m.both(to, magnitude > 1.0), *_result("power", fmt, words[2], to_word)))
            if fmt.has_zero:
                cases.append((m.both(to, magnitude < 1.0), *_result("power", fmt, fmt.zero(0), to_word)))
        one = m.either(one, m.both(infinite, magnitude.equals(1.0)))
    cases.append((one, words[1], 0))
    return cases


def lgamma(fmt: Format, x: Number) -> list[Case]:
    """The poles at the negative integers."""
    if not fmt.signed:
        return []
    integral = x.m.both(x.m.both(x < 0.0, x > -inf), x.equals(x.rounded()))
    word, raised = pole(fmt, 0)
    return [(integral, word, int(raised))]


def log_add_exp(fmt: Format, x: Number, y: Number) -> list[Case]:
    """Infinities: inf beside anything, -inf beside itself."""
    if fmt.inf is None:
        return []
    m = x.m
    cases = [(m.either(x.equals(inf), y.equals(inf)), fmt.inf, 0)]
    if fmt.signed:
        cases.append((m.both(x.equals(-inf), y.equals(-inf)), fmt.inf | fmt.sign_mask, 0))
    proper = m.both(x.equals(x), y.equals(y))
    return [(m.both(proper, condition), word, raised) for condition, word, raised in cases]


def igamma(fmt: Format, a: Number, x: Number) -> list[Case]:
    """0 and 1 where an operand is 0 or infinite."""
    return _gamma_limits(a, x, _word(zero_result(fmt, 0)), _word(round_exact(fmt, 0, 1, 0)))


def igammac(fmt: Format, a: Number, x: Number) -> list[Case]:
    """1 and 0 where those are 0 and 1."""
    return _gamma_limits(a, x, _word(round_exact(fmt, 0, 1, 0)), _word(zero_result(fmt, 0)))


def _gamma_limits(a: Number, x: Number, below: tuple[int, int], above: tuple[int, int]) -> list[Case]:
    m = a.m
    no_shape, no_argument = a.equals(0.0), x.equals(0.0)
    proper = m.both(m.both(_from_zero(a), _from_zero(x)), m.negation(m.both(no_shape, no_argument)))
    low, high = m.either(no_argument, a.equals(inf)), m.either(no_shape, x.equals(inf))
    return [(m.both(proper, low), *below), (m.both(proper, high), *above)]


def gamma_derivative(fmt: Format, a: Number, x: Number) -> list[Case]:
    """0 at x = 0, for an infinite a as well."""
    return [(a.m.both(a > 0.0, x.equals(0.0)), *_word(zero_result(fmt, 0)))]


def regularized_incomplete_beta(fmt: Format, a: Number, b: Number, x: Number) -> list[Case]:
    """The ends of the interval, and parameters with which all mass lies at one of them."""
    m = a.m
    low, high = m.either(a.equals(0.0), b.equals(inf)), m.either(b.equals(0.0), a.equals(inf))
    proper = m.both(_from_zero(a), _from_zero(b))
    proper = m.both(proper, m.both(_from_zero(x), m.negation(x > 1.0)))
    proper = m.both(proper, m.negation(m.both(low, high)))
    none, all_of_it = m.either(x.equals(0.0), high), m.either(x.equals(1.0), m.both(low, x > 0.0))
    return [
        (m.both(proper, none), *_word(zero_result(fmt, 0))),
        (m.both(proper, all_of_it), *_word(round_exact(fmt, 0, 1, 0))),
    ]


def _from_zero(x: Number) -> Predicate:
    """Whether a number is zero or positive, and no NaN."""
    return x.m.either(x > 0.0, x.equals(0.0))


def _parity(x: Number) -> tuple[Predicate, Predicate]:
    """Whether a number is an even integer, and whether it is an odd one."""
    m, half = x.m, x * 0.5
    whole, even = x.equals(x.rounded()), half.equals(half.rounded())
    return m.both(whole, even), m.both(whole, m.negation(even))


def _below_zero(x: Number) -> Predicate:
    """Zero, the negative integers and -inf."""
    return x.m.both(x.equals(x.rounded()), x < 0.5)


def zeta(fmt: Format, s: Number, q: Number) -> list[Case]:
    """The pole at s = 1, those of even s, and limits."""
    m = s.m
    even, _ = _parity(s)
    infinite = m.both(s.equals(inf), q > 0.0)
    finite = m.both(s > 1.0, s < inf)
    ends = _word(pole(fmt, 0))
    return [
        (m.both(s.equals(1.0), q.equals(q)), *ends),
        (m.both(m.both(finite, even), _below_zero(q)), *ends),
        (m.both(infinite, q < 1.0), infinity_word(fmt, 0), 0),
        (m.both(infinite, q.equals(1.0)), *_word(round_exact(fmt, 0, 1, 0))),
        (m.both(infinite, q > 1.0), *_word(zero_result(fmt, 0))),
        (m.both(finite, q.equals(inf)), *_word(zero_result(fmt, 0))),
    ]


def polygamma(fmt: Format, n: Number, x: Number) -> list[Case]:
    """The poles of odd orders and that of digamma, and limits."""
    m = n.m
    even, odd = (m.both(parity, m.both(n > 0.0, n < inf)) for parity in _parity(n))
    none = n.equals(0.0)
    negative = m.less(m.constant(0), x.sign)
    at_zero = m.both(none, x.equals(0.0))
    return [
        (m.both(odd, _below_zero(x)), *_word(pole(fmt, 0))),
        (m.both(at_zero, m.negation(negative)), *_word(pole(fmt, 1))),
        (m.both(at_zero, negative), *_word(pole(fmt, 0))),
        (m.both(none, x.equals(inf)), infinity_word(fmt, 0), 0),
        (m.both(odd, x.equals(inf)), *_word(zero_result(fmt, 0))),
        (m.both(even, x.equals(inf)), *_word(zero_result(fmt, 1))),
    ]


def _word(result: tuple[int, int]) -> tuple[int, int]:
    return result[0], int(result[1])


def _exists(fmt: Format, word: int) -> bool:
    """Whether a word with a sign is the number that it looks like: some formats have no -0."""
    return not fmt.is_nan(word)


def _result(name: str, fmt: Format, *words: int) -> tuple[int, int]:
    word, raised = elementary(name, fmt, *words)
    return word, int(raised)


CASES: dict[str, Callable[..., list[Case]]] = {
    "atan2": atan2,
    "hypot": hypot,
    "igamma": igamma,
    "igamma_grad_a": gamma_derivative,
    "igammac": igammac,
    "lgamma": lgamma,
    "log_add_exp": log_add_exp,
    "polygamma": polygamma,
    "power": power,
    "random_gamma_grad": gamma_derivative,
    "regularized_incomplete_beta": regularized_incomplete_beta,
    "zeta": zeta,
}
