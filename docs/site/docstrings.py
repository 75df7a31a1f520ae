"""Reads our docstrings for the reference: two columns become a list, and private parameters are left out.

A line of two columns is ``name  what it is``, with two blanks or more between them, and goes on in lines further in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import griffe

_ROW = re.compile(r"^(?P<names>[\w.*]+(?:, [\w.*]+)*) {2,}(?P<text>\S.*)$")
_FURTHER = re.compile(r"^ {2,}(?P<text>\S.*)$")


class HouseStyle(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = "\n".join(_with_lists(obj.docstring.value.splitlines()))

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        func.parameters = griffe.Parameters(*(each for each in func.parameters if not each.name.startswith("_")))


def _with_lists(lines: list[str]) -> Iterator[str]:
    was_row = False
    for line in lines:
        row = _ROW.match(line)
        further = _FURTHER.match(line) if was_row else None
        if row:
            if not was_row:
                yield ""
            yield f"- **{row['names']}**: {row['text']}"
        elif further:
            yield f"    {further['text']}"
        else:
            if was_row and line:
                yield ""
            yield line
        was_row = bool(row or further)
