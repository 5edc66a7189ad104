"""The errors a user can meet: one class per exit code, each with a stable code, a place, and what to do.

Every mistake a user can make ends as one of these classes, so that the command line can print one clear message and
choose its exit code, and a program that uses the library can catch exactly what it wants. ``CODES`` is the register of
stable codes: a code is never reused for another meaning, and a test asserts that every code raised is in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

CODES: dict[str, str] = {
    # TL01xx: the file and its JSON
    "TL0101": "the file cannot be read",
    "TL0102": "the file is not UTF-8 text",
    "TL0103": "the text is not JSON",
    "TL0104": "an object has the same key twice",
    "TL0105": "a JSON number that is not an integer",
    "TL0106": "the JSON is nested too deeply",
    "TL0107": "the artifact's version is not known",
    "TL0108": "the document is not a tlir artifact",
    "TL0109": "the file cannot be written",
    # TL02xx: the structure of the document and of the graph
    "TL0201": "a field is missing",
    "TL0202": "a field is not known",
    "TL0203": "a field has the wrong JSON type",
    "TL0204": "a value is out of range",
    "TL0205": "an operation is not known",
    "TL0206": "a dtype is not known",
    "TL0207": "node ids are not consecutive",
    "TL0208": "a node uses a result that is not computed before it",
    "TL0209": "a node has the wrong number of operands",
    "TL0210": "a node has the wrong number of results or regions",
    "TL0211": "inputs or outputs do not match the graph",
    "TL0212": "a feature needs a later version of the format",
    "TL0213": "a number format descriptor is not valid",
    "TL0214": "a sample does not match the graph",
    "TL0215": "a tree does not match the graph",
    "TL0216": "a tensor is larger than the format allows",
    "TL0217": "the text of a kernel cannot be read",
    # TL03xx: types
    "TL0301": "the declared type is not the type that the operation gives",
    "TL0302": "an operation's constraint does not hold",
    "TL0303": "the kernels of a graph compute another expression than the graph says",
    # TL04xx: tensor data
    "TL0401": "the number of words disagrees with the shape",
    "TL0402": "a word is not valid for its dtype",
    "TL0403": "the encoding of tensor data is not valid",
    # TL05xx: external tensor data
    "TL0501": "an external file is missing or cannot be read",
    "TL0502": "an external file lies outside the artifact's folder",
    "TL0503": "an external file has the wrong size or hash",
    "TL0504": "an external file does not hold the tensor as declared",
    # TL06xx: running
    "TL0601": "an input does not fit",
    "TL0602": "there is no sample to run on",
    "TL0603": "the run needs more memory than there is",
    "TL0604": "the floating-point environment is not the default one",
    # TL07xx: comparing
    "TL0701": "there is nothing to compare with",
    # TL08xx: not supported here
    "TL0801": "the operation is not supported on this device",
    "TL0802": "the device is not available",
    "TL0803": "the frontend is not installed",
    "TL0804": "the frontend's program cannot be expressed",
    "TL0805": "the output format cannot hold the values",
    # TL09xx: usage
    "TL0901": "the arguments do not fit together",
    "TL0902": "a path given on the command line does not exist or is of the wrong kind",
    # TL10xx: rewriting
    "TL1001": "the rewrite does not apply to this graph",
    # TL99xx: faults of tlir itself
    "TL9901": "a fault in tlir",
}


@dataclass(frozen=True)
class Source:
    """Where a node was written: file, line (1-based) and function of the user's own program."""

    file: str
    line: int
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f" in {self.function}" if self.function else "")


@dataclass
class TlirError(Exception):
    """Base of all errors: ``code`` (stable), ``message`` (what is wrong), and where it is known

    ``file`` the artifact, ``pointer`` the JSON pointer in it, ``node`` the node (``"7 multiply 'scaled'"``),
    ``source`` the user's source line, ``hint`` what to do.
    """

    code: str
    message: str
    file: str | None = None
    pointer: str | None = None
    node: str | None = None
    source: Source | None = None
    hint: str | None = None
    exit_code: int = field(default=70, init=False, repr=False)

    def __post_init__(self) -> None:
        Exception.__init__(self, self.code, self.message)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """The message as lines of text: what is wrong and where, then the source line, then what to do."""
        place = ": ".join(part for part in (self.file, self.pointer, self.node and f"node {self.node}") if part)
        text = [f"{self.code}: {place}: {self.message}" if place else f"{self.code}: {self.message}"]
        if self.source:
            text.append(f"  at {self.source}")
        if self.hint:
            text.append(f"  {self.hint}")
        return text

    def to_json(self) -> dict[str, Any]:
        """The same as a JSON object, absent parts left out."""
        parts: dict[str, Any] = {"code": self.code, "message": self.message}
        for key in ("file", "pointer", "node", "hint"):
            if getattr(self, key):
                parts[key] = getattr(self, key)
        if self.source:
            parts["source"] = {"file": self.source.file, "line": self.source.line, "function": self.source.function}
        return parts


class UsageError(TlirError):
    """The request itself is wrong: options that do not fit together, an input of the wrong shape (exit 2)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.exit_code = 2


class ArtifactError(TlirError):
    """The file is not a valid artifact, or its declared types do not hold (exit 3)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.exit_code = 3


class UnsupportedError(TlirError):
    """Valid, but not possible here: an operation, a device, a frontend that is not installed (exit 4)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.exit_code = 4


class InternalError(TlirError):
    """A fault in tlir itself (exit 70)."""
