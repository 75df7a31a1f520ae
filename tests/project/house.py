"""How large the house is: what a stranger would have to hold in the head, counted.

    python -m tests.project.house

Prints a table. Public names, settings and mirrors have a bound, which `test_house.py` holds; the rest is there to be
looked at before and after a change of structure.
"""

# ruff: noqa: T201

from __future__ import annotations

import ast
import asyncio
import collections
import dataclasses
import importlib
import inspect
import logging
import pkgutil
import re
import sys
import threading
import types
import typing
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, TypeAlias

import toolsearch
from toolsearch import Catalog, ToolSearch, ToolSearchError, reference_pages, tool
from toolsearch.gateway.settings import GatewaySettings
from toolsearch.service.settings import ServiceSettings
from toolsearch.setting_sections import settings_in

ROOT: Final = Path(__file__).parents[2]
PRODUCT: Final = (ROOT / "toolsearch", ROOT / "indexes" / "toolsearch_indexes")
DOORS: Final = (
    *("toolsearch", "toolsearch.chat", "toolsearch.client", "toolsearch.errors"),
    *("toolsearch.evaluation", "toolsearch.gateway", "toolsearch.wire"),
)
_ALIKE: Final = 0.75  # share of the fields that one class has of another
_FEWEST: Final = 5  # fields of classes that are compared
_Field: TypeAlias = tuple[str, str]  # its name and its type
_SENTENCE: Final = re.compile(r"\w+(?:\W+\w+){5}")


def main() -> int:
    rows: dict[str, object] = {
        "public names of toolsearch": len(public_names("toolsearch")),
        "public names in all, without errors": len(names_to_know()),
        "settings": count_of_settings(),
        "settings, counted anew for each program": count_of_names_of_settings(),
        "classes of errors": len(error_classes()),
        "files of the product": sum(1 for _ in _sources()),
        "lines in toolsearch/": sum(len(path.read_text("utf-8").splitlines()) for path in PRODUCT[0].rglob("*.py")),
        "classes that mirror another": len(mirrors()),
        "Literals that stand more than once": len(repeated_literals()),
        "files of tests, and those that import internals": "{} / {}".format(*_tests_of_internals()),
        "assertions that hold a sentence of six words": _sentences_in_tests(),
        **{f"files that {name} enters": count for name, count in files_entered().items()},
    }
    for name, value in rows.items():
        print(f"{name:<55} {value:>10}" if isinstance(value, str) else f"{name:<55} {value:>10,}")
    if "-v" in sys.argv:
        print(*mirrors(), *repeated_literals(), sep="\n")
    return 0


def public_names(door: str) -> list[str]:
    """The names that a public module is imported for."""
    if door == "toolsearch.errors":
        return sorted(error.__name__ for error in reference_pages.error_classes())
    return sorted(importlib.import_module(door).__all__)


def names_to_know() -> set[str]:
    """All public names but errors. A user of a framework knows one name of `toolsearch.adapters` beside these."""
    return {name for door in DOORS for name in public_names(door)} - set(public_names("toolsearch.errors"))


def count_of_settings() -> int:
    """The rows of the pages of settings."""
    pages = reference_pages.settings_pages().values()
    return sum(line.startswith("|`") for page in pages for line in page.splitlines())


def count_of_names_of_settings() -> int:
    """The same, where a setting that the gateway and the service share counts twice."""
    return sum(1 for program in (ServiceSettings, GatewaySettings) for _ in settings_in(program))


def error_classes() -> list[str]:
    """The names of all errors of the product, where each is defined."""
    found: set[type[BaseException]] = set()
    waiting: list[type[BaseException]] = [ToolSearchError]
    for module in _modules():
        importlib.import_module(module)
    while waiting:
        error = waiting.pop()
        found.add(error)
        waiting += error.__subclasses__()
    return sorted(
        f"{error.__module__}.{error.__name__}" for error in found if error.__module__.startswith("toolsearch")
    )


def mirrors() -> list[str]:
    """Pairs of classes of which one has most fields of the other, by name and type, and does not inherit them."""
    fields: dict[str, tuple[type, frozenset[_Field]]] = {}
    for name in _modules():
        module = importlib.import_module(name)
        for cls in vars(module).values():
            if inspect.isclass(cls) and cls.__module__ == name:
                own = _fields_of(cls)
                if len(own) >= _FEWEST:
                    fields[f"{name}.{cls.__name__}"] = cls, own
    pairs: list[str] = []
    for (name, (cls, own)), (other, (second, theirs)) in _pairs(sorted(fields.items())):
        if issubclass(cls, second) or issubclass(second, cls):
            continue
        common, bases = own & theirs, set(cls.__mro__) & set(second.__mro__)
        inherited = frozenset().union(*map(_fields_of, bases))
        if len(common - inherited) >= _ALIKE * min(len(own), len(theirs)):
            pairs.append(f"{name} ~ {other}: {', '.join(sorted(name for name, _ in common))}")
    return pairs


def repeated_literals() -> list[str]:
    """Literals of three or more values that are written in more than one place."""
    places: dict[tuple[str, ...], list[str]] = collections.defaultdict(list)
    for path in _sources():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not (
                isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "Literal"
            ):
                continue
            values = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            texts = tuple(sorted(str(each.value) for each in values if isinstance(each, ast.Constant)))
            if len(texts) > 2:
                places[texts].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return [f"{', '.join(texts)}: {' '.join(found)}" for texts, found in sorted(places.items()) if len(found) > 1]


def files_entered() -> dict[str, int]:
    """Into how many files of the product each operation goes, the second time that it is done."""
    counter = _Entered()
    counts: dict[str, int] = {}

    @tool
    def now(zone: str) -> str:
        """Tell the time in a time zone."""
        return zone

    engine = ToolSearch(Catalog([now]))
    session = engine.session("s")
    operations: dict[str, Callable[[], object]] = {
        "engine.search": lambda: engine.search("time in a zone"),
        "session.search": lambda: session.search("time in a zone"),
        "session.call": lambda: asyncio.run(session.call("now", {"zone": "Oslo"})),
    }
    for name, operation in operations.items():
        operation()
        with counter.counting():
            operation()
        counts[name] = len(counter.files)
    return counts | asyncio.run(_served(counter))


async def _served(counter: _Entered) -> dict[str, int]:
    """The same of a gateway and of the service, without sockets."""
    from tests.kit import fake_servers

    counts: dict[str, int] = {}

    async def count(name: str, operation: Callable[[], Coroutine[Any, Any, object]]) -> None:
        await operation()
        with counter.counting():
            await operation()
        counts[name] = len(counter.files)

    async with fake_servers.gateway_of("a") as (gateway, servers):
        await servers["a"].lists("dig", "sow")
        await count("gateway search", lambda: fake_servers.search(gateway, fake_servers.MODERN, "dig"))
        await count("gateway call", lambda: fake_servers.call(gateway, "a__dig", {}))
    return counts


class _Entered:
    """The files whose functions are called, in any thread that began after this was made."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self._counts = False
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    @contextmanager
    def counting(self) -> Iterator[None]:
        self.files.clear()
        sys.setprofile(self._note)
        self._counts = True
        try:
            yield
        finally:
            self._counts = False

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if self._counts and event == "call":
            self._add(frame.f_code)

    def _add(self, code: CodeType) -> None:
        if any(code.co_filename.startswith(f"{package}/") for package in PRODUCT):
            self.files.add(code.co_filename)


def _fields_of(cls: type) -> frozenset[_Field]:
    if dataclasses.is_dataclass(cls):
        hints = _hints_of(cls)
        return frozenset((field.name, _plain(hints.get(field.name, field.type))) for field in dataclasses.fields(cls))
    fields: dict[str, Any] = getattr(cls, "model_fields", {})
    return frozenset((name, _plain(field.annotation)) for name, field in fields.items())


def _hints_of(cls: type) -> dict[str, Any]:
    """Nothing for a class whose types cannot be read while programs run."""
    try:
        return typing.get_type_hints(cls)
    except (NameError, TypeError):
        return {}


def _plain(annotation: Any) -> str:
    """The type as text, in which any sequence is a list, and any mapping a dict."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is None:
        return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    if origin is typing.Annotated:
        return _plain(inner[0])
    if origin is typing.Literal:
        return str(sorted(map(str, inner)))
    if origin in (typing.Union, types.UnionType):
        return " | ".join(sorted(map(_plain, inner)))
    if isinstance(origin, type) and origin is not type:
        kind = "dict" if issubclass(origin, Mapping) else "list" if issubclass(origin, Sequence) else origin.__name__
        return f"{kind}[{', '.join(_plain(each) for each in inner if each is not ...)}]"
    return str(annotation)


def _pairs(items: list[Any]) -> Iterator[tuple[Any, Any]]:
    return ((one, other) for place, one in enumerate(items) for other in items[place + 1 :])


def _sources() -> Iterator[Path]:
    return (path for package in PRODUCT for path in sorted(package.rglob("*.py")))


def _modules() -> Iterator[str]:
    """All modules that can be imported here; adapters may lack their framework."""
    packages: Iterable[Any] = (toolsearch, importlib.import_module("toolsearch_indexes"))
    for package in packages:
        for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".adapters." not in each.name and not each.name.endswith("__main__"):
                yield each.name


def _tests_of_internals() -> tuple[int, int]:
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    ours = re.compile(r"^(?:from|import) ((?:toolsearch\.|toolsearch_indexes)[\w.]*)", re.MULTILINE)
    return len(files), sum(1 for path in files if not set(ours.findall(path.read_text("utf-8"))).issubset(DOORS))


def _sentences_in_tests() -> int:
    found = 0
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Assert):
                texts = [each.value for each in ast.walk(node.test) if isinstance(each, ast.Constant)]
                found += any(isinstance(text, str) and _SENTENCE.search(text) is not None for text in texts)
    return found


if __name__ == "__main__":
    logging.disable()
    sys.exit(main())
