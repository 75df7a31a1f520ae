"""Puts the report of ``toolsearch bench savings`` on the terminal and into files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from toolsearch.cli.output import legible, line, put_record, put_text, stdout, table

if TYPE_CHECKING:
    from toolsearch.bench.reports.content import Report, ReportTable
    from toolsearch.bench.study import Study


def put_reports(
    study: Study, *, as_json: bool, json_to: Path | None, markdown_to: str | None, html_to: Path | None
) -> None:
    """To each file that is named, and to stdout as a report for people, as JSON, or with ``-`` as Markdown."""
    from toolsearch.bench.reports.as_html import as_html
    from toolsearch.bench.reports.as_json import as_json as record_of
    from toolsearch.bench.reports.content import report_of
    from toolsearch.bench.reports.curves import plots_of
    from toolsearch.bench.reports.markdown import as_markdown

    report = report_of(study)
    if html_to is not None:
        html_to.write_text(as_html(report, plots_of(study)), encoding="utf-8")
    if markdown_to is not None:
        put_text(markdown_to, as_markdown(report))
    is_shown = markdown_to != "-"
    put_record(lambda: record_of(study), lambda: _show(report) if is_shown else None, as_json=as_json, to=json_to)


def _show(report: Report) -> None:
    console = stdout()
    console.print(Text(legible(report.title), style="bold"))
    for each in report.tables:
        console.print()
        console.print(legible(each.title))
        console.print(_table(each))
        for note in each.notes:
            console.print(legible(note))
    console.print()
    console.print(Text(legible(report.verdict), style="bold"))
    for heading, sentences in report.facts:
        console.print()
        console.print(Text(legible(heading), style="bold"))
        for sentence in sentences:
            console.print(legible(sentence))


def _table(report: ReportTable) -> object:
    columns = [column.replace(" ", "\n") for column in report.columns]  # so that 80 columns are enough
    shown = table("", columns, numbers=columns[1:])
    for first, *others in report.rows:
        shown.add_row(line(first, "cyan"), *map(line, others))
    return shown
