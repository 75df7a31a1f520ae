"""What a docstring (Google, NumPy, Sphinx or Epydoc style) says of a function and of its parameters."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field

import docstring_parser


@dataclass(frozen=True, slots=True)
class FunctionDoc:
    """*description* is the text before and between the sections; the parameters' texts go by parameter name."""

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict[str, str])


def read_docstring(text: str | None) -> FunctionDoc:
    """Read the docstring *text*. One that follows no known style is a description as it stands."""
    clean = inspect.cleandoc(text or "").strip()
    if not clean:
        return FunctionDoc()
    try:
        parsed = docstring_parser.parse(clean)
    except docstring_parser.ParseError:
        return FunctionDoc(clean)
    if not parsed.meta:
        return FunctionDoc(clean)
    parameters = {
        name.strip().lstrip("*"): _one_paragraph(parameter.description)
        for parameter in parsed.params
        if parameter.description
        for name in parameter.arg_name.split(",")  # NumPy's "x, y : float"
    }
    parts = [part for part in (parsed.short_description, parsed.long_description) if part]
    return FunctionDoc("\n\n".join(parts) if parts else "", parameters)


def _one_paragraph(text: str) -> str:
    return " ".join(text.split())
