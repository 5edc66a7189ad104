"""What a check found: findings, and the report that holds every check with what it covered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from tlir.errors import ArtifactError, Source, TlirError
from tlir.ir.graph import Node

Status = Literal["passed", "failed", "not applicable"]


@dataclass(frozen=True)
class Finding:
    """One thing found at a place. ``level`` is "error" (the check failed) or "note" (worth a look).

    ``rule`` is an error's stable code, or for a note a short stable name such as "dead-node".
    """

    level: Literal["error", "note"]
    rule: str
    message: str
    node: str | None = None
    node_id: int | None = None
    source: Source | None = None
    hint: str | None = None
    pointer: str | None = None

    @classmethod
    def note(cls, rule: str, message: str, node: Node | None = None, hint: str | None = None) -> Finding:
        """A note about a node of the graph's own body, or about the whole graph."""
        if node is None:
            return cls("note", rule, message, hint=hint)
        return cls("note", rule, message, str(node), node.id, node.source, hint, f"/nodes/{node.id}")

    @classmethod
    def error(cls, error: TlirError) -> Finding:
        """The finding that an error states."""
        node_id = int(error.node.split(" ", 1)[0]) if error.node else None
        return cls("error", error.code, error.message, error.node, node_id, error.source, error.hint, error.pointer)

    def to_json(self) -> dict[str, Any]:
        parts: dict[str, Any] = {"level": self.level, "rule": self.rule, "message": self.message}
        for key in ("node", "hint", "pointer"):
            if getattr(self, key):
                parts[key] = getattr(self, key)
        if self.source:
            parts["source"] = {"file": self.source.file, "line": self.source.line, "function": self.source.function}
        return parts


@dataclass(frozen=True)
class Check:
    """One check: its name, how it ended, what it covered in words, and what it found."""

    name: str
    status: Status
    covered: str
    findings: tuple[Finding, ...] = ()

    def to_json(self) -> dict[str, Any]:
        findings = [finding.to_json() for finding in self.findings]
        return {"name": self.name, "status": self.status, "covered": self.covered, "findings": findings}


@dataclass(frozen=True)
class CheckReport:
    """All checks of one graph, in the order in which they were made."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """No check failed."""
        return all(check.status != "failed" for check in self.checks)

    @property
    def findings(self) -> Iterator[Finding]:
        for check in self.checks:
            yield from check.findings

    def to_json(self) -> dict[str, Any]:
        return {"ok": self.ok, "checks": [check.to_json() for check in self.checks]}


def failed(name: str, covered: str, errors: list[ArtifactError], notes: list[Finding] | None = None) -> Check:
    """The check that ended with these errors: failed if there is one, passed otherwise."""
    findings = (*(Finding.error(error) for error in errors), *(notes or ()))
    return Check(name, "failed" if errors else "passed", covered, findings)


def counted(count: int, noun: str) -> str:
    """A count with its noun: "1 node", "2 nodes"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
