"""Reads the ``mcpServers`` JSON that MCP clients share: the servers, and how each is reached."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args
from urllib.parse import urlsplit, urlunsplit

from toolsearch.access.claims import CLAIM, claim_of
from toolsearch.documents.json_values import is_list, is_object
from toolsearch.documents.reading import document_in, read_bytes
from toolsearch.documents.references import References
from toolsearch.errors import BadSettingError, CallDeniedError, SourceError
from toolsearch.option_values import name_list
from toolsearch.tools.definition import Refusal, legal_name
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import did_you_mean
from toolsearch.upstreams.secrets import (
    as_secrets,
    certain_secrets,
    keys_in,
    redacted,
    secrets_of_arguments,
    secrets_of_headers,
    secrets_of_url,
)
from toolsearch.upstreams.sections import GATEWAY, SERVERS

Mode: TypeAlias = Literal["auto", "legacy"]
HttpKind: TypeAlias = Literal["http", "sse"]
LOOPBACK_PAGE = "http://127.0.0.1/callback"  # where the browser returns after a login, if nobody names another page
_OWN_SECTIONS = (SERVERS[0], GATEWAY)
_HTTP_TYPES = ("http", "streamable-http", "streamable_http", "streamableHttp", "sse")
_STDIO_KEYS = frozenset({"type", "command", "args", "env", "cwd", "disabled", "mode"})
_GEMINI_URL = "httpUrl"  # Gemini's key for streamable HTTP; its "url" means the older transport
_HTTP_KEYS = frozenset({"type", "url", _GEMINI_URL, "headers", "disabled", "mode"})
_PLACEHOLDER = re.compile(r"\$\{([^{}]*)\}")
_LONGEST_CLAIM = 1_024  # characters of a claim in a header


@dataclass(frozen=True, slots=True)
class StdioServer:
    """A server that is a child process. *env* is added to a small safe default environment, not to our whole one.

    credentials      values that may change without making this another server: those of *env* and of our environment
    secrets          values that no message may show, including those in *args* that look like secrets
    certain_secrets  secrets that results may not show either: they are secret by their name or look
    """

    name: str
    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str | None = None
    mode: Mode = "auto"
    credentials: frozenset[str] = field(default=frozenset(), repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    certain_secrets: frozenset[str] = field(default=frozenset(), repr=False)

    transport = "stdio"


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server behind a URL that speaks streamable HTTP, or the older HTTP with server-sent events.

    credentials      values that may change without making this another server
    secrets          values that no message may show, including those in *url* that look like secrets
    certain_secrets  secrets that results may not show either: they are secret by their name or look
    claimed          headers with ``${claim:NAME}`` in them, to be filled in from the token of each caller
    kind_is_given    whether the configuration gives the kind; if not, a server that refuses POST is tried with SSE
    """

    name: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    mode: Mode = "auto"
    credentials: frozenset[str] = field(default=frozenset(), repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    certain_secrets: frozenset[str] = field(default=frozenset(), repr=False)
    kind: HttpKind = "http"
    kind_is_given: bool = False
    claimed: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    @property
    def transport(self) -> HttpKind:
        return self.kind

    @property
    def is_authorized(self) -> bool:
        """Whether the configuration has an Authorization among its headers."""
        return any(name.lower() == "authorization" for name in (*self.headers, *self.claimed))

    def filled_in(self, claims: Mapping[str, Any]) -> Mapping[str, str]:
        """The headers in `claimed`, with the values of *claims* in them.

        Raises CallDeniedError for a claim that is missing, is neither a text nor a whole number, or could not stand in
        a header as it is.
        """
        return {name: CLAIM.sub(lambda found: _claim(claims, found[1]), text) for name, text in self.claimed.items()}


McpServer: TypeAlias = StdioServer | HttpServer


@dataclass(frozen=True, slots=True)
class McpConfig:
    """The content of a configuration, in its own order.

    origin    its file or place, for people
    refused   servers that cannot be used as they are written
    warnings  keys that were not understood and are ignored
    """

    origin: str
    servers: tuple[McpServer, ...]
    refused: tuple[Refusal, ...]
    warnings: tuple[str, ...]


class _UnusableServerError(Exception):
    """An entry cannot be used; the text is the reason to report."""


def read_mcp_config(
    config: str | Path | Mapping[str, Any],
    environment: Mapping[str, str],
    *,
    only: Collection[str] | None = None,
    origin: str = SERVERS[0],
    folder: Path | None = None,
) -> McpConfig:
    """Read *config*, a path or the document itself, and fill in ``${NAME}`` from *environment*.

    *only* keeps the servers of these names. *origin* names a document that has no path. Files and the keyring are read
    for a path, and for a document that has a *folder*; see `References`. Disabled servers are left out.

    Raises SourceError when nothing can be read at all, or *only* names a server that is not there; one bad server is
    refused with its reason.
    """
    if isinstance(config, Mapping):
        document = config
    else:
        origin, document, folder = Path(config).name, mcp_document(Path(config)), Path(config).parent
    section, entries = _server_section(origin, document)
    if only is not None:
        entries = _chosen(origin, entries, name_list(only, "only"))
    warnings = [
        f"{origin}: {key!r} is ignored: it has no meaning here{did_you_mean(key, _OWN_SECTIONS)}"
        for key in document
        if key not in (section, GATEWAY)
    ]
    servers: list[McpServer] = []
    refused: list[Refusal] = []
    prefixes: dict[str, str] = {}
    for name, entry in entries.items():
        if is_object(entry) and entry.get("disabled") is True:
            continue
        try:
            _claim_prefix(name, prefixes)
            server, unknown = _read_server(name, entry, References(environment, folder))
        except _UnusableServerError as reason:
            refused.append(Refusal(name, origin, str(reason)))
            continue
        servers.append(server)
        warnings += [f"{origin}: {key!r} of server {name!r} is ignored: it has no meaning here" for key in unknown]
    return McpConfig(origin, tuple(servers), tuple(refused), tuple(warnings))


def mcp_document(path: Path, content: bytes | None = None) -> JsonObject:
    """The document at *path*, or what it would be with *content*. Raises SourceError if there is none."""
    document = document_in(read_bytes(path) if content is None else content, path)
    if not is_object(document):
        raise SourceError(f"the MCP configuration {path} must be an object with 'mcpServers'")
    return document


def _server_section(origin: str, document: JsonObject) -> tuple[str, dict[str, Json]]:
    for section in SERVERS:
        if section in document:
            entries = document[section]
            if not is_object(entries):
                raise SourceError(f"{section!r} of {origin} must map names to servers")
            return section, dict(entries)
    raise SourceError(f"{origin} has neither 'mcpServers' nor 'servers': it is no MCP configuration")


def _chosen(origin: str, entries: Mapping[str, Json], only: Collection[str]) -> dict[str, Json]:
    if missing := sorted(set(only) - set(entries)):
        known = ", ".join(entries) or "none"
        raise SourceError(f"{origin} has no server {', '.join(missing)}; it has: {known}")
    return {name: entry for name, entry in entries.items() if name in only}


def _claim_prefix(name: str, prefixes: dict[str, str]) -> None:
    """Refuse a server whose tools could not be told apart from another's by their names."""
    prefix = legal_name(name)
    if not prefix:
        raise _UnusableServerError("its name has no letter or digit that a tool name could start with")
    first = prefixes.setdefault(prefix, name)
    if first != name:
        raise _UnusableServerError(f"its tools would be named {prefix}__..., as those of {first!r} are; rename one")


def _read_server(name: str, entry: Json, references: References) -> tuple[McpServer, list[str]]:
    """Return the server and the keys of its entry that mean nothing to us, in their order."""
    if not is_object(entry):
        raise _UnusableServerError("it must be an object with 'command' or 'url'")
    expand = _Expansion(references)
    if _is_http(entry):
        return _read_http(name, entry, expand), [key for key in entry if key not in _HTTP_KEYS]
    return _read_stdio(name, entry, expand), [key for key in entry if key not in _STDIO_KEYS]


def _is_http(fields: JsonObject) -> bool:
    kind = fields.get("type")
    if kind is not None and kind != "stdio" and kind not in _HTTP_TYPES:
        raise _UnusableServerError(f"type is {kind!r}; use 'stdio', 'http' or 'sse'")
    key = _url_key(fields)
    if kind is None and key in fields and "command" in fields:
        raise _UnusableServerError(f"it has both 'command' and {key!r}; keep one, or set 'type'")
    return kind in _HTTP_TYPES or (kind is None and key in fields)


def _url_key(fields: JsonObject) -> str:
    return _GEMINI_URL if _GEMINI_URL in fields else "url"


def _read_stdio(name: str, fields: JsonObject, expand: _Expansion) -> StdioServer:
    command = _text(fields, "command", expand)
    args = fields.get("args", [])
    if not is_list(args) or not all(isinstance(arg, str) for arg in args):
        raise _UnusableServerError("'args' must be a list of strings")
    env = _texts(fields, "env", expand)
    args = tuple(expand(arg) for arg in args)
    credentials = as_secrets(env.values(), expand.used)
    words = [*command.split(), *args]
    certain = as_secrets(certain_secrets(words, env))
    return StdioServer(
        name,
        command,
        args=args,
        env=env,
        cwd=_text(fields, "cwd", expand) if fields.get("cwd") is not None else None,
        mode=_mode(fields),
        credentials=credentials,
        secrets=credentials | certain | as_secrets(secrets_of_arguments(words)),
        certain_secrets=certain,
    )


def _read_http(name: str, fields: JsonObject, expand: _Expansion) -> HttpServer:
    key = _url_key(fields)
    url = _text(fields, key, expand)
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise _UnusableServerError(f"{key!r} is not an address") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise _UnusableServerError(f"{key!r} must start with http:// or https:// and name a host")
    headers = _texts(fields, "headers", expand.but_claims)
    claimed = {name: value for name, value in headers.items() if CLAIM.search(value)}
    credentials = as_secrets(secrets_of_headers(headers), secrets_of_url(url), expand.used)
    certain = as_secrets(certain_secrets([url], headers))
    return HttpServer(
        name,
        url,
        headers={name: value for name, value in headers.items() if name not in claimed},
        mode=_mode(fields),
        credentials=credentials,
        secrets=credentials | certain | as_secrets(keys_in(parts.path)),
        certain_secrets=certain,
        kind="sse" if fields.get("type") == "sse" else "http",
        kind_is_given="type" in fields or key == _GEMINI_URL,
        claimed=claimed,
    )


def _text(fields: JsonObject, key: str, expand: Callable[[str], str]) -> str:
    value = fields.get(key)
    if not isinstance(value, str) or not value:
        raise _UnusableServerError(f"{key!r} must be a string that is not empty")
    return expand(value)


def _texts(fields: JsonObject, key: str, expand: Callable[[str], str]) -> dict[str, str]:
    values = fields.get(key)
    if values is None:
        return {}
    if not is_object(values):
        raise _UnusableServerError(f"{key!r} must map names to strings")
    texts: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise _UnusableServerError(f"{key!r} must map names to strings, and {name!r} is not one")
        texts[name] = expand(str(value))
    return texts


def _mode(fields: JsonObject) -> Mode:
    mode = fields.get("mode", "auto")
    if mode not in get_args(Mode):
        raise _UnusableServerError(f"mode is {mode!r}; use 'auto' or 'legacy'")
    return cast("Mode", mode)


class _Expansion:
    """Fills in what texts refer to, in one pass.

    Values are not expanded again: a ``$`` in a password stays a ``$``. *used* collects the values taken.
    """

    def __init__(self, references: References) -> None:
        self._references = references

    @property
    def used(self) -> Collection[str]:
        return self._references.used

    def __call__(self, text: str) -> str:
        return _PLACEHOLDER.sub(self._fill, text)

    def but_claims(self, text: str) -> str:
        """The same for a header, in which ``${claim:NAME}`` is left as it is."""
        return _PLACEHOLDER.sub(lambda found: found[0] if claim_of(found[0]) else self._fill(found), text)

    def _fill(self, placeholder: re.Match[str]) -> str:
        try:
            return self._references.value(placeholder[1])
        except BadSettingError as error:
            raise _UnusableServerError(str(error)) from error


def _claim(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    if value is None:
        raise CallDeniedError(f"a header takes the claim {name!r}, and the caller's token has no such claim")
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not text or text.strip() != text or len(text) > _LONGEST_CLAIM:
        raise CallDeniedError(
            f"the claim {name!r} of the caller's token is no whole number or short text, as a header needs"
        )
    if not (text.isascii() and text.isprintable()):
        raise CallDeniedError(f"the claim {name!r} of the caller's token has characters that a header cannot hold")
    return text


_HASH_DIGITS = 16


def server_identity(server: McpServer) -> str:
    """``<name>@<hash>``, where the hash is over the command and its arguments, or the URL, without any secret.

    If a name points elsewhere, it is another server, and nothing of it is approved. Changing only the credentials keeps
    the identity.
    """
    where = json.dumps([redacted(part, server.credentials) for part in _where(server)])
    return f"{server.name}@{hashlib.sha256(where.encode('utf-8', 'surrogatepass')).hexdigest()[:_HASH_DIGITS]}"


def identity_hash(server: McpServer) -> str:
    """SHA-256 (hex) of a server's identity, for file names."""
    return hashlib.sha256(server_identity(server).encode("utf-8", "surrogatepass")).hexdigest()


def _where(server: McpServer) -> list[str]:
    if isinstance(server, StdioServer):
        return ["stdio", server.command, *server.args, server.cwd or ""]
    parts = urlsplit(server.url)
    host = parts.netloc.rpartition("@")[2]
    return [server.transport, urlunsplit(parts._replace(netloc=host))]
