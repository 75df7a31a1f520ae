"""What becomes of the tools of one server or document, by the parts of the product that load, judge and send them."""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, get_args

from benchmarks.environments import NotInstalledError
from benchmarks.wild.installing import command_of, path_of
from benchmarks.wild.lists import Wild, WildDocument, WildServer
from tests.kit.strict.one_tool import problems_of_tool
from toolsearch.catalog.loading import open_source
from toolsearch.catalog.request_packs import shipped_requests
from toolsearch.catalog.source import LoadReport, Source
from toolsearch.catalog.sources.mcp import McpSource
from toolsearch.errors import ToolSearchError
from toolsearch.gateway.trust.scan import Scanner
from toolsearch.gateway.trust.verdicts import tool_entry
from toolsearch.tokens import default_counter, definition_tokens
from toolsearch.tools.definition import Tool, legal_name
from toolsearch.wire.formats import WireFormat, render_definition
from toolsearch.wire.mcp import INPUT_SCHEMA

CONNECT_S: Final = 90.0  # some load a browser's or a cloud's whole library before they answer
_PASSED_ON: Final = ("PATH", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "HTTPS_PROXY", "NO_PROXY")


@dataclass(slots=True)
class Outcome:
    """What became of one server or document.

    tools    that were loaded
    refused  how often each reason was given for one that was not
    cut      names that lack a part of what the server calls the tool
    listed   how many tools each API takes with the schema that the server gave
    sent     and how many as they are sent
    wrong    what an API would refuse as it is sent, and why, by API and tool
    tokens   of all definitions, by o200k_base
    held     definitions that the scan holds for a person to look at
    found    tools that get requests that ship
    seconds  until all tools were listed, without installing
    failed   why there are none; "" where there are
    """

    name: str
    tools: int = 0
    refused: dict[str, int] = field(default_factory=dict[str, int])
    cut: int = 0
    listed: dict[str, int] = field(default_factory=dict[str, int])
    sent: dict[str, int] = field(default_factory=dict[str, int])
    wrong: dict[str, dict[str, list[str]]] = field(default_factory=dict[str, dict[str, list[str]]])
    tokens: int = 0
    held: int = 0
    found: int = 0
    seconds: float = 0.0
    failed: str = ""


def installed_outcome(wild: Wild, place: Path) -> Outcome:
    """Install *wild* in the folder *place* if it is not there, load its tools, and end it again."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            source = open_wild(wild, place, Path(folder))
        except (NotInstalledError, ToolSearchError) as error:
            return Outcome(wild.name, failed=str(error))
        return outcome_of(wild.name, source)


def outcome_of(name: str, source: Source) -> Outcome:
    """Load *source*, say what became of its tools, and close it."""
    outcome = Outcome(name)
    started_s = time.monotonic()
    try:
        report = source.load()
        outcome.seconds = round(time.monotonic() - started_s, 2)
        _tell(report, outcome)
    except ToolSearchError as error:
        outcome.failed = str(error)
    finally:
        source.close()
    return outcome


def open_wild(wild: Wild, place: Path, folder: Path) -> Source:
    """What loads the tools of *wild*, installed in *place* if it is not there; it runs in *folder*.

    Raises NotInstalledError and ToolSearchError.
    """
    if isinstance(wild, WildDocument):
        return open_source(str(path_of(wild, place)))
    command, *arguments = command_of(wild, place)
    entry = {
        "command": command,
        "args": [*arguments, *(_with_folder(each, folder) for each in wild.arguments)],
        "env": _variables(wild, folder),
        "cwd": str(folder),
    }
    return McpSource({"mcpServers": {_server_name(wild): entry}}, environment={}, connect_timeout_s=CONNECT_S)


def _server_name(server: WildServer) -> str:
    """As people call it: the package without its owner, and without the words that say what it is."""
    words = legal_name(server.package.rpartition("/")[2].replace(".", "-")).replace("_", "-").split("-")
    return "-".join(word for word in words if word not in ("mcp", "server", "awslabs")) or legal_name(server.package)


def _variables(server: WildServer, folder: Path) -> dict[str, str]:
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    given = {name: _with_folder(value, folder) for name, value in server.environment.items()}
    return {**passed, "HOME": str(folder), **given}


def _with_folder(text: str, folder: Path) -> str:
    return text.replace("{folder}", str(folder))


def _tell(report: LoadReport, outcome: Outcome) -> None:
    tools = report.tools
    if not tools and report.refused:
        outcome.failed = report.refused[0].reason
        return
    outcome.tools = len(tools)
    outcome.refused = dict(Counter(refusal.reason for refusal in report.refused))
    outcome.cut = sum(map(_is_cut, tools))
    outcome.tokens = sum(definition_tokens(tool.definition, default_counter()) for tool in tools)
    outcome.held = _held(tools)
    outcome.found = sum(bool(shipped_requests().requests_for(tool.definition)) for tool in tools)
    for wire in get_args(WireFormat):
        outcome.listed[wire] = sum(not problems_of_tool(wire, _as_listed(tool, wire)) for tool in tools)
        wrong = {tool.name: problems_of_tool(wire, render_definition(tool.definition, wire)) for tool in tools}
        outcome.wrong[wire] = {name: problems for name, problems in wrong.items() if problems}
        outcome.sent[wire] = len(tools) - len(outcome.wrong[wire])


def _is_cut(tool: Tool) -> bool:
    given = tool.origin.remote_name if tool.origin else tool.definition.local_name
    return not tool.name.endswith(legal_name(given))


def _held(tools: Sequence[Tool]) -> int:
    entries = [tool_entry(tool) for tool in tools if tool.origin is not None]
    if not entries:
        return 0
    return sum(bool(findings) for findings in Scanner().scan(entries[0].server, entries, ()))


def _as_listed(tool: Tool, wire: WireFormat) -> Mapping[str, Any]:
    """What a program sends that hands on what it was given: the definition as it stands, in the API's own fields."""
    told = {"name": tool.name, "description": tool.definition.description}
    schema = dict(tool.definition.input_schema)
    match wire:
        case "anthropic":
            return {**told, "input_schema": schema}
        case "openai":
            return {"type": "function", "function": {**told, "parameters": schema}}
        case "openai-responses":
            return {"type": "function", **told, "parameters": schema, "strict": False}
        case "mcp":
            return {**(tool.origin.raw if tool.origin else told), "name": tool.name, INPUT_SCHEMA: schema}
