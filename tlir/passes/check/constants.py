"""The constant check: word counts and canonical words were verified in reading; values that stand out are reported."""

from __future__ import annotations

import numpy as np

from tlir.ir.graph import Graph
from tlir.ir.tensor import Tensor
from tlir.passes.check.report import Check, Finding, counted

CHUNK = 1 << 22
"""Words looked at together, so that a constant of any size is checked in a few megabytes of memory."""


def count_special(tensor: Tensor) -> tuple[int, int]:
    """How many words of a float or complex tensor are infinite, and how many are NaN, in chunks of bounded memory."""
    fmt = tensor.dtype.float_format
    words = tensor.words.reshape(-1, tensor.dtype.limbs) if tensor.dtype.limbs > 1 else tensor.words.reshape(-1)
    infinities = nans = 0
    for start in range(0, len(words), CHUNK):
        part = words[start : start + CHUNK]
        if tensor.dtype.limbs > 1 or fmt.nans != "ieee" or not fmt.infinities:
            for word in (int.from_bytes(row.tobytes(), "little") for row in part):
                infinities += fmt.is_inf(word)
                nans += fmt.is_nan(word)
        else:
            magnitude = part & part.dtype.type((1 << (fmt.width - 1)) - 1)
            infinities += int(np.count_nonzero(magnitude == fmt.inf))
            nans += int(np.count_nonzero(magnitude > fmt.inf))
    return infinities, nans


def check_constants(graph: Graph) -> Check:
    """Every constant: non-finite values as notes. Not applicable where there is none."""
    constants = [node for node in graph.body.walk() if node.op == "constant"]
    if not constants:
        return Check("constants", "not applicable", "no constants")
    notes = []
    total = 0
    for node in constants:
        tensor: Tensor = node.attrs["value"]
        total += tensor.type.size
        if tensor.dtype.format is None:
            continue
        infinities, nans = count_special(tensor)
        for rule, count, what in (("infinite-constant", infinities, "infinite"), ("nan-constant", nans, "NaN")):
            if count:
                notes.append(Finding.note(rule, f"{count} of {tensor.type.size} values are {what}", node))
    covered = f"{counted(len(constants), 'constant')}, {counted(total, 'element')}: "
    covered += "word counts, canonical words, non-finite values"
    return Check("constants", "passed", covered, tuple(notes))
