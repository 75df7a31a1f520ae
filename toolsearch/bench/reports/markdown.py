"""A report as Markdown, for a page of documentation or a pull request."""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolsearch.bench.reports.content import Report, ReportTable

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&])")


def as_markdown(report: Report) -> str:
    parts = [f"# {_text(report.title)}", f"**{_text(report.verdict)}**"]
    for table in report.tables:
        parts += [f"## {_text(table.title)}", _table(table), *map(_text, table.notes)]
    for heading, sentences in report.facts:
        parts += [f"## {_text(heading)}", _listed(sentences)]
    return "\n\n".join(parts) + "\n"


def _table(table: ReportTable) -> str:
    rule = "|---|" + "--:|" * (len(table.columns) - 1)
    return "\n".join([_row(table.columns), rule, *map(_row, table.rows)])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_text, cells))} |"


def _listed(sentences: Sequence[str]) -> str:
    if len(sentences) == 1:
        return _text(sentences[0])
    return "\n".join(f"- {_text(sentence)}" for sentence in sentences)


def _text(text: str) -> str:
    """On one line, and nothing in it means anything."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
