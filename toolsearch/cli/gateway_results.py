"""``toolsearch gateway results``: shows the results that wait for an operator, releases and discards them."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, TypeAlias
from urllib.parse import urlsplit

import typer

from toolsearch.cli.command_line import ExitCode
from toolsearch.cli.gateway_daemon import asked, processes_of
from toolsearch.cli.options import ConfigOption, JsonOption
from toolsearch.cli.output import line, print_json, print_text, stderr, stdout, table
from toolsearch.documents.json_values import as_list, is_object
from toolsearch.environment import GATEWAY_TOKEN
from toolsearch.errors import BadSettingError, ServerUnavailableError, UnknownRecordError
from toolsearch.tools.json_types import JsonObject

_TIMEOUT_S = 10.0
_COLUMNS = ("id", "principal", "server", "called", "found", "characters")
# Sends an action with the id of a result, or asks for all results if there is none, and gives the answer.
_Gateway: TypeAlias = Callable[[JsonObject], JsonObject]

UrlOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help=f"A gateway over HTTP; ${GATEWAY_TOKEN} is an operator's token, if the gateway asks for one.",
    ),
]


def results(
    result: Annotated[str | None, typer.Argument(metavar="[ID]", help="The id of a held result.")] = None,
    *,
    release: Annotated[bool, typer.Option("--release", help="Let the caller have the result.")] = False,
    discard: Annotated[bool, typer.Option("--discard", help="Delete the result.")] = False,
    config: ConfigOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> int:
    """List the results that the gateway holds back, or show, release or discard one of them.

    Asks the background processes of the configuration, or the gateway at URL. The caller of a released result gets it
    when it makes the same call again. Exit code 1 if no result waits.
    """
    if release and discard:
        raise BadSettingError("give either --release or --discard, not both")
    if (release or discard) and result is None:
        raise BadSettingError("name the result by its ID")
    gateways = _gateways(config, url)
    held = [
        (gateway, each) for gateway in gateways for each in as_list(gateway({}).get("held")) or () if is_object(each)
    ]
    if result is None:
        return _list([each for _, each in held], as_json=as_json)
    gateway = next((gateway for gateway, each in held if each.get("id") == result), None)
    if gateway is None:
        raise UnknownRecordError("held result", result)
    action = "release" if release else "discard" if discard else "show"
    told = gateway({"id": result, "action": action})
    if action == "show":
        print_text(str(told.get("text", "")))
    else:
        stderr().print(line(f"Result {result} is {'released' if release else 'discarded'}."))
    return ExitCode.OK


def operators_answer(url: str, page: str, body: JsonObject | None = None) -> Any:
    """The answer of the gateway at *url* to a request for *page*, with *body* if there is one."""
    import httpx2

    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise BadSettingError(f"--url needs an address such as http://127.0.0.1:8080, not {url!r}")
    token = os.environ.get(GATEWAY_TOKEN)
    headers = {"authorization": f"Bearer {token}"} if token else {}
    address = f"{parts.scheme}://{parts.netloc}{parts.path.removesuffix('/').removesuffix('/mcp')}/{page}"
    method = "GET" if body is None else "POST"
    try:
        answer = httpx2.request(method, address, json=body, headers=headers, timeout=_TIMEOUT_S)
    except httpx2.HTTPError as error:
        raise ServerUnavailableError(f"{address} does not answer: {error}") from error
    if answer.status_code in {401, 403}:
        raise ServerUnavailableError(f"{address} is for operators; put a token of one in {GATEWAY_TOKEN}")
    if answer.status_code == HTTPStatus.NOT_FOUND:
        raise ServerUnavailableError(f"{address} is not there; a gateway without principals has no such page")
    try:
        told = answer.json()
    except ValueError as error:
        raise ServerUnavailableError(f"{address} does not answer as a gateway does") from error
    if answer.is_error:
        raise BadSettingError(str(told.get("message", answer)) if is_object(told) else str(answer))
    return told


def _gateways(config: Path | None, url: str | None) -> list[_Gateway]:
    if url is not None:
        return [lambda action: operators_answer(url, "results.json", action or None)]
    return [partial(_of_process, process) for process in processes_of(config)]


def _of_process(process: dict[str, Any], action: JsonObject) -> JsonObject:
    answer = asked(process, "results", **action)
    if problem := answer.get("problem"):
        raise BadSettingError(str(problem))
    return answer


def _list(held: list[JsonObject], *, as_json: bool) -> int:
    if as_json:
        print_json({"held": held})
    elif held:
        shown = table("", _COLUMNS, numbers=("characters",), flexible="found")
        for each in held:
            found = ", ".join(map(str, as_list(each["found"]) or ()))
            shown.add_row(
                *(line(str(each[name])) for name in ("id", "principal", "server", "name")),
                line(found),
                f"{each['characters']:,}",
            )
        stdout().print(shown)
    else:
        stdout().print("No result waits for an operator.")
    return ExitCode.OK if held else ExitCode.NOTHING
