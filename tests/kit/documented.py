"""Whether answers of the service are of a status that its OpenAPI document names for the operation."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import httpx2

_PAGE = Path(__file__).parents[2] / "docs" / "openapi.json"


async def require_documented(answer: httpx2.Response) -> None:
    """Fail for a status that the document does not name; what is no operation of it is passed over."""
    path = answer.request.url.path
    for template, statuses in _operations(answer.request.method):
        if template.fullmatch(path):
            assert str(answer.status_code) in statuses, (
                f"docs/openapi.json does not say that {answer.request.method} {path} may be answered with "
                f"{answer.status_code}; see toolsearch/service/web/openapi.py"
            )
            return


@cache
def _operations(method: str) -> list[tuple[re.Pattern[str], frozenset[str]]]:
    """The path and the statuses of each operation with *method*; those without parameters first."""
    paths = json.loads(_PAGE.read_text(encoding="utf-8"))["paths"]
    of_method = {path: methods[method.lower()] for path, methods in paths.items() if method.lower() in methods}
    return [
        (
            re.compile("[^/]+".join(map(re.escape, re.split(r"\{[^}]+\}", path)))),
            frozenset(of_method[path]["responses"]),
        )
        for path in sorted(of_method, key=lambda path: path.count("{"))
    ]
