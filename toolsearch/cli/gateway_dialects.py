"""What clients write in words of their own in the entry of a server, said in those of the common ``mcpServers``."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolsearch.cli.gateway_clients import KnownClient
from toolsearch.documents.json_values import is_list, is_object
from toolsearch.tools.json_types import Json, JsonObject

VARIABLE: Final = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-[^{}]*)?\}")
_BARE_VARIABLE: Final = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")  # Gemini takes these beside ${NAME}
_WORD: Final = re.compile(r"\$\{([^{}]*)\}")
_INPUT: Final = "input:"
_MEANT: Final = ("type", "command", "args", "env", "cwd", "url", "httpUrl", "headers", "disabled", "mode")
_LIMITS: Final = ("includeTools", "excludeTools", "enabled_tools", "disabled_tools", "disabledTools")
_CANNOT_MOVE: Final = {
    "envFile": "it takes variables from a file, which the gateway does not; put them into 'env'",
    "auth": "it logs in by settings of its own, which the gateway does not know",
    "oauth": "it logs in by settings of its own, which the gateway does not know",
    "authProviderType": "it logs in by settings of its own, which the gateway does not know",
    "headersHelper": "a program of the client makes its headers, which the gateway does not run",
}


class StaysError(Exception):
    """A server cannot be said in the common words; the text is the reason to report."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the words in a client's entries stand for.

    inputs  the variable that stands for each input that the client's file declares, by the input's id
    """

    home: Path
    folder: Path | None
    inputs: Mapping[str, str]


def in_common_words(client: KnownClient, entry: JsonObject, around: Surroundings) -> JsonObject:
    """The same server in the format of ``mcpServers``. Raises StaysError where that would be another one."""
    for key, reason in _CANNOT_MOVE.items():
        if entry.get(key):
            raise StaysError(f"{reason} ({key!r})")
    for key in _LIMITS:
        if entry.get(key):
            raise StaysError(
                f"{key!r} limits its tools, which the gateway would not; say it in 'rules' of the gateway's file first"
            )
    if client.dialect == "codex":
        return _from_codex(entry)
    meant: dict[str, Json] = {key: entry[key] for key in _MEANT if key in entry}
    if client.dialect == "gemini":
        meant = _with_texts(meant, lambda text: _BARE_VARIABLE.sub(r"${\1}", text))
    elif client.dialect == "editor":
        meant = _with_texts(meant, lambda text: _WORD.sub(lambda word: _filled(word, around), text))
    return meant if around.folder is None else _run_in(around.folder, meant)


def input_variables(inputs: Json, taken: Collection[str]) -> dict[str, str]:
    """The environment variable for each input of an editor's file: ``github-token`` is ``GITHUB_TOKEN``.

    An input whose variable would be one of *taken*, or that of an input before it, gets none.
    """
    variables: dict[str, str] = {}
    for each in inputs if is_list(inputs) else []:
        if is_object(each) and isinstance(name := each.get("id"), str):
            variable = re.sub(r"[^A-Z0-9]+", "_", name.upper()).strip("_")
            if variable[:1].isalpha() and variable not in taken and variable not in variables.values():
                variables[name] = variable
    return variables


def _filled(word: re.Match[str], around: Surroundings) -> str:
    """What VS Code and Cursor put in the place of a word; other words stay, and are refused by who reads them."""
    name = word[1]
    if name.startswith(_INPUT):
        if variable := around.inputs.get(name.removeprefix(_INPUT)):
            return f"${{{variable}}}"
        raise StaysError(f"{word[0]} is no input of the file that could become a variable of its own")
    values = {"userHome": str(around.home), "pathSeparator": os.sep, "/": os.sep}
    if around.folder is not None:
        values |= {"workspaceFolder": str(around.folder), "workspaceFolderBasename": around.folder.name}
    return values.get(name, word[0])


def _run_in(folder: Path, entry: JsonObject) -> JsonObject:
    """Let a program run where the client runs it: in the folder of the project."""
    if "command" not in entry:
        return entry
    if not folder.is_dir():
        raise StaysError(f"its project {folder} is not there")
    cwd = entry.get("cwd")
    if cwd is not None and not isinstance(cwd, str):
        return entry
    place = cwd if cwd and cwd.startswith("${") else str(folder / (cwd or ""))
    return {**entry, "cwd": place}


def _with_texts(entry: JsonObject, change: Callable[[str], str]) -> dict[str, Json]:
    return {key: _changed(value, change) for key, value in entry.items()}


def _changed(value: Json, change: Callable[[str], str]) -> Json:
    if isinstance(value, str):
        return change(value)
    if is_list(value):
        return [_changed(each, change) for each in value]
    return _with_texts(value, change) if is_object(value) else value


def _from_codex(entry: JsonObject) -> JsonObject:
    meant = {key: entry[key] for key in ("command", "args", "cwd", "url") if key in entry}
    env = {str(name): f"${{{name}}}" for name in _listed(entry.get("env_vars"))} | _mapped(entry.get("env"))
    headers = _mapped(entry.get("http_headers"))
    headers |= {name: f"${{{variable}}}" for name, variable in _mapped(entry.get("env_http_headers")).items()}
    if isinstance(variable := entry.get("bearer_token_env_var"), str):
        headers["Authorization"] = f"Bearer ${{{variable}}}"
    if env:
        meant["env"] = env
    if headers:
        meant["headers"] = headers
    if entry.get("enabled") is False:
        meant["disabled"] = True
    return meant


def _mapped(value: Json) -> dict[str, Json]:
    return dict(value) if is_object(value) else {}


def _listed(value: Json) -> list[Json]:
    return list(value) if is_list(value) else []
