"""Elementary functions in formats of 25 to 237 bits of precision, by fixed-point kernels with a proven bound.

Modules: ``fixed`` (the arithmetic: digits of 30 bits in words of 64, each number with a bound on its error), ``tables``
(constants and tables by Arb), ``work`` (a kernel's operands and its value), ``rounding`` (the value rounded with its
bound), ``function`` (what describes a kernel), the families, ``functions`` (all of them) and ``loop`` (``applies``,
``loop``).

A new function is an ``evaluate(work, *operands) -> Value`` and an entry ``Function(evaluate, cases, exact, ones)`` in
the dictionary ``FUNCTIONS`` of its family's module, which ``functions`` merges.
"""
