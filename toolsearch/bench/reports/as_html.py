"""A report as one HTML page that loads nothing: tables, and curves that follow the reader's light or dark scheme."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from toolsearch.bench.reports.content import Report, ReportTable
from toolsearch.bench.reports.plots import COLOURS, SERIES, Plot, as_svg

_COLOURS: Final = "\n".join(f"  --{name}: light-dark({light}, {dark});" for name, (light, dark) in COLOURS.items())
_STYLE: Final = (
    f":root {{\n  color-scheme: light dark;\n{_COLOURS}\n}}"
    """
body {
  margin: 0 auto; padding: 1rem; max-width: 62rem; overflow-wrap: anywhere;
  background: var(--ground); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
h1 { font-size: 1.375rem; line-height: 1.25; }
h2 { font-size: 1rem; margin: 1.75rem 0 .5rem; }
.verdict { padding: .75rem 1rem; background: var(--wash); border-radius: .5rem; font-weight: 600; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .75rem .3rem 0; text-align: right; border-bottom: 1px solid var(--edge); white-space: nowrap; }
th:first-child { text-align: left; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1rem; }
figure { margin: 0; }
figcaption { font-size: .875rem; }
.faint, figcaption .faint { color: var(--faint); font-size: .875rem; }
svg { width: 100%; height: auto; }
svg text { font-size: 13px; fill: var(--faint); }
.grid { stroke: var(--edge); }
polyline { fill: none; stroke: var(--series); stroke-width: 2; }
circle, .swatch { fill: var(--series); stroke: none; }
.legend { display: inline-flex; align-items: center; gap: .3rem; margin-right: 1rem; }
.legend svg { width: .75rem; height: .75rem; }
""" + "\n".join(f".series-{number} {{ --series: var(--series-{number}); }}" for number in range(SERIES))
)


def as_html(report: Report, plots: Sequence[Plot]) -> str:
    """Return the page. Names in it are text, whatever they hold."""
    title = escape(report.title)
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title} · toolsearch</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>",
            f'<h1>{title}</h1>\n<p class="verdict">{escape(report.verdict)}</p>',
            *map(_table, report.tables),
            *_plots(plots),
            *(_fact(heading, sentences) for heading, sentences in report.facts),
            "</main>\n</body>\n</html>\n",
        ]
    )


def _table(table: ReportTable) -> str:
    title = escape(table.title)
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    rows = "\n".join(_row(cells) for cells in table.rows)
    notes = "\n".join(f'<p class="faint">{escape(note)}</p>' for note in table.notes)
    return (
        f'<h2>{title}</h2>\n<div class="scroll" tabindex="0" role="region" aria-label="{title}"><table>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>\n{notes}"
    )


def _row(cells: Sequence[str]) -> str:
    first, *others = map(escape, cells)
    return f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in others)}</tr>'


def _plots(plots: Sequence[Plot]) -> list[str]:
    drawn = [(plot, picture) for plot in plots if (picture := as_svg(plot))]
    if not drawn:
        return []
    first = drawn[0][0]
    legend = "".join(_legend(curve.name, number) for number, curve in enumerate(first.curves))
    figures = [f"<figure><figcaption>{escape(plot.title)}</figcaption>{picture}</figure>" for plot, picture in drawn]
    return [f'<h2>{escape(first.up.capitalize())}</h2>\n<p>{legend}</p>\n<div class="plots">', *figures, "</div>"]


def _legend(name: str, number: int) -> str:
    swatch = '<svg viewBox="0 0 10 10" aria-hidden="true"><rect class="swatch" width="10" height="10" rx="2"/></svg>'
    return f'<span class="legend series-{number}">{swatch}{escape(name)}</span>'


def _fact(heading: str, sentences: Sequence[str]) -> str:
    return f"<h2>{escape(heading)}</h2>\n" + "\n".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
