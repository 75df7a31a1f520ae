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

Every error has a `code`, which stays the same over versions. Look it up:

- [Errors of tools and calls](errors-tools.md), with servers and skills
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

The message tells what was wrong with this call. The number beside a class is the HTTP status of the service's answer.

## Catch an error

The classes stand in `toolsearch.errors`. `ToolSearchError` catches all of them.
"""

_TOLD_THERE = "See [how a code reaches you](errors.md#read-an-error).\n"
_OF_TOOLS = f"# Errors of tools and calls\n\n{_TOLD_THERE}"
_LIBRARY = f"# Errors of the library\n\n{_TOLD_THERE}"
_OF_DATA = f"# Errors of data and access\n\n{_TOLD_THERE}"

_HTTP = f"""\
# Errors of the service

{_TOLD_THERE}
## Requests over HTTP

No class has these codes. The client raises a `ServiceError` with the code.
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
        "400", "`after` is not from an earlier page of this list.", "Leave it out, and begin with the first page."
    ),
    "bad_request": Told(
        "400, 422",
        "The request cannot be read, or fields do not fit.",
        "Correct the fields that `detail` and `errors` name.",
    ),
    "body_too_large": Told("413", "The body has too many bytes.", "Send several smaller requests."),
    "foreign_page": Told(
        "403",
        "The request comes from a web page of another origin.",
        "Send it from your server, or allow the host in `serve.allowed_hosts`.",
    ),
    "idempotency_in_progress": Told(
        "409", "A request with this `Idempotency-Key` has not ended.", "Wait as `Retry-After` says, and ask again."
    ),
    "idempotency_mismatch": Told(
        "422", "This `Idempotency-Key` was used for another request.", "Make a new key for each request."
    ),
    "idempotency_unknown": Told(
        "409",
        "A request with this `Idempotency-Key` was begun, and nobody knows its answer.",
        "Look whether it had its effect. If not, repeat it with a new key.",
    ),
    "internal_error": Told(
        "500", "The service has failed.", "Find the request in the service's log by `x-request-id`, and report it."
    ),
    "method_not_allowed": Told(
        "405", "This address does not take this method.", "Look up its methods in the service's `openapi.json`."
    ),
    "more_than_own": Told(
        "403", "The new key may do more than the key that makes it.", "Ask somebody whose key may do that."
    ),
    "last_operator": Told(
        "409",
        "This would revoke the last operator's key.",
        "Make another operator's key first. If all are lost, `toolsearch keys` makes one.",
    ),
    "no_provider": Told(
        "404",
        "The tenant has no provider for this model API.",
        "Have an administrator name one by `POST /v1/providers`.",
    ),
    "operators_only": Told("403", "Only an operator may make this request.", "Ask an operator."),
    "own_tenant": Told(
        "409", "An operator's key cannot delete the tenant that the key belongs to.", "Use a key of another tenant."
    ),
    "precondition_failed": Told(
        "412", "The object was changed since you read it.", "Read it again, and repeat with the new ETag."
    ),
    "precondition_required": Told("428", "A write needs `If-Match`.", "Send the object's ETag, or `*`."),
    "request_timeout": Told(
        "504", "The request took too long.", "Look whether it had its effect; then repeat, or ask for less."
    ),
    "service_unreachable": Told(
        "503", "The client cannot reach the service.", "Check the URL and the network, and repeat."
    ),
    "tool_of_source": Told(
        "409",
        "The tool belongs to a source. The next import would write it again.",
        "Change it in the source, or name it anew in a toolset.",
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
        "403", "The request concerns all tools, but the key has rules.", "Use a key whose rules allow all tools."
    ),
}

OF_THE_COMMAND = {
    "file_error": Told("exit 3", "A file or folder cannot be read or written.", "Check its path and its permissions."),
    "internal": Told("exit 70", "toolsearch itself failed.", "Report the fault with the printed text."),
    "interrupted": Told("exit 130", "Ctrl-C.", "Nothing."),
    "usage": Told("exit 2", "The command line cannot be understood.", "Run the command with `--help`."),
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

The [gateway](settings-gateway.md) and the [service](settings-service.md) have pages of their own. The service reads
the settings below, too.

A duration is `30m`, `1h30m`, `500ms`, or a number of seconds. `none` lifts a bound, or leaves something out. An
unknown name is an error.

## Library and command line

Settings come from the environment and from a TOML file. The environment wins. In code, call
`Settings.from_environment(os.environ, "toolsearch.toml")`. On the command line, name the file by
`--settings toolsearch.toml`; other options of a command win over both. In a `pyproject.toml` the tables are called
`[tool.toolsearch.search]` and so on.

```toml
[toolsearch.search]
limit = 8

[toolsearch.limits.per_tool_overrides]
git__log = 3
```

In the environment a list is `a,b` or JSON, and a table is JSON. One entry of a table has a variable of its own:
`TOOLSEARCH_LIMITS__PER_TOOL_OVERRIDES__git__log=3`. In code a setting is an option of the same name:
`budget.max_tools` is `Budget(max_tools=...)`.
"""

_GATEWAY = """\
# Settings of the gateway

Settings of the gateway stand in the section `toolsearch` of the file that holds `mcpServers`. The environment does not
change them. [Callers and servers](settings-gateway-servers.md) have a page of their own. A name may be written in
either way: `maxTools` or `max_tools`. `null` means none.

```json
{
  "mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"]}},
  "toolsearch": {"search": {"limit": 8}, "servers": {"git": {"callTimeoutS": "20s"}}}
}
```

*See* names the section that describes a setting of the same name.
"""

_GATEWAY_SERVERS = """\
# Settings of callers and servers

[Settings of the gateway](settings-gateway.md) says where they stand. `<name>` stands for the name of a principal or of
a server; the server `*` holds for all. *See* names the section that describes a setting of the same name.
"""

_SERVICE = """\
# Settings of the service

`toolsearch serve` reads [the settings of the library](settings.md) and these. Name the file by
`--config toolsearch.toml`. *See* names the section that describes a setting of the same name.

Secrets are no settings: [Storage](storage.md#credentials-and-the-secret-key) explains `TOOLSEARCH_SECRET_KEY`,
`TOOLSEARCH_SECRET_KEY_FILE` and `TOOLSEARCH_STORE`.

```toml
[toolsearch.serve]
public_url = "https://tools.example.com"

[toolsearch.quotas]
tools = 20_000
```
"""

_OF_OTHERS: Final = {"http", "jwt", "principals", "servers"}  # sections of the gateway's settings
_GENERATED = "This page is generated: change the code, then run `just reference`.\n"


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
        pages[name] = "\n".join([introduction, *_tables(settings, written, told, name), _GENERATED])
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
            yield f"See {where} for {names}.\n"
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
