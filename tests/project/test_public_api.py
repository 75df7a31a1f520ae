"""The public names: all that a user writes against is among them, each has a reason, and nothing else is needed."""

import ast
import importlib
import inspect
import re
import sys
import typing
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import toolsearch
import toolsearch.client
from toolsearch.errors import ToolSearchError

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
OURS = ("toolsearch", "toolsearch_indexes")
DOUBLE_UNDERSCORED = {"__call__", "__enter__", "__aenter__", "__iter__", "__and__", "__contains__", "__len__"}
TAKES_ANY_TEXT = {  # what models, providers and own indexes may name, to judge it
    *("ToolIndex.resolve_strategy", "Telemetry.search", "Endpoint.__init__"),
}
SHIPPED_WITH = sorted(
    [*ROOT.glob("examples/*.py"), ROOT / "README.md", *ROOT.glob("docs/*.md"), ROOT / "benchmarks/README.md"]
)


def documented() -> dict[str, tuple[str, str]]:
    """How a user meets each name that the page lists, and the reason for it."""
    rows = re.findall(r"^\| `(\w+)` \| ([\w ]+) \| (.+) \|$", PAGE, re.MULTILINE)
    assert len(rows) == len({name for name, _, _ in rows}), "a name is listed twice"
    return {name: (kind, reason) for name, kind, reason in rows}


PUBLIC = {name: getattr(toolsearch, name) for name in toolsearch.__all__}
CLASSES = {name: value for name, value in PUBLIC.items() if isinstance(value, type)}


def test_the_three_lists_of_public_names_agree() -> None:
    """Type checkers read the imports, programs the table, and both `__all__`."""
    tree = ast.parse(Path(toolsearch.__file__).read_text(encoding="utf-8"))
    checked = {
        alias.name: node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    del checked["annotations"]

    assert checked == toolsearch._MODULES
    assert sorted(checked) == toolsearch.__all__


def test_each_public_name_is_documented_with_its_reason() -> None:
    assert sorted(documented()) == toolsearch.__all__
    assert [name for name, (_, reason) in documented().items() if len(reason) < 5] == []


def test_the_page_says_truly_how_a_name_is_met() -> None:
    for name, (kind, _) in documented().items():
        value = PUBLIC[name]
        is_class = isinstance(value, type)
        assert (kind == "implement") == (is_class and getattr(value, "_is_protocol", False)), name
        assert (kind == "catch") == (is_class and issubclass(value, ToolSearchError)), name
        assert kind != "call" or callable(value), name
        assert is_class or kind in ("call", "annotate"), name


def test_the_tree_of_errors_is_public_and_drawn_whole() -> None:
    errors = importlib.import_module("toolsearch.errors")
    raised = {
        name for name, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, ToolSearchError)
    }

    assert raised == set(errors.__all__)
    assert raised == {name for name, (kind, _) in documented().items() if kind == "catch"}
    assert raised <= set(re.findall(r"\w+Error", errors.__doc__ or ""))


def test_the_page_names_what_the_module_of_the_client_has() -> None:
    _, _, section = PAGE.partition("## The client of the service\n")

    assert sorted(re.findall(r"^- `(\w+)`", section, re.MULTILINE)) == toolsearch.client.__all__


# All that public signatures name


def annotated_classes(annotation: Any) -> Iterator[type]:
    """The classes in *annotation*, however deep."""
    if isinstance(annotation, list | tuple):
        for each in annotation:
            yield from annotated_classes(each)
    elif isinstance(annotation, type) and not typing.get_args(annotation):
        yield annotation
    else:
        origin = typing.get_origin(annotation)
        yield from annotated_classes(
            [each for each in (origin, *typing.get_args(annotation)) if each is not None and not isinstance(each, str)]
        )


def hints_of(thing: Any) -> dict[str, Any]:
    """The resolved annotations of *thing*, those that its module imports for type checkers included."""
    named: dict[str, Any] = {}
    for each in reversed(getattr(thing, "__mro__", (thing,))):
        if each.__module__.startswith(OURS):
            module = sys.modules[each.__module__]
            named |= {**vars(module), **for_type_checkers(module)}
    return typing.get_type_hints(thing, named, named)  # twice: a TypedDict evaluates its own in its module


@cache
def for_type_checkers(module: ModuleType) -> dict[str, Any]:
    names: dict[str, Any] = {}
    for block in ast.parse(inspect.getsource(module)).body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for node in block.body:
                assert isinstance(node, ast.ImportFrom)
                found = importlib.import_module(str(node.module))
                names |= {alias.asname or alias.name: getattr(found, alias.name) for alias in node.names}
    return names


def functions_of(name: str, owner: type, *, is_made: bool) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of *owner*, with its constructor if users call that."""
    for member, value in inspect.getmembers_static(owner):
        is_public = not member.startswith("_") or member in DOUBLE_UNDERSCORED or (member == "__init__" and is_made)
        function = getattr(value, "__func__", getattr(value, "fget", getattr(value, "func", value)))
        if is_public and inspect.isfunction(function) and function.__module__.startswith(OURS):
            yield f"{name}.{member}", function


def reachable() -> Iterator[tuple[str, type]]:
    """Each of our classes that a public signature or field names, and where."""
    for name, (kind, _) in documented().items():
        value = PUBLIC[name]
        if kind in ("annotate", "pass on"):
            continue
        functions: list[tuple[str, Any]] = [(name, value)] if inspect.isfunction(value) else []
        if isinstance(value, type):
            functions += functions_of(name, value, is_made=kind in ("make", "implement"))
            for field, annotation in hints_of(value).items():
                if not field.startswith("_"):
                    yield from ((f"{name}.{field}", each) for each in annotated_classes(annotation))
        for where, function in functions:
            for parameter, annotation in hints_of(function).items():
                if not parameter.startswith("_"):
                    yield from ((f"{where}({parameter})", each) for each in annotated_classes(annotation))


def test_every_class_in_a_public_signature_is_public_itself() -> None:
    private = {
        f"{where}: {each.__module__}.{each.__qualname__}"
        for where, each in reachable()
        if each.__module__.startswith(OURS) and CLASSES.get(each.__name__) is not each
    }

    assert sorted(private) == []


def test_the_walk_sees_signatures_fields_properties_and_what_is_imported_for_type_checkers() -> None:
    """Or the test above would pass for nothing."""
    seen = {(where, each.__name__) for where, each in reachable()}
    assert {
        ("ToolSearch.__init__(encoder)", "Encoder"),
        ("ToolSearch.open(options)", "EngineOptions"),
        ("ToolSearch.explain(return)", "Explanation"),
        ("ToolSearch.index(return)", "ToolIndex"),
        ("EngineOptions.cache", "VectorCache"),
        ("Catalog.refused(return)", "Refusal"),
        ("Catalog.from_openapi(caller)", "HttpRequest"),
        ("Session.execute(turn)", "TurnCounter"),
        ("Evaluation.strategies", "StrategyResult"),
        ("ToolCallingManager.__init__(before)", "BeforeCall"),
        ("render_results(results)", "ToolResult"),
    } <= seen


def test_a_strategy_and_a_format_are_literals_in_every_public_signature() -> None:
    """So that a type checker finds a misspelt one."""
    names = {"strategy": 0, "strategies": 0, "format": 0, "wire_format": 0}
    for name, (kind, _) in documented().items():
        value = PUBLIC[name]
        methods = functions_of(name, value, is_made=kind == "make") if isinstance(value, type) else ()
        for where, function in methods if isinstance(value, type) else [(name, value)]:
            if not inspect.isfunction(function) or kind == "pass on":
                continue
            for parameter in names.keys() & hints_of(function).keys():
                if where not in TAKES_ANY_TEXT:
                    assert str not in set(annotated_classes(hints_of(function)[parameter])), (where, parameter)
                    names[parameter] += 1

    assert min(names.values()) > 0, "or this test looks for names that there are no more"


# What a newcomer copies


def imports_of(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    blocks = [text] if path.suffix == ".py" else re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    for block in blocks:
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                yield str(node.module)
            elif isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("path", SHIPPED_WITH, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_example_and_no_page_imports_a_private_module(path: Path) -> None:
    modules = [module for module in imports_of(path) if module.split(".")[0] in OURS]

    assert set(modules) <= {"toolsearch", "toolsearch.client"}
