"""Translates clients' own keys in the entries of servers into the common ``mcpServers``."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolsearch.cli.gateway_clients import ClientDialect, ClientPlace
from toolsearch.documents.json_values import as_list, is_list, is_object
from toolsearch.tools.json_types import Json, JsonObject

VARIABLE: Final = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-[^{}]*)?\}")
OPENCODE_VARIABLE: Final = re.compile(r"\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_BARE_VARIABLE: Final = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")  # beside ${NAME}, in settings of Gemini CLI
_WHOLE_VARIABLE: Final = re.compile(r"\$\{(?:env:)?[A-Za-z_][A-Za-z0-9_]*\}")
_WORD: Final = re.compile(r"\$\{([^{}]*)\}")
_NAME_OF_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]*")
_INPUT: Final = "input:"
_NOT_ONE_TOOL: Final = re.compile(r"[*?!,\s()\[\]{}]")  # not the name of one tool: a pattern, or several names

_MEANT: Final = ("type", "command", "args", "env", "cwd", "url", "httpUrl", "headers", "disabled", "mode")
_LOGIN_KEYS: Final = ("oauth", "auth", "authProviderType", "scopes")
_READ: Final = (*_MEANT, *_LOGIN_KEYS, "enabled")
# Lists of the only tools to use.
_ALLOWED_TOOLS_KEYS: Final = ("includeTools", "enabled_tools", "enabledTools", "tools")
_FORBIDDEN_TOOLS_KEYS: Final = ("excludeTools", "disabled_tools", "disabledTools")  # lists of tools not to use
_TRUST_KEYS: Final = ("trust", "autoApprove", "alwaysAllow")  # keys that let all tools, or some, run without a question

_OWN_LOGIN: Final = "it logs in by a setting that the gateway does not have"
_SANDBOX: Final = "the client runs it in a sandbox, and the gateway would not"
_ELSEWHERE: Final = "the client runs it in another environment, and the gateway cannot"
_CANNOT_MOVE: Final = {
    "envFile": "it takes variables from a file, and the gateway does not; put them into 'env'",
    "headersHelper": "a program of the client makes its headers, and the gateway does not run it",
    "http_headers_helper": "a program of the client makes its headers, and the gateway does not run it",
    "sandbox": _SANDBOX,
    "sandboxEnabled": _SANDBOX,
    "environment_id": _ELSEWHERE,
    "experimental_environment": _ELSEWHERE,
    "filterMapping": "the client filters its tools' results, and the gateway does not",
    "toolPermissions": "the client keeps approvals of its tools, and the gateway does not know them",
    "orgMaxPermission": "the client keeps approvals of its tools, and the gateway does not know them",
    "remoteConfigured": "an organization manages it, and would put it back",
    **dict.fromkeys(("oauthClient", "oauthClientId", "oauthScopes", "oauth_resource", "oidc"), _OWN_LOGIN),
}

_OAUTH: Final = {  # clients' words for how they log in -> those of the gateway
    "clientId": "clientId",
    "client_id": "clientId",
    "CLIENT_ID": "clientId",
    "clientSecret": "clientSecret",
    "CLIENT_SECRET": "clientSecret",
    "issuer": "issuer",
    "redirectUri": "redirectUri",
    "callback_url": "redirectUri",
    "scope": "scopes",
    "scopes": "scopes",
}
_DISCOVERY: Final = "dynamic_discovery"  # Gemini CLI's word for what the gateway does, too
_CALLBACK_PORT: Final = "callbackPort"
_REDIRECTS: Final[Mapping[ClientDialect, tuple[str, int | None]]] = {  # the addresses and ports that clients register
    "claude": ("http://localhost{}/callback", None),
    "gemini": ("http://localhost{}/oauth/callback", None),
    "opencode": ("http://127.0.0.1{}/mcp/oauth/callback", 19_876),
    "qwen": ("http://localhost{}/oauth/callback", 7_777),
}
_REDIRECT_OF_CURSOR: Final = "http://localhost:8787/callback"
_REDIRECT_OF_VSCODE: Final = "http://127.0.0.1:33418/"

_S: Final = 1
_MS: Final = 1_000
_CONNECT: Final = ("connectTimeoutS",)
_CALL: Final = ("callTimeoutS",)
_BOTH: Final = (*_CONNECT, *_CALL)
_TIMEOUTS: Final[Mapping[ClientDialect, Mapping[str, tuple[int, tuple[str, ...]]]]] = {
    # Client -> key -> (units in a second, settings of the gateway). If two keys give one setting, the later one wins.
    "claude": {"timeout": (_MS, _CALL)},
    "cline": {"timeout": (_S, _BOTH)},
    "codex": {
        "startup_timeout_ms": (_MS, _CONNECT),
        "startup_timeout_sec": (_S, _CONNECT),
        "tool_timeout_sec": (_S, _CALL),
    },
    "copilot": {"timeout": (_MS, _BOTH)},
    "gemini": {"timeout": (_MS, _BOTH)},
    "opencode": {"timeout": (_MS, _BOTH)},
    "qwen": {"timeout": (_MS, _CALL), "discoveryTimeoutMs": (_MS, _CONNECT)},
}

_OWN_KEYS: Final[Mapping[ClientDialect, tuple[str, ...]]] = {  # keys that the code below reads
    "cline": ("transport", "transportType"),
    "codex": ("bearer_token_env_var", "default_tools_approval_mode", "env_http_headers", "env_vars", "http_headers"),
    "opencode": ("environment",),
}


class StaysError(Exception):
    """A server cannot be written in the common form. The text is the reason to report."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The values of the placeholders in a client's entries.

    inputs  id of each input that the client's file declares -> its variable
    """

    home: Path
    folder: Path | None
    inputs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class EntryMeaning:
    """The content of a client's entry of a server.

    entry      the server in the format of ``mcpServers``
    settings   its settings for the gateway's file, under ``toolsearch.servers``
    forbidden  its tools that may not be used, by the server's own names
    trusted    the keys that let its tools run without a question
    lost       the keys that have no meaning for the gateway
    """

    entry: JsonObject
    settings: JsonObject
    forbidden: tuple[str, ...]
    trusted: tuple[str, ...]
    lost: tuple[str, ...]


def meaning_of(client: ClientPlace, entry: JsonObject, around: Surroundings) -> EntryMeaning:
    """Read *entry*. Raises StaysError where the gateway would treat the server in another way."""
    given: JsonObject = {key: value for key, value in entry.items() if value is not None}
    if client.dialect == "cline":
        given = _from_cline(given)
    for key, reason in _CANNOT_MOVE.items():
        if given.get(key):
            raise StaysError(f"{reason} ({key!r})")
    approvals = _codex_approvals(given) if client.dialect == "codex" else []
    for key in _ALLOWED_TOOLS_KEYS:
        if key in given and not (key == "tools" and (given[key] == ["*"] or client.dialect == "codex")):
            raise StaysError(
                f"{key!r} limits its tools, and the gateway would not; write 'rules' into the gateway's file first"
            )
    entry, oauth = _in_common_words(client, given, around)
    settings, times = _settings(client.dialect, given)
    known = {
        *_READ,
        *_ALLOWED_TOOLS_KEYS,
        *_FORBIDDEN_TOOLS_KEYS,
        *_TRUST_KEYS,
        *_CANNOT_MOVE,
        *_OWN_KEYS.get(client.dialect, ()),
        *times,
    }
    return EntryMeaning(
        entry,
        settings | ({"oauth": oauth} if oauth else {}),
        tuple(tool for key in _FORBIDDEN_TOOLS_KEYS for tool in _forbidden(key, given.get(key))),
        trusted=tuple([key for key in _TRUST_KEYS if given.get(key)] + approvals),
        lost=tuple(key for key in given if key not in known),
    )


def input_variables(inputs: Json, taken: Collection[str]) -> dict[str, str]:
    """The environment variable for each input of an editor's file: ``github-token`` is ``GITHUB_TOKEN``.

    An input gets no variable if its name is one of *taken*, or that of an earlier input.
    """
    variables: dict[str, str] = {}
    for each in inputs if is_list(inputs) else []:
        if is_object(each) and isinstance(name := each.get("id"), str):
            variable = re.sub(r"[^A-Z0-9]+", "_", name.upper()).strip("_")
            if variable[:1].isalpha() and variable not in taken and variable not in variables.values():
                variables[name] = variable
    return variables


def _settings(dialect: ClientDialect, entry: JsonObject) -> tuple[dict[str, Json], set[str]]:
    """The server's settings for the gateway's file, and the keys from which they were taken.

    A time of less than a second was meant in another unit, since no server could be so fast.
    """
    settings: dict[str, Json] = {"credentials": "none"} if entry.get("oauth") is False else {}
    used: set[str] = set()
    for key, (in_a_second, names) in _TIMEOUTS.get(dialect, {}).items():
        value = entry.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and in_a_second <= value < math.inf:
            seconds = value / in_a_second
            settings |= dict.fromkeys(names, int(seconds) if seconds.is_integer() else seconds)
            used.add(key)
    return settings, used


def _forbidden(key: str, tools: Json) -> list[str]:
    named = [tool for tool in as_list(tools) or () if isinstance(tool, str) and tool and not _NOT_ONE_TOOL.search(tool)]
    if tools and named != tools:
        raise StaysError(f"{key!r} limits its tools by patterns; write the limit into 'rules' of the gateway's file")
    return named


def _codex_approvals(entry: JsonObject) -> list[str]:
    """The keys that ask less than Codex does by itself. Raises StaysError for one that asks more."""
    modes = {"default_tools_approval_mode": entry.get("default_tools_approval_mode")}
    for tool, limits in _mapped(entry.get("tools")).items():
        modes |= {f"tools.{tool}.{key}": value for key, value in _mapped(limits).items()}
    for key, mode in modes.items():
        if mode not in (None, "auto", "approve"):
            raise StaysError(f"{key!r} is {mode!r}: Codex asks or limits where the gateway would not")
    return [key for key, mode in modes.items() if mode == "approve"]


def _in_common_words(
    client: ClientPlace, entry: JsonObject, around: Surroundings
) -> tuple[JsonObject, dict[str, Json]]:
    """The entry as in ``mcpServers``, and how the client logs in, as in the gateway's ``oauth``."""
    if client.dialect == "opencode":
        entry = _from_opencode(entry)
    elif client.dialect == "codex":
        entry = _from_codex(entry)
    meant: dict[str, Json] = {key: entry[key] for key in _MEANT if key in entry}
    meant["oauth"] = _oauth(client.dialect, entry)
    if entry.get("enabled") is False:
        meant["disabled"] = True
    if client.dialect in {"copilot", "gemini", "qwen"}:
        meant = _with_texts(meant, lambda text: _BARE_VARIABLE.sub(r"${\1}", text))
    elif client.dialect == "editor":
        meant = _with_texts(meant, lambda text: _WORD.sub(lambda word: _filled(word, around), text))
    if client.dialect == "copilot":
        meant = _from_copilot(meant)
    oauth = _mapped(meant.pop("oauth"))
    _require_usable(oauth)
    return (meant if around.folder is None else _run_in(around.folder, meant)), oauth


def _oauth(dialect: ClientDialect, entry: JsonObject) -> dict[str, Json]:
    """How the client logs in, in the gateway's words. Raises StaysError for a setting that the gateway lacks."""
    for key in ("oauth", "auth", "authProviderType"):
        if not (is_object(value := entry.get(key)) or value in (None, True, False, _DISCOVERY)):
            raise StaysError(f"{_OWN_LOGIN} ({key!r})")
    given = {"scopes": entry.get("scopes"), **_mapped(entry.get("oauth")), **_mapped(entry.get("auth"))}
    said = {key: value for key, value in given.items() if value not in (None, "", [], False)}
    for key in said:
        if key not in (*_OAUTH, _CALLBACK_PORT, "enabled"):
            raise StaysError(f"{_OWN_LOGIN} ({key!r})")
    oauth = {_OAUTH[key]: value for key, value in said.items() if key in _OAUTH}
    if isinstance(scopes := oauth.get("scopes"), str):
        oauth["scopes"] = [*scopes.split()]
    redirect_uri = _redirect_uri(dialect, is_cursor="auth" in entry, port=said.get(_CALLBACK_PORT))
    return {"redirectUri": redirect_uri, **oauth} if redirect_uri and "clientId" in oauth else oauth


def _redirect_uri(dialect: ClientDialect, *, is_cursor: bool, port: Json) -> str:
    """The address that people register for the client; "" if we do not know it."""
    if dialect == "editor":
        return _REDIRECT_OF_CURSOR if is_cursor else _REDIRECT_OF_VSCODE
    address, usual_port = _REDIRECTS.get(dialect, ("", None))
    chosen = port if isinstance(port, int) else usual_port
    return address.format(f":{chosen}" if chosen else "")


def _require_usable(oauth: JsonObject) -> None:
    """Raise StaysError unless the gateway's file may have *oauth*. No reason has a secret in it."""
    from pydantic import SecretStr, ValidationError

    from toolsearch.upstreams.settings import OAuthClient

    secret = oauth.get("clientSecret")
    if secret is not None and not (isinstance(secret, str) and _WHOLE_VARIABLE.fullmatch(secret)):
        raise StaysError("its client secret is written out; put it into an environment variable and name that there")
    if secret is not None and not oauth.get("issuer"):
        raise StaysError("the gateway sends a client secret only to a named 'issuer'; write it beside the secret there")
    try:
        OAuthClient.model_validate({**oauth, **({"clientSecret": SecretStr("?")} if secret else {})})
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise StaysError(f"{_OWN_LOGIN} ({place or 'oauth'!r})") from None


def _filled(word: re.Match[str], around: Surroundings) -> str:
    """The text that VS Code and Cursor put in place of a placeholder. Unknown ones stay, and are refused by
    the reader.
    """
    name = word[1]
    if name.startswith(_INPUT):
        if variable := around.inputs.get(name.removeprefix(_INPUT)):
            return f"${{{variable}}}"
        raise StaysError(f"{word[0]} is no input of this file, or its variable has another meaning")
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
    _require_no_variables(entry)
    env: dict[str, Json] = {}
    for each in as_list(entry.get("env_vars")) or ():
        if is_object(each) and each.get("source") == "remote":
            raise StaysError(f"{_ELSEWHERE} ('env_vars')")
        name = each.get("name") if is_object(each) else each
        env[str(name)] = f"${{{name}}}"
    env |= _mapped(entry.get("env"))
    headers = _mapped(entry.get("http_headers"))
    headers |= {name: f"${{{variable}}}" for name, variable in _mapped(entry.get("env_http_headers")).items()}
    if isinstance(variable := entry.get("bearer_token_env_var"), str):
        headers["Authorization"] = f"Bearer ${{{variable}}}"
    given = {key: value for key, value in entry.items() if key not in {"env", "headers"}}
    return given | ({"env": env} if env else {}) | ({"headers": headers} if headers else {})


def _from_cline(entry: JsonObject) -> JsonObject:
    """The transport of an entry that Cline's own command wrote stands in an object of its own."""
    flat = {**entry, **_mapped(entry.get("transport"))}
    kind = flat.get("type", flat.get("transportType"))
    return flat if kind is None else {**flat, "type": "streamableHttp" if kind == "http" else kind}


def _from_copilot(entry: JsonObject) -> dict[str, Json]:
    """Read the entry. A value of ``env`` is the name of a variable, or stands for itself if there is no such
    variable.
    """
    env = {
        name: f"${{{value}:-{value}}}" if isinstance(value, str) and _NAME_OF_VARIABLE.fullmatch(value) else value
        for name, value in _mapped(entry.get("env")).items()
    }
    kind = {"type": "stdio"} if entry.get("type") == "local" else {}
    return {**entry, **kind, **({"env": env} if env else {})}


def _from_opencode(entry: JsonObject) -> JsonObject:
    _require_no_variables(entry)
    renamed: dict[str, Json] = {("env" if key == "environment" else key): value for key, value in entry.items()}
    if is_list(command := entry.get("command")):
        renamed |= {"command": command[0] if command else "", "args": command[1:]}
    if renamed.pop("type", None) not in ("local", "remote"):
        raise StaysError("it has no 'type', so it only changes a server of another file")
    meant = _with_texts(renamed, lambda text: OPENCODE_VARIABLE.sub(r"${\1}", text))
    if left := re.search(r"\{(?:env|file):[^{}]*\}", json.dumps(meant, ensure_ascii=False)):
        raise StaysError(f"the gateway cannot fill in {left[0]}; it can fill in environment variables only")
    return meant


def _require_no_variables(entry: JsonObject) -> None:
    """Raise StaysError for a text that the gateway would fill in, and the client does not."""
    if found := VARIABLE.search(json.dumps(entry, ensure_ascii=False)):
        raise StaysError(f"the gateway would fill in {found[0]}, but the client leaves it as it is")


def _mapped(value: Json) -> dict[str, Json]:
    return dict(value) if is_object(value) else {}
