"""The longest common subsequence of two sequences of labels."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence

Pairs = list[tuple[int, int]]
"""Positions in two sequences that belong together."""

MAX_EDITS = 1500
"""Differences up to which the common subsequence is exactly the longest one."""


def common_subsequence(a: Sequence[Hashable], b: Sequence[Hashable]) -> Pairs:
    """Pairs of positions of a common subsequence, in order. The longest one where the sequences differ in at most
    ``MAX_EDITS`` places (Myers, "An O(ND) Difference Algorithm"), a long one otherwise; of several of the same length
    one that keeps the ends together, and puts what is missing on one side where something is missing on the other."""
    end = 0
    while end < min(len(a), len(b)) and a[-1 - end] == b[-1 - end]:
        end += 1
    start = 0
    while start < min(len(a), len(b)) - end and a[start] == b[start]:
        start += 1
    middle_a, middle_b = a[start : len(a) - end], b[start : len(b) - end]
    middle: Pairs | None = []
    if middle_a and middle_b:
        middle = _shortest_edit(middle_a, middle_b)
        if middle is None:
            middle = _by_occurrence(middle_a, middle_b)
        middle = _slid(middle, middle_a, middle_b)
        middle = _mirrored(
            _slid(_mirrored(middle, middle_a, middle_b), middle_a[::-1], middle_b[::-1]), middle_a, middle_b
        )
    pairs = [(k, k) for k in range(start)]
    pairs += [(start + k, start + m) for k, m in middle or []]
    return pairs + [(len(a) - end + k, len(b) - end + k) for k in range(end)]


def _shortest_edit(a: Sequence[Hashable], b: Sequence[Hashable]) -> Pairs | None:
    """The pairs of a longest common subsequence; None where more than MAX_EDITS edits would be needed."""
    most = min(len(a) + len(b), MAX_EDITS)
    # the furthest position in a that is reached on every diagonal, position in a minus position in b; the middle is 0
    middle = most + 1
    furthest = [0] * (2 * middle + 1)
    trace = []
    for edits in range(most + 1):
        trace.append(furthest[middle - edits - 1 : middle + edits + 2])
        for diagonal in range(-edits, edits + 1, 2):
            at = middle + diagonal
            down = diagonal == -edits or (diagonal != edits and furthest[at - 1] < furthest[at + 1])
            x = furthest[at + 1] if down else furthest[at - 1] + 1
            y = x - diagonal
            while x < len(a) and y < len(b) and a[x] == b[y]:
                x, y = x + 1, y + 1
            furthest[at] = x
            if x >= len(a) and y >= len(b):
                return _backtrack(trace, len(a), len(b))
    return None


def _backtrack(trace: Sequence[Sequence[int]], x: int, y: int) -> Pairs:
    pairs: Pairs = []
    for edits in range(len(trace) - 1, -1, -1):
        # one more on either side than the diagonals that this many edits reach
        furthest, at = trace[edits], x - y + edits + 1
        down = x - y == -edits or (x - y != edits and furthest[at - 1] < furthest[at + 1])
        previous = x - y + 1 if down else x - y - 1
        previous_x = furthest[at + 1 if down else at - 1] if edits else 0
        previous_y = previous_x - previous if edits else 0
        while x > previous_x and y > previous_y:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = previous_x, previous_y
    return pairs[::-1]


def _mirrored(pairs: Pairs, a: Sequence[Hashable], b: Sequence[Hashable]) -> Pairs:
    """The pairs seen from the ends of the sequences."""
    return [(len(a) - 1 - k, len(b) - 1 - m) for k, m in reversed(pairs)]


def _slid(pairs: Pairs, a: Sequence[Hashable], b: Sequence[Hashable]) -> Pairs:
    """The pairs, moved where labels allow: a run before which one side has something more, and after which the other
    has, moves so that both stand beside each other after it, for they are likely one thing that changed."""
    runs: list[Pairs] = []
    for k, m in pairs:
        if runs and runs[-1][-1] == (k - 1, m - 1):
            runs[-1].append((k, m))
        else:
            runs.append([(k, m)])
    # what a has more than b in the gap before each run, and in the last gap
    ends = [(-1, -1), *(run[-1] for run in runs)]
    starts = [*(run[0] for run in runs), (len(a), len(b))]
    excess = [(k - x) - (m - y) for (x, y), (k, m) in zip(ends, starts, strict=True)]
    # what b has more, and what a has more, in all gaps after each run
    wanted, offered = [0] * len(runs), [0] * len(runs)
    for k in range(len(runs) - 1, -1, -1):
        later = k + 1 < len(runs)
        wanted[k] = max(-excess[k + 1], 0) + (wanted[k + 1] if later else 0)
        offered[k] = max(excess[k + 1], 0) + (offered[k + 1] if later else 0)
    carried = 0
    for k, run in enumerate(runs):
        here = excess[k] + carried
        limit = min(here, wanted[k]) if here > 0 else max(here, -offered[k])
        carried = _move(run, limit, a, b)
    return [pair for run in runs for pair in run]


def _move(run: Pairs, shift: int, a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    """Move a run so that up to ``shift`` nodes of a (of b, where it is negative) follow it instead of preceding it; how
    many do."""
    step = 1 if shift > 0 else -1
    for done in range(0, shift, step):
        moved = [(k - 1, m) if step > 0 else (k, m - 1) for k, m in run]
        if any(a[k] != b[m] for k, m in moved):
            return done
        run[:] = moved
    return shift


def _by_occurrence(a: Sequence[Hashable], b: Sequence[Hashable]) -> Pairs:
    """The k-th occurrence of each label with the k-th, of these the longest increasing subsequence."""
    places: dict[Hashable, list[int]] = defaultdict(list)
    for position, label in enumerate(b):
        places[label].append(position)
    taken: Counter[Hashable] = Counter()
    pairs: Pairs = []
    for position, label in enumerate(a):
        if taken[label] < len(places[label]):
            pairs.append((position, places[label][taken[label]]))
            taken[label] += 1
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for k, (_, place) in enumerate(pairs):
        at = bisect_left(tails, place)
        before.append(ends[at - 1] if at else -1)
        tails[at : at + 1] = [place]
        ends[at : at + 1] = [k]
    chosen = []
    k = ends[-1] if ends else -1
    while k >= 0:
        chosen.append(pairs[k])
        k = before[k]
    return chosen[::-1]
