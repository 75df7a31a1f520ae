"""The pages of all codes are made from the errors, and say of each what to do."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.project.house import error_classes as everywhere
from toolsearch.errors import ConflictError, Kept, StorageError
from toolsearch.reference_pages import OF_HTTP, OF_THE_COMMAND, error_classes, error_pages
from toolsearch_indexes.errors import Case

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
CASES = [
    case
    for error in error_classes()
    for case in (Case(error.code, error.status, "", error.remedy), *vars(error).get("cases", ()))
]
MAKES_ANSWERS = {"HttpRefusal": 1, "problem": None, "ServiceError": None}  # and at which place the code stands


def test_the_pages_are_those_of_the_errors_as_they_are() -> None:
    """If this fails, run: just reference"""
    assert {path.name: path.read_text(encoding="utf-8") for path in DOCS.glob("errors*.md")} == error_pages()


def test_each_code_stands_on_one_page() -> None:
    codes = [code for page in error_pages().values() for code in re.findall(r"^### (\w+)$", page, re.MULTILINE)]

    assert sorted(codes) == sorted({*(case.code for case in CASES), *OF_HTTP, *OF_THE_COMMAND})


def test_each_class_has_its_own_code_and_remedy_and_no_two_have_one_code() -> None:
    """What is left out at a class would be that of the class above."""
    codes = [case.code for case in CASES]

    assert sorted(codes) == sorted(set(codes))
    assert [error for error in error_classes() if "remedy" not in vars(error)] == []
    assert [case.code for case in CASES if not case.remedy.endswith(".")] == []


def test_an_error_about_something_kept_has_the_code_and_the_remedy_of_that() -> None:
    errors = [StorageError("", kept) for kept in Kept]
    cases = [kept.case or Case(StorageError.code, StorageError.status, "", StorageError.remedy) for kept in Kept]

    assert [error.kept for error in errors] == list(Kept)
    assert [(error.code, error.status) for error in errors] == [(case.code, case.status) for case in cases]
    assert [error.remedy for error in errors] == [case.remedy for case in cases]
    assert StorageError("", Kept.KEYS, retry_after_s=1).code == StorageError.AWAY.code
    assert ConflictError("session", "a", Kept.SESSIONS).code == "session_conflict"


def test_the_page_draws_every_error_there_is() -> None:
    drawn = re.findall(r"^\W*(\w+Error)$", error_pages()["errors.md"], re.MULTILINE)
    modules = {name.rpartition(".")[0] for name in everywhere()}

    assert sorted(drawn) == sorted(name.rpartition(".")[2] for name in everywhere())
    assert modules == {"toolsearch.errors", "toolsearch_indexes.errors"}


def test_each_code_that_the_service_or_its_client_writes_by_itself_is_explained() -> None:
    """But for `not_found`, which has a class, and 405, which comes from the web framework."""
    written = {code for part in ("service", "client") for code in _codes_in(ROOT / "toolsearch" / part)}
    written -= {case.code for case in CASES}

    assert written == OF_HTTP.keys() - {"foreign_page", "method_not_allowed", "unknown_host"}


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
