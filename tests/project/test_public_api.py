"""The public names: all that a user writes against is among them, each has a reason, and nothing else is needed."""

import ast
import importlib
import inspect
import re
import sys
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.project.house import DOORS, public_names
from toolsearch.errors import ToolSearchError

ROOT = Path(__file__).parents[2]
PAGES = ("api-names.md", "api-modules.md", "api-signatures.md")
PAGE = "\n".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in PAGES)
OURS = ("toolsearch", "toolsearch_indexes")
DOUBLE_UNDERSCORED = {"__call__", "__enter__", "__aenter__", "__iter__", "__and__", "__contains__", "__len__"}
TAKES_ANY_TEXT = {  # what models, providers and own indexes may name, to judge it
    *("ToolIndex.resolve_strategy", "Telemetry.search", "Endpoint.__init__"),
}
SHIPPED_WITH = sorted(
    [*ROOT.glob("examples/*.py"), ROOT / "README.md", *ROOT.glob("docs/*.md"), ROOT / "benchmarks/README.md"]
)


@dataclass(frozen=True)
class Row:
    """A name on the page: the module under whose heading it stands, and how users meet it, at which place."""

    module: str
    name: str
    kind: str
    reason: str
    place: str = ""


def documented() -> list[Row]:
    rows: list[Row] = []
    module = "toolsearch"
    for line in PAGE.splitlines():
        if line.startswith("## "):
            module = line.split("`")[1] if "`" in line else "toolsearch"
        elif row := re.fullmatch(r"\|`(\w+)`\|([a-z ]+)\|(?:`([\w.=()]+)`\|)?(.+)\|", line):
            rows.append(Row(module, row[1], row[2], row[4], row[3] or ""))
    errors = [Row("toolsearch.errors", name, "catch", "docs/errors.md") for name in public_names("toolsearch.errors")]
    return rows + errors


LISTED = [row for row in documented() if not row.place]
MET = {row.name: row for row in documented() if row.place}
PUBLIC = {row.name: getattr(importlib.import_module(row.module), row.name) for row in LISTED}
CLASSES = {name: value for name, value in PUBLIC.items() if isinstance(value, type)}


@pytest.mark.parametrize("door", DOORS)
def test_each_public_name_is_documented_with_its_reason(door: str) -> None:
    _, _, client = PAGE.partition("## The client of the service\n")
    names = [row.name for row in LISTED if row.module == door]
    names += re.findall(r"^- `(\w+)`", client, re.MULTILINE) if door == "toolsearch.client" else []
    names += ["ToolSearchError"] if door == "toolsearch" else []  # which is listed with the other errors

    assert sorted(names) == sorted(set(names)) == public_names(door)


def test_no_name_stands_on_the_page_twice_and_each_has_a_reason() -> None:
    assert len({row.name for row in documented()}) == len(documented())
    assert [row.name for row in documented() if len(row.reason) < 5] == []


@pytest.mark.parametrize(
    "door", ["toolsearch", "toolsearch.chat", "toolsearch.evaluation", "toolsearch.gateway", "toolsearch.wire"]
)
def test_a_stub_lists_names_and_the_modules_that_have_them_in_lines_of_one_form(door: str) -> None:
    """Or a type checker and `lazy_names` would read different things."""
    file = sys.modules[door].__file__
    assert file is not None
    tree = ast.parse(Path(f"{file}i").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]

    assert imports == tree.body
    assert [(node.level, len(node.names), node.names[0].asname) for node in imports] == [
        (0, 1, node.names[0].name) for node in imports
    ]
    assert sorted(node.names[0].name for node in imports) == public_names(door)
    assert all(getattr(sys.modules[door], name) is not None for name in public_names(door))


def test_the_page_says_truly_how_a_name_is_met() -> None:
    for row in LISTED:
        value = PUBLIC[row.name]
        is_class = isinstance(value, type)
        assert (row.kind == "implement") == (is_class and getattr(value, "_is_protocol", False)), row
        assert (row.kind == "catch") == (is_class and issubclass(value, ToolSearchError)), row
        assert row.kind != "call" or callable(value), row
        assert is_class or row.kind in ("call", "annotate"), row


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


def signatures(name: str, value: Any, kind: str) -> Iterator[tuple[str, type]]:
    """Each class in the fields and signatures of *value*, as far as users who meet it as *kind* use them."""
    if kind in ("annotate", "pass on"):
        return
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


@cache
def reachable() -> list[tuple[str, type]]:
    """Each of our classes that a signature or field names, and where: of a public name, or of a class found so."""
    found: list[tuple[str, type]] = []
    waiting = [(row.name, PUBLIC[row.name], row.kind) for row in LISTED]
    seen = {id(value) for _, value, _ in waiting}
    while waiting:
        for where, each in signatures(*waiting.pop(0)):
            if each.__module__.startswith(OURS):
                found.append((where, each))
                if id(each) not in seen:
                    seen.add(id(each))
                    row = MET.get(each.__name__)
                    waiting.append((each.__name__, each, row.kind if row else "receive"))
    return found


def met() -> dict[type, set[str]]:
    """The classes in signatures that are not public, and the places, written as the page writes them."""
    places: dict[type, set[str]] = {}
    for where, each in reachable():
        if CLASSES.get(each.__name__) is not each:
            place = re.sub(r"\.__init__\((\w+)\)$", r"(\1=)", where)
            places.setdefault(each, set()).add(place if place.endswith("=)") else place.partition("(")[0])
    return places


def test_every_class_in_a_public_signature_is_public_itself_or_the_page_says_where_it_is_met() -> None:
    assert sorted(each.__name__ for each in met()) == sorted(MET)


def test_the_page_says_truly_where_and_how_a_class_is_met() -> None:
    for each, places in met().items():
        row = MET[each.__name__]
        assert row.place in places, row
        assert (row.kind == "implement") == getattr(each, "_is_protocol", False), row
        assert row.kind in ("implement", "receive", "pass on"), row


def test_the_walk_sees_signatures_fields_properties_and_what_is_imported_for_type_checkers() -> None:
    """Or the tests above would pass for nothing."""
    seen = {(where, each.__name__) for where, each in reachable()}
    assert {
        ("ToolSearch.__init__(encoder)", "Encoder"),
        ("ToolSearch.open(options)", "EngineOptions"),
        ("ToolSearch.explain(return)", "Explanation"),
        ("ToolSearch.index(return)", "ToolIndex"),
        ("EngineOptions.cache", "VectorCache"),
        ("Explanation.words", "WordMatch"),
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
    for row in LISTED:
        value = PUBLIC[row.name]
        is_class = isinstance(value, type)
        methods = functions_of(row.name, value, is_made=row.kind == "make") if is_class else [(row.name, value)]
        for where, function in methods:
            if not inspect.isfunction(function) or row.kind == "pass on":
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

    assert set(modules) <= set(DOORS)
