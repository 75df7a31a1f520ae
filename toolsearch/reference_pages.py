"""Pages of the documentation that are made from the code: all error codes and all settings.

python -m toolsearch.reference_pages docs
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from pydantic.alias_generators import to_camel

from toolsearch import errors
from toolsearch.environment import NESTED, PREFIX
from toolsearch.errors import ToolSearchError
from toolsearch.gateway.settings import GatewaySettings
from toolsearch.service.settings import ServiceSettings
from toolsearch.setting_sections import NAMED, Setting, settings_in
from toolsearch.settings import Settings
from toolsearch.upstreams.sections import GATEWAY
from toolsearch_indexes.errors import Case

_ERRORS_INTRODUCTION = """\
# Errors by code

Every error has a `code`, which stays the same in later versions. These pages explain the codes:

- [Errors of tools and calls](errors-tools.md): also of servers and skills
- [Errors of the library](errors-library.md): searches, sources, sessions, models and settings
- [Errors of data and access](errors-data.md): stores, keys and quotas
- [Errors of the service](errors-service.md): requests over HTTP, and the command line

## Read an error

| where | how the code reaches you |
|---|---|
| Python | `error.code` of the raised error; `error.remedy` says what to do |
| a tool that failed | `error_code` of its `ToolResult`; [nothing is raised](calling.md#failures) |
| service | `code` in `application/problem+json` |
| gateway | `toolsearch/error` in `_meta` of a result with `isError` |
| command line | `code`, with `--json` |

Beside each class, these pages give the HTTP status of the service's answer.

## Catch an error

Import the classes from `toolsearch.errors`. To catch every error, catch `ToolSearchError`.
"""

_TOLD_THERE = "See the page [Errors by code](errors.md#read-an-error).\n"
_OF_TOOLS = f"# Errors of tools and calls\n\n{_TOLD_THERE}"
_LIBRARY = f"# Errors of the library\n\n{_TOLD_THERE}"
_OF_DATA = f"# Errors of data and access\n\n{_TOLD_THERE}"

_HTTP = f"""\
# Errors of the service

{_TOLD_THERE}
## Requests over HTTP

For each of these codes, the Python client raises a `ServiceError`.
"""

_COMMAND = """\
## Command line
"""


class Told(NamedTuple):
    """A code that no class of errors has."""

    status: str
    means: str
    remedy: str


OF_HTTP = {
    "bad_cursor": Told(
        "400", "`after` does not come from an earlier page of this list.", "Ask for the first page, without `after`."
    ),
    "bad_request": Told(
        "400, 422",
        "The request cannot be read, or some fields are invalid.",
        "Correct the fields that `detail` and `errors` name.",
    ),
    "body_too_large": Told("413", "The request's body has too many bytes.", "Send several smaller requests."),
    "foreign_page": Told(
        "403",
        "The request comes from a web page of another origin.",
        "Send the request from your server, or allow the page's host in `serve.allowed_hosts`.",
    ),
    "idempotency_in_progress": Told(
        "409",
        "A request with this `Idempotency-Key` is still running.",
        "Repeat the request after the time in `Retry-After`.",
    ),
    "idempotency_mismatch": Told(
        "422", "This `Idempotency-Key` was used for another request.", "Make a new key for each request."
    ),
    "idempotency_unknown": Told(
        "409",
        "A request with this `Idempotency-Key` has begun, but its answer is lost.",
        "Check whether the request took effect. If not, repeat it with a new key.",
    ),
    "internal_error": Told(
        "500",
        "The service has failed.",
        "Search the service's log for the id in the answer's header `x-request-id`, and report the fault.",
    ),
    "method_not_allowed": Told(
        "405",
        "This URL does not support this HTTP method.",
        "Look up the URL's methods in the service's `openapi.json`.",
    ),
    "more_than_own": Told(
        "403", "The new key would have more rights than the key that makes it.", "Ask somebody who has these rights."
    ),
    "last_operator": Told(
        "409",
        "The request would revoke the last operator's key.",
        "Make another operator's key first. If all such keys are lost, `toolsearch keys` makes one.",
    ),
    "no_provider": Told(
        "404",
        "The tenant has no provider for this model API.",
        "Ask an administrator to add one with `POST /v1/providers`.",
    ),
    "operators_only": Told("403", "Only an operator may make this request.", "Ask an operator."),
    "own_tenant": Told(
        "409", "An operator's key cannot delete the tenant that the key belongs to.", "Use a key of another tenant."
    ),
    "precondition_failed": Told(
        "412",
        "The object has changed since you read it.",
        "Read the object again, and repeat the request with the new ETag.",
    ),
    "precondition_required": Told("428", "A write needs the header `If-Match`.", "Send the object's ETag, or `*`."),
    "request_timeout": Told(
        "504", "The request took too long.", "Check whether the request took effect. Then repeat it, or ask for less."
    ),
    "service_unreachable": Told(
        "503", "The client cannot reach the service.", "Check the URL and the network, and repeat the request."
    ),
    "tool_of_source": Told(
        "409",
        "The tool comes from a source. The next import would undo your change.",
        "Change the tool in the source, or rename it in a toolset.",
    ),
    "unknown_answer": Told(
        "502", "The answer does not come from the service.", "Check the URL, and the proxy in front of the service."
    ),
    "unknown_host": Told(
        "421",
        "The request names a host that is not served.",
        "Name the host in `serve.public_url` or `serve.allowed_hosts`.",
    ),
    "unsupported_media_type": Told("415", "`Content-Type` is missing or wrong.", "Send the type that `detail` names."),
    "whole_reach_needed": Told(
        "403",
        "The request concerns all tools, but rules limit the key to some tools.",
        "Use a key whose rules allow all tools.",
    ),
}

OF_THE_COMMAND = {
    "file_error": Told("exit 3", "A file or folder cannot be read or written.", "Check the path and the permissions."),
    "internal": Told("exit 70", "toolsearch itself failed.", "Report the bug, with the printed text."),
    "interrupted": Told("exit 130", "Ctrl-C stopped the command.", "Nothing."),
    "usage": Told("exit 2", "The command or one of its options is invalid.", "Run the command with `--help`."),
}


_ABOUT_TOOLS: Final = (
    *(errors.BadToolError, errors.DuplicateToolError, errors.UnknownToolError, errors.UnapprovedToolError),
    *(errors.ChangedSkillError, errors.UndiscoveredToolError, errors.ServerUnavailableError, errors.BadArgumentsError),
    *(errors.UnfinishedCallError, errors.ToolExecutionError, errors.ToolTimeoutError, errors.ToolStuckError),
    *(errors.ToolNotHereError, errors.CallLimitError, errors.RepeatedCallError, errors.CallDeniedError),
    errors.NotCallableHereError,
)
_ABOUT_DATA: Final = (
    *(errors.StorageError, errors.UnsafeUrlError, errors.NotAuthenticatedError, errors.NotPermittedError),
    *(errors.UnknownRecordError, errors.StillRunningError, errors.TooManyError, errors.ServiceError),
)


def error_pages() -> dict[str, str]:
    """Each page of errors in Markdown, by its name."""
    tree = ["```text", ToolSearchError.__name__, *_branches(ToolSearchError), "```\n"]
    of_tools = [error for error in error_classes() if issubclass(error, _ABOUT_TOOLS)]
    of_data = [error for error in error_classes() if issubclass(error, _ABOUT_DATA)]
    of_library = [error for error in error_classes() if not issubclass(error, _ABOUT_TOOLS + _ABOUT_DATA)]
    return {
        "errors.md": "\n".join([_ERRORS_INTRODUCTION, *tree, _GENERATED]),
        "errors-tools.md": "\n".join([_OF_TOOLS, *_sorted_entries(of_tools)]),
        "errors-library.md": "\n".join([_LIBRARY, *_sorted_entries(of_library)]),
        "errors-data.md": "\n".join([_OF_DATA, *_sorted_entries(of_data)]),
        "errors-service.md": "\n".join([_HTTP, *_plain(OF_HTTP), _COMMAND, *_plain(OF_THE_COMMAND)]),
    }


def error_classes() -> list[type[ToolSearchError]]:
    """All that stand in `toolsearch.errors`."""
    return [each for each in vars(errors).values() if inspect.isclass(each) and issubclass(each, ToolSearchError)]


def _sorted_entries(of: Iterable[type[ToolSearchError]]) -> list[str]:
    """One of the code of each class, and one of each code that its errors may have instead."""
    return sorted(entry for error in of for entry in _entries_of(error))


def _entries_of(error: type[ToolSearchError]) -> Iterator[str]:
    own: tuple[Case, ...] = vars(error).get("cases", ())
    for code, status, means, remedy in (Case(error.code, error.status, _first_paragraph(error), error.remedy), *own):
        yield _entry(code, f"`{error.__name__}`, {status}", means, remedy)


def _branches(error: type[ToolSearchError], indent: str = "    ") -> Iterator[str]:
    """The lines of the tree below *error*."""
    for each in error_classes():
        if error in each.__bases__:
            yield f"{indent}{each.__name__}"
            yield from _branches(each, indent + "    ")


def _first_paragraph(error: type[ToolSearchError]) -> str:
    paragraph = (inspect.getdoc(error) or "").split("\n\n")[0]
    return " ".join(paragraph.replace("``", "`").split())


def _plain(told: dict[str, Told]) -> Iterator[str]:
    for code, (status, means, remedy) in told.items():
        yield _entry(code, status, means, remedy)


def _entry(code: str, origin: str, means: str, remedy: str) -> str:
    return f"### {code}\n\n{means} ({origin})\n\n**Do:** {remedy}\n"


_SETTINGS_INTRODUCTION = """\
# Settings

Other pages list the settings of the [gateway](settings-gateway.md) and of the [service](settings-service.md).

A duration is `30m`, `1h30m`, `500ms`, or a number of seconds. `none` means no limit, or no value. A setting with an
unknown name is an error.

## Library and command line

toolsearch reads settings from environment variables and from a TOML file. A variable overrides the file. In code, call
`Settings.from_environment(os.environ, "toolsearch.toml")`. On the command line, name the file with
`--settings toolsearch.toml`; a command's other options override both. In a `pyproject.toml`, begin each table's name
with `tool`: `[tool.toolsearch.search]`.

```toml
[toolsearch.search]
limit = 8

[toolsearch.limits.per_tool_overrides]
git__log = 3
```

In an environment variable, write a list as `a,b` or as JSON, and a table as JSON. You can also set one entry of a
table: `TOOLSEARCH_LIMITS__PER_TOOL_OVERRIDES__git__log=3`. In code, a setting is a parameter of the same name:
`budget.max_tools` is `Budget(max_tools=...)`.
"""

_GATEWAY = """\
# Settings of the gateway

The gateway reads its settings from the section `toolsearch` of the file with `mcpServers`. It reads none from
environment variables. [Another page](settings-gateway-servers.md) lists the settings of callers and servers. Write a
name as `maxTools` or as `max_tools`. `null` means none.

```json
{
  "mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"]}},
  "toolsearch": {"search": {"limit": 8}, "servers": {"git": {"callTimeoutS": "20s"}}}
}
```
"""

_GATEWAY_SERVERS = """\
# Settings of callers and servers

These settings belong in the same file as the other [settings of the gateway](settings-gateway.md). Replace `<name>`
with the name of a principal, a server or a tool.
"""

_SERVICE = """\
# Settings of the service

`toolsearch serve` reads [the settings of the library](settings.md) and the settings on this page. Name the file with
`--config toolsearch.toml`.

Secrets are not settings: [Storage](storage.md#credentials-and-the-secret-key) explains the variables
`TOOLSEARCH_SECRET_KEY`, `TOOLSEARCH_SECRET_KEY_FILE` and `TOOLSEARCH_STORE`.

```toml
[toolsearch.serve]
public_url = "https://tools.example.com"

[toolsearch.quotas]
tools = 20_000
```
"""

_OF_OTHERS: Final = {"http", "jwt", "principals", "servers"}  # sections of the gateway's settings
_GENERATED = "`just reference` writes these pages from the code.\n"


def settings_pages() -> dict[str, str]:
    """Each page of settings in Markdown, by its name."""
    told: dict[_Told, str] = {}
    pages: dict[str, str] = {}
    for name, introduction, settings, written in (
        ("settings.md", _SETTINGS_INTRODUCTION, settings_in(Settings), _variable),
        ("settings-gateway.md", _GATEWAY, _of_the_gateway(of_others=False), _key),
        ("settings-gateway-servers.md", _GATEWAY_SERVERS, _of_the_gateway(of_others=True), _key),
        ("settings-service.md", _SERVICE, _of_the_service_alone(), _variable),
    ):
        pages[name] = "\n".join([introduction, *_tables(settings, written, told, name)])
    pages["settings.md"] += f"\n{_GENERATED}"
    return pages


def _of_the_gateway(*, of_others: bool) -> Iterator[Setting]:
    """Those of the gateway itself, or those of its callers and servers."""
    return (each for each in settings_in(GatewaySettings) if (each.path[0] in _OF_OTHERS) == of_others)


def _of_the_service_alone() -> Iterator[Setting]:
    return (each for each in settings_in(ServiceSettings) if each.path[0] not in Settings.model_fields)


_Told: TypeAlias = tuple[str, str, str, str]  # the last part of a name, the values, the default and the description


def _tables(
    settings: Iterable[Setting], name: Callable[[Setting], str], told: dict[_Told, str], page: str
) -> Iterator[str]:
    """The sections: the name and the description of each, and a table of the settings that none before it has.

    The others are listed, with the section that has told of them. *told* has them all, each with a link to its section.
    """
    sections: dict[object, list[Setting]] = {}
    for setting in settings:
        sections.setdefault(setting.section, []).append(setting)
    for section, group in sections.items():
        rows = {_as_told(row): row for row in group}
        path = next(iter(rows.values())).path
        title = " ".join(part for part in path[:-1] if part != NAMED).replace("_", " ").capitalize() or "General"
        about = " ".join(str(section.__doc__).partition("\n\n")[0].split()).replace("``", "`")
        yield f"### {title}\n\n{about}\n"
        new = [row for what, row in rows.items() if what not in told]
        yield from _table(new, name)
        known = ((told[what], row) for what, row in rows.items() if what in told)
        for where, shared in groupby(sorted(known, key=itemgetter(0)), key=itemgetter(0)):
            names = ", ".join(f"`{name(row)}`" for _, row in shared)
            yield f"The section {where} describes {names}.\n"
        told.update((_as_told(row), f"[{title}]({page}#{title.lower().replace(' ', '-')})") for row in new)


def _table(rows: Sequence[Setting], name: Callable[[Setting], str]) -> Iterator[str]:
    if rows:
        yield "|setting|values|default|meaning|\n|---|---|---|---|"
        for row in rows:
            yield f"|`{name(row)}`|{row.values}|{_as_code(row.default)}|{row.description}|"
        yield ""


def _as_told(row: Setting) -> _Told:
    return row.path[-1], row.values, row.default, row.description


def _variable(setting: Setting) -> str:
    return PREFIX + setting.name.replace(".", NESTED).upper()


def _key(setting: Setting) -> str:
    return ".".join([GATEWAY, *(part if part == NAMED else to_camel(part) for part in setting.path)])


def _as_code(default: str) -> str:
    return f"`{default}`" if default not in ("", "required") else default or "empty"


def main(folder: str) -> None:
    """Write all pages into *folder*."""
    for name, text in {**error_pages(), **settings_pages()}.items():
        (Path(folder) / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
