"""How pages write what comes from outside: nothing hides, and nothing turns what stands beside it."""

from __future__ import annotations

import pytest

from toolsearch.service.pages.filters import Exact, shown
from toolsearch.service.pages.frame import ENVIRONMENT


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("invoice\u202efdp.exe", "invoice\\u{202e}fdp.exe"),
        ("\u2066a\u2069 \u200bb\ufeff", "\\u{2066}a\\u{2069} \\u{200b}b\\u{feff}"),
        ("red\x1b[31m\x00", "red\\u{1b}[31m\\u{0}"),
        ("tag\U000e0041 \ud800", "tag\\u{e0041} \\u{d800}"),
        ("x\ufe0f y\u200dz", "x\\u{fe0f} y\\u{200d}z"),
        ("two\n\tlines, é, 中文, سلام", "two\n\tlines, é, 中文, سلام"),
        ("⚠️ 👩\u200d💻 👍🏽", "⚠️ 👩\u200d💻 👍🏽"),
    ],
)
def test_characters_that_hide_or_turn_others_are_written_out(text: str, written: str) -> None:
    assert shown(text) == written


def test_every_expression_of_a_template_is_written_so_and_still_escaped() -> None:
    template = ENVIRONMENT.from_string(
        '{% macro part(x) %}<i title="{{ x }}">{{ x }}</i>{% endmacro %}{{ part(x) }}{{ x | breakable }}{{ [x] }}'
    )

    written = template.render(x="<b>\u202e_b")

    assert "\u202e" not in written
    assert written.startswith('<i title="&lt;b&gt;\\u{202e}_b">&lt;b&gt;\\u{202e}_b</i>&lt;b&gt;\\u{202e}_<wbr>b')


def test_what_a_form_sends_back_is_exact_and_escaped() -> None:
    assert ENVIRONMENT.from_string("{{ x | exact }}{{ y }}").render(x="<\u202e", y=Exact("\u200b>")) == (
        "&lt;\u202e\u200b&gt;"
    )
