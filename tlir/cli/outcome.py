"""What a command that takes many artifacts found for each of them, and the exit code of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tlir.cli.group import as_tlir_error
from tlir.errors import ArtifactError, TlirError, UnsupportedError, UsageError

EXIT_CODES = {"fault": 70, "invalid": 3, "unsupported": 4, "failed": 1, "passed": 0}
"""How an artifact can end, the most severe first, and the exit code of a command in which that is the most severe."""

R = TypeVar("R")


@dataclass(frozen=True)
class Outcome(Generic[R]):
    """One artifact: ``status`` is a key of ``EXIT_CODES``; ``report`` is there if it passed or failed, otherwise
    ``error``."""

    file: str
    status: str
    report: R | None = None
    error: TlirError | None = None
    exception: Exception | None = None

    def to_json(self) -> dict[str, Any]:
        parts: dict[str, Any] = {"file": self.file, "status": self.status}
        if self.error is not None:
            parts["error"] = self.error.to_json()
        elif self.report is not None:
            parts |= self.report.to_json()  # type: ignore[attr-defined]
        return parts


def process(files: Sequence[str], examine: Callable[[str], R]) -> Iterator[Outcome[R]]:
    """``examine`` every file; its report says by ``.ok`` whether it passed. An artifact that is not valid, or that
    cannot be handled here, is an outcome like any other, and the next one follows. UsageError is passed on: it is
    about the command, not about a file."""
    for file in files:
        try:
            report = examine(file)
        except UsageError:
            raise
        except Exception as error:
            known = as_tlir_error(error)
            known.file = known.file or file
            yield Outcome(file, _status(known), error=known, exception=error)
        else:
            yield Outcome(file, "passed" if report.ok else "failed", report)  # type: ignore[attr-defined]


def _status(error: TlirError) -> str:
    if isinstance(error, ArtifactError):
        return "invalid"
    return "unsupported" if isinstance(error, UnsupportedError) else "fault"


def exit_code(outcomes: Sequence[Outcome[Any]]) -> int:
    """The code of the most severe outcome."""
    found = {outcome.status for outcome in outcomes}
    return next((code for status, code in EXIT_CODES.items() if status in found), 0)


def counts(outcomes: Sequence[Outcome[Any]]) -> dict[str, int]:
    """How many outcomes there are of each status, zero included, in the order passed, failed, ..."""
    counter = Counter(outcome.status for outcome in outcomes)
    return {status: counter[status] for status in reversed(EXIT_CODES)}


def summary(outcomes: Sequence[Outcome[Any]]) -> str:
    """ "14 artifacts: 12 passed, 1 failed, 1 invalid"."""
    total = len(outcomes)
    parts = [f"{count} {status}" for status, count in counts(outcomes).items() if count]
    return f"{total} artifact{'' if total == 1 else 's'}: {', '.join(parts)}"


def document(command: str, outcomes: Sequence[Outcome[Any]]) -> dict[str, Any]:
    """The JSON document of a command over several artifacts."""
    return {
        "command": command,
        "ok": all(outcome.status == "passed" for outcome in outcomes),
        "summary": counts(outcomes),
        "files": [outcome.to_json() for outcome in outcomes],
    }
