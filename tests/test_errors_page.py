"""The page of all codes is made from the errors, and says of each what to do."""

import ast
from collections.abc import Iterator
from pathlib import Path

from toolsearch import errors
from toolsearch.reference_pages import OF_HTTP, REMEDIES, VARIANTS, errors_page

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "errors.md"
MAKES_ANSWERS = {"HttpRefusal": 1, "problem": None, "ServiceError": None}  # and at which place the code stands


def test_the_page_is_that_of_the_errors_as_they_are() -> None:
    """If this fails, run: just errors"""
    assert PAGE.read_text(encoding="utf-8") == errors_page()


def test_each_code_has_a_remedy_and_each_remedy_a_code() -> None:
    codes = {getattr(errors, name).code for name in errors.__all__} | VARIANTS.keys()

    assert codes == REMEDIES.keys()
    assert [code for code, remedy in REMEDIES.items() if not remedy.endswith(".")] == []


def test_each_code_that_the_service_or_its_client_writes_by_itself_is_explained() -> None:
    """But for `not_found`, which has a class, and 405, which comes from the web framework."""
    written = {code for part in ("service", "client") for code in _codes_in(ROOT / "toolsearch" / part)}

    assert written - REMEDIES.keys() == OF_HTTP.keys() - {"foreign_page", "method_not_allowed", "unknown_host"}


def _codes_in(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKES_ANSWERS:
                place = MAKES_ANSWERS[node.func.id]
                given = [each.value for each in node.keywords if each.arg == "code"]
                given += [] if place is None else node.args[place : place + 1]
                for each in given:
                    if isinstance(each, ast.Constant):
                        yield str(each.value)
