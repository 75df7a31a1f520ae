"""The first answers to a client over stdio, while the gateway is still being loaded.

The greeting is kept from the last run of the same configuration. A first run uses the names of the servers in the file
instead. Nothing heavy may be imported here.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sqlite3
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from toolsearch.documents.json_values import as_list, as_object, is_object, object_in
from toolsearch.storage.decisions import APPROVALS_FILE, decisions_version
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.upstreams.sections import SERVERS, gateway_section, variables_in
from toolsearch.wire.mcp import opening
from toolsearch.wire.mcp.lists import PROMPTS, RESOURCES, TEMPLATES, TOOLS
from toolsearch.wire.relayed import subscription_of

BESIDE_TOOLS = (PROMPTS, RESOURCES, TEMPLATES)
_MOST_BYTES = 1_000_000  # longest greeting that is kept
_FOLDER = "greetings"  # subfolder of the state folder
_CHANGES_THE_LIST = frozenset({"search", "exposure"})  # settings that change the list but are not read here


def own_version() -> str:
    """The version, read from the name of the installed folder, because `importlib.metadata` takes 7 MB."""
    for folder in sys.path:
        with suppress(OSError):
            for name in sorted(os.listdir(folder)):  # noqa: PTH208  a path for each name would take as long as all else
                if name.startswith("toolsearch-") and name.endswith(".dist-info"):
                    return name.removeprefix("toolsearch-").removesuffix(".dist-info")
    return "0"  # the package is not installed, but the protocol requires a version


@dataclass(frozen=True, slots=True)
class Greeting:
    """*instructions* are those of the gateway and of the admitted servers. *lists* maps methods to lists that a client
    need not wait for. The list of tools is only kept if it holds the gateway's own tools alone, because these do not
    change.
    """

    instructions: str
    lists: Mapping[str, Sequence[JsonObject]]

    @property
    def tools(self) -> Sequence[JsonObject]:
        """The gateway's own tools; empty if the client has to wait for their list."""
        return self.lists.get(TOOLS.method, ())


class GreetingFile:
    """The greeting of the configuration at *config*, which is kept below *state_folder*.

    A kept greeting is valid for the same configuration with the same values of its variables, until somebody decides
    about an approval. It is not used if its validity is unknown.
    """

    def __init__(self, config: Path, state_folder: Path, environment: Mapping[str, str] = os.environ) -> None:
        self._config = config
        self._environment = environment
        self._state_folder = state_folder
        digest = hashlib.sha256(str(config.absolute()).encode()).hexdigest()[:32]
        self._path = state_folder / _FOLDER / f"{digest}.json"

    def read(self) -> Greeting:
        """The kept greeting, or else one that names the servers of the configuration."""
        return self._kept() or _first(self._document())

    def keep(self, greeting: Greeting, approvals: int, config: bytes) -> None:
        """Keep *greeting* for the next start. It is based on the decisions of version *approvals*, and on *config* as
        content of the configuration.

        Raises OSError.
        """
        kept = {
            "key": _key(config, self._environment),
            "approvals": approvals,
            "instructions": greeting.instructions,
            "lists": greeting.lists,
        }
        content = json.dumps(kept, ensure_ascii=False).encode()
        if len(content) > _MOST_BYTES:
            self._path.unlink(missing_ok=True)
        elif not self._path.is_file() or self._path.read_bytes() != content:
            from toolsearch.storage.files import write_private

            write_private(self._path, content)

    def _kept(self) -> Greeting | None:
        try:
            kept = as_object(json.loads(self._path.read_bytes())) or {}
            is_current = (
                kept.get("key") == _key(self._config.read_bytes(), self._environment)
                and kept.get("approvals") == self._approvals()
            )
        except (OSError, ValueError, sqlite3.Error):
            return None
        instructions, lists = kept.get("instructions"), as_object(kept.get("lists"))
        if not is_current or not isinstance(instructions, str) or lists is None:
            return None
        return Greeting(
            instructions, {method: [*filter(is_object, as_list(each) or [])] for method, each in lists.items()}
        )

    def _approvals(self) -> int:
        path = self._state_folder / APPROVALS_FILE
        return decisions_version(path) if path.is_file() else 0

    def _document(self) -> JsonObject:
        try:
            document: Json = json.loads(self._config.read_bytes().decode("utf-8-sig"))
        except (OSError, ValueError):
            return {}
        return document if is_object(document) else {}


def _key(config: bytes, environment: Mapping[str, str]) -> str:
    """A digest of all that changes the lists. Raises ValueError for a *config* that is no JSON."""
    named = sorted({*variables_in(json.loads(config.decode("utf-8-sig")))} & environment.keys())
    what = [own_version(), config.hex(), {name: environment[name] for name in named}]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()


def _first(document: JsonObject) -> Greeting:
    """The greeting of a first run. If there are rules it names no server, since rules may hide some.

    The other lists of servers are announced once they are known; until then they are empty.
    """
    servers = as_object(document.get(SERVERS[0])) or as_object(document.get(SERVERS[1])) or {}
    section = gateway_section(document)
    names = [name for name, entry in servers.items() if is_object(entry) and entry.get("disabled") is not True]
    from toolsearch.gateway.exposure.own_tools import OwnTools

    own = OwnTools.over(dict.fromkeys(names if section is not None and "rules" not in section else (), ()))
    if not servers or section is None or not _CHANGES_THE_LIST.isdisjoint(section):
        return Greeting(own.instructions, {})
    return Greeting(own.instructions, {TOOLS.method: own.entries, **{each.method: () for each in BESIDE_TOOLS}})


logger = logging.getLogger(__name__)


class Greeter:
    """Answers a client in the gateway's place. The gateway gets the requests as well. If its answer differs, the client
    is told that a list has changed.

    *send* sends a message to the client.
    """

    def __init__(self, file: GreetingFile, send: Callable[[JsonObject], None]) -> None:
        self.file = file
        self.greeting = file.read()
        self._send = send
        self._server = opening.ServerInfo("toolsearch", own_version())
        self._said: dict[str, JsonObject] = {}  # answers given here, until the gateway gives the same ones
        self._acknowledged: list[dict[str, Any]] = []  # subscriptions of a 2026 client that were acknowledged here
        self._is_shaken = False  # whether the client opened with a handshake, as clients did before 2026
        self._is_known = False  # True once a request that shows the client's protocol goes to the gateway

    @classmethod
    def of(cls, config: Path, send: Callable[[JsonObject], None]) -> Self:
        """The greeter of the gateway with the configuration at *config*."""
        return cls(GreetingFile(config, state_folder(config)), send)

    @property
    def is_done(self) -> bool:
        """Whether no answer of the gateway is left that was given here before."""
        return not self._said

    def is_for_gateway(self, line: bytes, *, is_early: bool) -> bool:
        """Answer the request in *line* if possible, and return whether to pass it to the gateway.

        is_early  the gateway is still being loaded
        """
        if self._is_known and not is_early:
            return True
        request, said = object_in(line), self.greeting
        method = str(request.get("method", ""))
        if method == opening.DISCOVER and not self._is_shaken:
            self._reply(request, opening.discovered(request, self._server, said.instructions))
            return False
        if method == opening.PING and is_early:
            self._reply(request, {"result": {}})
            return False
        if method == opening.INITIALIZE and not self._is_known:
            self._is_shaken = True
            self._reply_first(request, opening.initialized(request, self._server, said.instructions))
        elif is_early and method in said.lists and not opening.params_of(request).get("cursor"):
            entries = said.lists[method]
            self._reply_first(request, opening.listed(request, opening.LISTS[method], entries, self._server))
        elif is_early and method == opening.LISTEN and (heard := opening.acknowledgement(request)) is not None:
            self._said[_key_of(opening.ACKNOWLEDGED, request.get("id"))] = {}
            self._acknowledged.append(heard)
            self._send({"jsonrpc": "2.0", "method": opening.ACKNOWLEDGED, "params": heard})
        self._is_known = self._is_known or "id" in request
        return True

    def has_answered(self, request: JsonObject) -> bool:
        return _key_of("", request.get("id")) in self._said

    def unsaid(self, line: bytes) -> list[JsonObject] | None:
        """The messages that *line* still needs if it was answered before: notifications that a list has changed since.
        None if *line* was not answered before.
        """
        message = object_in(line)
        method = message.get("method", "")
        said = self._said.pop(_key_of(method, subscription_of(message) if method else message.get("id")), None)
        if said is None:
            return None
        if "error" in message:
            logger.warning("the first answer to the client was wrong: %s", message["error"])
            return []
        return opening.changes_between(said, message.get("result"), None if self._is_shaken else self._acknowledged)

    def _reply_first(self, request: JsonObject, result: JsonObject) -> None:
        """Answer in the gateway's place. The gateway gets the request as well, and its own answer is dropped."""
        self._said[_key_of("", request.get("id"))] = result
        self._reply(request, {"result": result})

    def _reply(self, request: JsonObject, answer: JsonObject) -> None:
        self._send({"jsonrpc": "2.0", "id": request.get("id"), **answer})


def state_folder(config: Path) -> Path:
    """The state folder of `GatewaySettings`. If the setting is unusable, the gateway does not start anyway."""
    with suppress(OSError, ValueError):
        section = gateway_section(json.loads(config.read_bytes())) or {}
        given = section.get("stateDir", section.get("state_dir"))
        if isinstance(given, str):
            return Path(given)
    import platformdirs

    return platformdirs.user_state_path("toolsearch", appauthor=False) / "gateway"


def _key_of(method: Json, id_: Json) -> str:
    return json.dumps([method, id_])
