"""Reports for continuous integration: JUnit XML, SARIF 2.1.0, and GitHub's workflow commands.

All three are made of *cases*: something that was looked at in an artifact, and the findings there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from tlir.errors import CODES, Source


@dataclass(frozen=True)
class Remark:
    """One finding: level "error" or "note", a stable rule, what is wrong, and where."""

    level: str
    rule: str
    message: str
    hint: str | None = None
    node: str | None = None
    pointer: str | None = None
    source: Source | None = None

    @property
    def text(self) -> str:
        node = f"node {self.node}: " if self.node else ""
        return node + self.message + (f" ({self.hint})" if self.hint else "")


@dataclass(frozen=True)
class Case:
    """One check or one output of one artifact. ``status`` is "passed", "failed", "not applicable" or "error"."""

    file: str
    name: str
    status: str
    covered: str
    remarks: tuple[Remark, ...] = ()


def junit(command: str, cases: Sequence[Case]) -> str:
    """JUnit XML: a test suite per artifact."""
    root = ElementTree.Element("testsuites", name=f"tlir {command}")
    suites: dict[str, list[Case]] = {}
    for case in cases:
        suites.setdefault(case.file, []).append(case)
    for file, members in suites.items():
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=_xml(file),
            tests=str(len(members)),
            failures=str(sum(case.status == "failed" for case in members)),
            errors=str(sum(case.status == "error" for case in members)),
            skipped=str(sum(case.status == "not applicable" for case in members)),
        )
        for case in members:
            element = ElementTree.SubElement(suite, "testcase", classname=_xml(file), name=_xml(case.name))
            errors = [remark for remark in case.remarks if remark.level == "error"]
            if case.status in ("failed", "error"):
                tag = "failure" if case.status == "failed" else "error"
                child = ElementTree.SubElement(
                    element, tag, type=_xml(errors[0].rule), message=_xml(errors[0].text) if errors else ""
                )
                child.text = _xml("\n".join(_with_place(remark) for remark in errors))
            elif case.status == "not applicable":
                ElementTree.SubElement(element, "skipped", message=_xml(case.covered))
            else:
                ElementTree.SubElement(element, "system-out").text = _xml(case.covered)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode")


def _with_place(remark: Remark) -> str:
    return f"{remark.rule}: {remark.text}" + (f"\n  at {remark.source}" if remark.source else "")


def _xml(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return "".join(
        c if c in "\t\n" or " " <= c < "\ud800" or "\ue000" <= c < "\ufffe" or c > "\uffff" else "\ufffd" for c in text
    )


def github(cases: Sequence[Case]) -> str:
    """GitHub workflow commands: annotations at the user's source lines where these are known, else at the artifact."""
    lines = []
    for case in cases:
        for remark in case.remarks:
            file, line = (remark.source.file, remark.source.line) if remark.source else (case.file, 0)
            level = "error" if remark.level == "error" else "notice"
            properties = [f"file={_property(file)}"] + ([f"line={line}"] if line else [])
            properties.append(f"title={_property(f'{remark.rule} {case.name}')}")
            about = f"{case.file}: " if remark.source else ""
            lines.append(f"::{level} {','.join(properties)}::{_message(about + remark.text)}")
    return "\n".join(lines)


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def sarif(cases: Sequence[Case]) -> dict[str, Any]:
    """A SARIF 2.1.0 log: one run, a result per finding."""
    remarks = [(case, remark) for case in cases for remark in case.remarks]
    rules = sorted({remark.rule for _, remark in remarks})
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "tlir", "rules": [_sarif_rule(rule) for rule in rules]}},
                "results": [_sarif_result(case, remark, rules.index(remark.rule)) for case, remark in remarks],
            }
        ],
    }


def _sarif_rule(rule: str) -> dict[str, Any]:
    return {"id": rule, "shortDescription": {"text": CODES.get(rule, rule.replace("-", " "))}}


def _sarif_result(case: Case, remark: Remark, index: int) -> dict[str, Any]:
    artifact = {"physicalLocation": {"artifactLocation": {"uri": _uri(case.file)}}}
    place = ":".join(part for part in (case.file, remark.pointer) if part)
    artifact["logicalLocations"] = [{"fullyQualifiedName": place}]  # type: ignore[assignment]
    result: dict[str, Any] = {
        "ruleId": remark.rule,
        "ruleIndex": index,
        "level": remark.level,
        "message": {"text": remark.text},
        "locations": [artifact],
    }
    if remark.source:
        region = {"startLine": max(remark.source.line, 1)}
        source = {"artifactLocation": {"uri": _uri(remark.source.file)}, "region": region}
        # the line in the user's program is where a viewer should lead; the artifact is related to it
        result["locations"] = [{"physicalLocation": source, "logicalLocations": artifact["logicalLocations"]}]
        result["relatedLocations"] = [{"id": 1, "physicalLocation": artifact["physicalLocation"]}]
    return result


def _uri(path: str) -> str:
    from urllib.parse import quote

    return quote(path.replace("\\", "/"), safe="/:", errors="surrogatepass")
