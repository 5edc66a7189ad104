"""Elementary functions in formats of 25 to 237 bits of precision, by fixed-point kernels with a proven bound.

``fixed``: the arithmetic, on digits of 30 bits in words of 64; every number carries a bound on its error and on its
value, which each operation derives for its result. ``quotient`` and ``series`` are made of it; ``tables`` has constants
and tables by Arb, rounded to as many digits as they are asked for. ``work``: what a kernel is given (a format with a
working precision, operands taken apart) and what it returns, a ``Value``. ``rounding`` rounds a value with its bound.

A function is an ``evaluate(work, *operands) -> Value`` in the module of its family and an entry ``Function(evaluate,
cases, exact, ones, operands)`` in that module's ``FUNCTIONS``, which ``functions`` merges; ``loop`` makes loops of
them: ``applies(name, fmt)``, ``loop(name, fmt, flags)``, ``evaluate_wide``.

An ``evaluate`` is written for numbers that are in none of the function's cases. For others it computes something, but
must stay inside its tables. It states what is known of a number by ``below`` (a limit), ``known`` (an error, where
nothing was cut off) and ``with_error`` (what a series leaves out); each of these needs a reason in a docstring.
Everything else about the bound follows. Two things are easily overlooked: a number whose limit is 1 or more has an
integer digit; and ``Value.zeros`` must not be less than the leading zero bits that the significand may have.
"""
