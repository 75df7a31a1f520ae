"""``toolsearch call``: run one tool in the same way as a model's call.

Arguments are one JSON object, or ``key=value`` pairs that the tool's schema reads. An operation of an OpenAPI document
is sent with credentials out of the environment.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlsplit

import typer

from toolsearch.cli.command_line import ExitCode
from toolsearch.cli.opening import opened_engine
from toolsearch.cli.options import IndexOption, JsonOption, SettingsOption, SourceOption, tool_names
from toolsearch.cli.options import arguments as completed_arguments
from toolsearch.cli.output import print_error, print_json, print_text
from toolsearch.documents.json_values import as_list, as_object, name_of_step
from toolsearch.errors import BadArgumentsError, BadSettingError, SourceError, ToolExecutionError
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.upstreams.secrets import redacted

if TYPE_CHECKING:
    from toolsearch.catalog.sources.openapi_requests import Credentials, HttpRequest, SentRequest
    from toolsearch.session import Session
    from toolsearch.tools.calls import ToolResult

_ANYTHING: Final = ("null", "boolean", "integer", "number", "string", "array", "object")

_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "null": (type(None),), "boolean": (bool,), "integer": (int,), "number": (int, float), "array": (list,),
    "object": (dict,),
}  # fmt: skip

_MOST_REFERENCES: Final = 20  # the longest chain of references that is followed


def read_arguments(given: Sequence[str], definition: ToolDefinition) -> str | dict[str, Any]:
    """Return the text of a JSON object from the command line, ``@FILE`` or stdin (``-``), or the values of pairs.

    Raises BadArgumentsError for any other form, for an unknown key, and for a value of a wrong type.
    """
    if len(given) <= 1 and _is_json("".join(given)):
        return _json_text("".join(given))
    pairs: dict[str, list[str]] = {}
    for each in given:
        key, equals, value = each.partition("=")
        if not equals or not key:
            raise BadArgumentsError(
                f"{each!r:.80} is no argument: write key=value, or one JSON object, @FILE with one, or - for stdin"
            )
        pairs.setdefault(key, []).append(value)
    return {key: _value(key, values, definition) for key, values in pairs.items()}


def _is_json(text: str) -> bool:
    return text in ("", "-") or text.lstrip().startswith(("{", "[", "@", '"'))


def _json_text(text: str) -> str:
    if text == "-":
        return sys.stdin.read()
    if not text.startswith("@"):
        return text or "{}"
    try:
        return Path(text[1:]).read_text(encoding="utf-8")
    except OSError as error:
        raise BadArgumentsError(f"{text[1:]!r} with the arguments cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadArgumentsError(f"{text[1:]!r} with the arguments is not UTF-8") from error


def _value(key: str, values: Sequence[str], definition: ToolDefinition) -> Json:
    schema = _schema_of(key, definition)
    types = _types(schema, definition.input_schema)
    if len(values) == 1:
        return _read(key, values[0], types)
    if "array" not in types:
        raise BadArgumentsError(f"{key} is given {len(values)} times, and is no list: it takes {_in_words(types)}")
    items = _types(as_object(schema.get("items")) or {}, definition.input_schema)
    return [_read(key, value, items) for value in values]


def _schema_of(key: str, definition: ToolDefinition) -> JsonObject:
    from toolsearch.tools.naming import did_you_mean

    schema = definition.input_schema
    properties = as_object(schema.get("properties")) or {}
    if key in properties:
        return as_object(properties[key]) or {}
    more = schema.get("additionalProperties", not properties)
    if more is False or (more is True and "additionalProperties" not in schema and properties):
        takes = f"it takes {', '.join(properties)}" if properties else "it takes none"
        raise BadArgumentsError(
            f"{definition.name} has no parameter {key!r:.80}{did_you_mean(key, properties)}; {takes}"
        )
    return as_object(more) or {}


def _types(schema: JsonObject, root: JsonObject, references: int = _MOST_REFERENCES) -> tuple[str, ...]:
    """The JSON types that *schema* allows, as far as a command line needs them; all types if the schema names none."""
    reference = schema.get("$ref")
    if isinstance(reference, str) and references:
        return _types(_followed(reference, root), root, references - 1)
    said = schema.get("type")
    if isinstance(said, str):
        return (said,)
    if (several := as_list(said)) is not None:
        return tuple(str(each) for each in several)
    for keyword in ("anyOf", "oneOf"):
        if (branches := as_list(schema.get(keyword))) is not None and references:
            found = [_types(as_object(each) or {}, root, references - 1) for each in branches]
            return tuple(dict.fromkeys(name for names in found for name in names))
    values = as_list(schema.get("enum")) or ([schema["const"]] if "const" in schema else [])
    if values and all(isinstance(value, str) for value in values):
        return ("string",)
    return _ANYTHING


def _followed(reference: str, root: JsonObject) -> JsonObject:
    place: Json = root
    for part in reference.removeprefix("#/").split("/"):
        place = (as_object(place) or {}).get(name_of_step(part))
    return as_object(place) or {}


def _read(key: str, text: str, types: Sequence[str]) -> Json:
    """A value of the first type that fits. Text stays text if the tool allows no other type that it could have."""
    try:
        parsed: Json = json.loads(text)
    except (ValueError, RecursionError):
        pass
    else:
        for name in types:
            if _is(parsed, name):
                return parsed
    if "string" in types:
        return text
    raise BadArgumentsError(f"{key}: {text!r:.80} is not {_in_words(types)}")


def _is(value: Json, name: str) -> bool:
    is_number_for_flag = isinstance(value, bool) and name in ("integer", "number")
    return isinstance(value, _KINDS.get(name, ())) and not is_number_for_flag


def _in_words(types: Sequence[str]) -> str:
    words = {"boolean": "true or false", "array": "a JSON list", "object": "a JSON object", "integer": "an integer"}
    return " or ".join(words.get(name, name if name == "null" else f"a {name}") for name in types)


TIMEOUT_S: Final = 60.0
_MOST_BYTES: Final = 20_000_000
_MOST_SHOWN: Final = 2_000  # characters of an error that are shown
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REDIRECTS: Final = range(300, 400)
_CUT_OFF: Final = "the API's answer broke off; the call may have had its effect"


@dataclass(frozen=True, slots=True)
class HttpCalls:
    """The address, headers and credentials for calls of operations.

    base_url  "" means the address in the document
    headers   headers of every request
    keys      credentials, by the name of the document's security scheme
    """

    base_url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    keys: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    @property
    def is_given(self) -> bool:
        return bool(self.base_url or self.headers or self.keys)


def from_environment(given: Sequence[str], option: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Read each ``NAME=VARIABLE``. BadSettingError shows no value, since a value might be the secret itself."""
    read: dict[str, str] = {}
    for each in given:
        name, _, variable = each.partition("=")
        if not name or not _VARIABLE.fullmatch(variable):
            raise BadSettingError(
                f"{option} needs NAME=VARIABLE, where an environment variable holds the value: other users of this "
                "machine can read a command line"
            )
        if variable not in environment:
            raise BadSettingError(f"{option}: the environment has no variable {variable}")
        if not environment[variable].isprintable():  # http.client would show the value in its error
            raise BadSettingError(f"{option}: the value of {variable} has a line break or a control character")
        read[name] = environment[variable]
    return read


def http_tool(tool: Tool, calls: HttpCalls) -> Tool:
    """*tool* with a callback that sends its request, if it is an operation of a document.

    Raises SourceError if the document cannot be read or is not an OpenAPI document, and BadSettingError if no address
    is known.
    """
    from toolsearch.catalog.loading import is_openapi
    from toolsearch.catalog.sources.openapi import OpenApiSource
    from toolsearch.catalog.sources.openapi_requests import Credentials
    from toolsearch.documents.reading import read_document

    place = tool.source.rpartition("#")[0]
    document = read_document(Path(place)) if Path(place).suffix else None
    if not is_openapi(document):
        raise BadSettingError(
            f"--base-url, --header and --key are for operations of OpenAPI documents, not {tool.name}"
        )
    fields = as_object(document) or {}
    schemes = as_object((as_object(fields.get("components")) or {}).get("securitySchemes")) or {}
    if unknown := sorted(set(calls.keys) - set(schemes)):
        known = ", ".join(schemes) or "none"
        raise BadSettingError(f"--key: {place} has no security scheme {', '.join(unknown)}; it has: {known}")

    credentials = Credentials(schemes, calls.keys, calls.headers)

    async def send(request: HttpRequest) -> object:
        return await asyncio.to_thread(_send, _sent(request, credentials, calls.base_url), credentials.secrets)

    source = OpenApiSource(fields, server=tool.definition.server, caller=send, description=place)
    for each in source.load().tools:
        if each.name == tool.name:
            return each
    raise SourceError(f"{place} has no operation {tool.name!r} any more; index it again")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect could take the credentials elsewhere."""

    def redirect_request(self, *_arguments: Any, **_options: Any) -> None:
        return None


def _send(request: SentRequest, hidden: Collection[str]) -> Json:
    made = urllib.request.Request(  # noqa: S310  only http or https, as checked before
        request.url, request.content, dict(request.headers), method=request.method
    )
    opener = urllib.request.build_opener(_NoRedirects)
    try:
        with opener.open(made, timeout=TIMEOUT_S) as answer:
            content = answer.read(_MOST_BYTES + 1)
            if answer.length and len(content) <= _MOST_BYTES:  # the server promised more bytes than it sent
                raise ToolExecutionError(_CUT_OFF)
            return _read_answer(content, answer.headers.get_content_type())
    except urllib.error.HTTPError as error:
        with error:
            text = error.read(_MOST_BYTES).decode("utf-8", "replace")
            if error.code in _REDIRECTS:
                raise ToolExecutionError(
                    f"the API answers {error.code}, a redirect, and redirects are not followed"
                ) from None
            said = redacted(f"{error.reason}: {text}", hidden)
            raise ToolExecutionError(f"the API answers {error.code} {said[:_MOST_SHOWN]}") from None
    except TimeoutError:
        raise ToolExecutionError(
            f"the API did not answer within {TIMEOUT_S:g} s; the call may have had its effect"
        ) from None
    except urllib.error.URLError as error:
        raise ToolExecutionError(f"the API cannot be reached: {error.reason}") from None
    except (OSError, http.client.HTTPException):
        raise ToolExecutionError(_CUT_OFF) from None


def _sent(request: HttpRequest, credentials: Credentials, base_url: str) -> SentRequest:
    from toolsearch.catalog.sources.openapi_requests import sent_request

    there = replace(request, base_url=base_url or request.base_url)
    parts = urlsplit(there.base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ToolExecutionError(
            f"the document says no address to send this to ({there.base_url!r}); give one by --base-url"
        )
    return sent_request(there, credentials, hint="; give it by --key")


def _read_answer(content: bytes, media_type: str) -> Json:
    if len(content) > _MOST_BYTES:
        raise ToolExecutionError(f"the API's answer has more than {_MOST_BYTES:,} bytes; ask for less")
    text = content.decode("utf-8", "replace")
    if media_type == "application/json" or media_type.endswith("+json"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def call(
    name: Annotated[str, typer.Argument(help="The name of the tool, or of the skill.", autocompletion=tool_names)],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]... | JSON",
            help="The arguments, each read as its parameter's type; a list by repeating its KEY, or as JSON. Or "
            "a JSON object, @FILE with one, or - to read it from stdin.",
            autocompletion=completed_arguments,
        ),
    ] = None,
    *,
    base_url: Annotated[
        str, typer.Option(metavar="URL", help="Where an operation of an OpenAPI document is sent, and that it may be.")
    ] = "",
    header: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VARIABLE", help="A header of that request; its value is in the environment. Repeatable."
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCHEME=VARIABLE",
            help="A key, token or user:password for a security scheme of the document, likewise. Repeatable.",
        ),
    ] = None,
    index: IndexOption = None,
    source: SourceOption = None,
    settings: SettingsOption = None,
    as_json: JsonOption = False,
) -> int:
    """Call a tool, or read a skill, and print the result. Starts no MCP server but the tool's own.

    Sends an operation of an OpenAPI document only with --base-url, --header or --key. The tool's own output goes to
    stderr. Exit code 1 if the tool fails, 2 if the arguments do not fit.
    """
    from toolsearch.access.reach import Reach

    http = HttpCalls(
        base_url,
        from_environment(header or (), "--header", os.environ),
        from_environment(key or (), "--key", os.environ),
    )
    with opened_engine(index, source, settings, index__strategy="keyword") as engine:
        view = engine.view(Reach())
        tool = view.get_entry(name)
        read = read_arguments(arguments or (), tool.definition)
        with redirect_stdout(sys.stderr):
            session = _session_over(http_tool(tool, http)) if http.is_given else engine.session("command line")
            result = asyncio.run(_call(session, name, read))
    if as_json:
        print_json(_as_json(result))
    elif result.is_error:
        print_error(result.error_code or "tool_failed", result.text, as_json=False)
    else:
        from toolsearch.tools.results import in_words

        print_text("\n".join(map(in_words, result.content)))
    if result.is_error:
        return ExitCode.USAGE if result.error_code == BadArgumentsError.code else ExitCode.NOTHING
    return ExitCode.OK


def _session_over(tool: Tool) -> Session:
    from toolsearch.catalog.catalog import Catalog
    from toolsearch.settings import IndexSettings, Settings
    from toolsearch.wiring import build_engine

    settings = Settings(index=IndexSettings(strategy="keyword"))
    return build_engine(settings, Catalog([tool])).session("command line")


async def _call(session: Session, name: str, arguments: str | Mapping[str, Any]) -> ToolResult:
    asyncio.get_running_loop().set_default_executor(_UnawaitedThreads())
    return await session.call(name, arguments)


class _UnawaitedThreads(ThreadPoolExecutor):
    """Threads for `asyncio.to_thread` in async tools. Ctrl-C does not wait for them."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002
        super().shutdown(wait=False, cancel_futures=True)


def _as_json(result: ToolResult) -> dict[str, object]:
    return {
        "name": result.name,
        "is_error": result.is_error,
        "error_code": result.error_code,
        "content": [dict(block) for block in result.content],
        "structured": result.structured,
    }
