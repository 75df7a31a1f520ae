"""Sends a client's request on to a server, and carries what that wants to know of the client in between, whichever of
the protocol's two ways of asking each of them has.

    client  server
    older   older    asked while the request runs: the server's talkback finds the client
    older   of 2026  the result says what is asked: the client is, and the request made again with its answers
    of 2026 of 2026  the result goes through; only the state that the client brings back is sealed
    of 2026 older    the call goes on in a conversation, whose questions are such results
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from itertools import count
from typing import Any, TypeAlias

from mcp import MCPError
from mcp.types import INTERNAL_ERROR, LOG_LEVEL_META_KEY, SERVER_INFO_META_KEY

from toolsearch.documents.json_values import is_object
from toolsearch.gateway.caller import Caller, Era
from toolsearch.gateway.proxy.askable import ASKABLE, as_live_request
from toolsearch.gateway.proxy.conversations import Conversations, Pending
from toolsearch.gateway.proxy.links import SeenLinks
from toolsearch.gateway.proxy.log_levels import ServerLevels
from toolsearch.gateway.proxy.sealed_state import Binding, StateSeal
from toolsearch.upstreams.protocol import Downstream, Upstream, UpstreamRequest
from toolsearch.upstreams.secrets import redacted

MOST_ROUNDS = 8
_ROUND_BACKOFF_S = 0.05  # between rounds in which a server asks for nothing but to be called again
Inspect: TypeAlias = Callable[[str, str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
_Request: TypeAlias = Callable[[Mapping[str, Any], Downstream], Coroutine[Any, Any, dict[str, Any]]]
_RESPONSES, _STATE = "inputResponses", "requestState"
_RESERVED_META = "io.modelcontextprotocol/"  # protocol version, capabilities, who the client is: each hop has its own
_MODERN_FIELDS = ("resultType", "ttlMs", "cacheScope")


class Relay:
    """Requests for one server, above all those whose answer may be a question: ``tools/call``, ``prompts/get`` and
    ``resources/read``.
    """

    def __init__(
        self,
        upstreams: Mapping[str, Upstream],
        seal: StateSeal,
        links: SeenLinks,
        *,
        secrets: Mapping[str, Collection[str]] | None = None,
        inspect: Inspect | None = None,
        conversations: Conversations | None = None,
        backoff_s: float = _ROUND_BACKOFF_S,
    ) -> None:
        """*links* remembers those in all results. *secrets* by server; none is in what a server's refusal says.
        *inspect* is given the server, the method and the result, and gives what is passed on.
        """
        self._upstreams = upstreams
        self._seal = seal
        self._links = links
        self._secrets = secrets or {}
        self._inspect = inspect
        self._conversations = conversations or Conversations()
        self._levels = ServerLevels()
        self._asked = count(1)
        self._backoff_s = backoff_s

    async def send(
        self,
        caller: Caller,
        server: str,
        method: str,
        params: Mapping[str, Any],
        downstream: Downstream,
        admit: Callable[[], object],
    ) -> dict[str, Any]:
        """Return the raw result, fit for the caller's era. *params* have the server's own names in them; *admit* is as
        of `UpstreamRequest`, and asked before each round.

        Raises as *admit*, as `Upstream.request` does, and MCPError for a state that is not the caller's, or too old.
        """
        upstream = self._upstreams[server]
        if downstream.log_level is not None and not upstream.is_modern:
            await self._levels.ask_for(upstream, downstream.log_level)
        binding = Binding(caller.principal.id, server, method, str(params.get("name", params.get("uri", ""))))
        result: Mapping[str, Any]
        try:
            result = await self._sent(caller, upstream, binding, params, downstream, admit)
        except MCPError as error:
            raise _without_secrets(error, self._secrets.get(server, ())) from error
        self._links.note(caller.principal.id, server, result)
        if self._inspect is not None:
            result = await self._inspect(server, method, result)
        return for_era(result, caller.era)

    async def aclose(self) -> None:
        """Cancel what still waits for a client's answer."""
        await self._conversations.aclose()

    async def _sent(
        self,
        caller: Caller,
        upstream: Upstream,
        binding: Binding,
        params: Mapping[str, Any],
        downstream: Downstream,
        admit: Callable[[], object],
    ) -> dict[str, Any]:
        asked = {key: value for key, value in params.items() if key not in (_RESPONSES, _STATE, "_meta")}
        if meta := _meta(caller, upstream, params, downstream):
            asked["_meta"] = meta

        def request(sent: Mapping[str, Any], client: Downstream) -> Coroutine[Any, Any, dict[str, Any]]:
            return upstream.request(UpstreamRequest(binding.method, sent, downstream=client, admit=admit))

        if caller.era is Era.LEGACY:
            return await self._with_answers(request, asked, downstream)
        return await self._with_states(upstream, request, binding, params, asked, downstream)

    async def _with_answers(
        self, request: _Request, asked: Mapping[str, Any], downstream: Downstream
    ) -> dict[str, Any]:
        """For an older client: ask it whatever the server wants to know, until there is a result."""
        sent = asked
        for tries in range(MOST_ROUNDS + 1):
            result = await request(sent, downstream)
            if result.get("resultType") != "input_required":
                return result
            wanted = result.get("inputRequests")
            answers = {
                key: await downstream.ask(
                    str(each.get("method")), as_live_request(each.get("params") or {}, next(self._asked))
                )
                for key, each in (wanted.items() if is_object(wanted) else ())
                if is_object(each)
            }
            if not answers:
                await asyncio.sleep(self._backoff_s * 2**tries)
            state = {_STATE: result[_STATE]} if _STATE in result else {}
            sent = {**asked, _RESPONSES: answers, **state}
        raise MCPError(INTERNAL_ERROR, f"the server asked for input more than {MOST_ROUNDS} times, and was given up")

    async def _with_states(
        self,
        upstream: Upstream,
        request: _Request,
        binding: Binding,
        params: Mapping[str, Any],
        asked: dict[str, Any],
        downstream: Downstream,
    ) -> dict[str, Any]:
        """For a client of 2026: hand it what the server wants to know, with a state that only it can bring back."""
        responses = params.get(_RESPONSES)
        sealed = params.get(_STATE)
        state = self._seal.unseal(binding, sealed) if isinstance(sealed, str) else {}
        if "conversation" in state:
            answers: Mapping[str, Any] = responses if is_object(responses) else {}
            outcome = await self._conversations.go_on(
                binding, state["conversation"], state["round"], answers, downstream
            )
        else:
            if is_object(responses):
                asked[_RESPONSES] = responses
            if "server" in state:
                asked[_STATE] = state["server"]
            can_be_asked = not upstream.is_modern and any(name in downstream.capabilities for name in ASKABLE)
            if can_be_asked:
                outcome = await self._conversations.begin(binding, lambda client: request(asked, client), downstream)
            else:
                outcome = await request(asked, downstream)
        if isinstance(outcome, Pending):
            state = {"conversation": outcome.id, "round": outcome.round}
            return {
                "resultType": "input_required",
                "inputRequests": outcome.requests,
                _STATE: self._seal.seal(binding, state),
            }
        if outcome.get("resultType") == "input_required" and _STATE in outcome:
            return {**outcome, _STATE: self._seal.seal(binding, {"server": outcome[_STATE]})}
        return outcome


def for_era(result: Mapping[str, Any], era: Era) -> dict[str, Any]:
    """The result without what no version of that era has; nobody but the caller may be given it from a cache."""
    if era is Era.MODERN:
        return {**result, "cacheScope": "private"} if "cacheScope" in result else dict(result)
    kept = {key: value for key, value in result.items() if key not in _MODERN_FIELDS}
    if not is_object(kept.get("structuredContent", {})):
        del kept["structuredContent"]  # which had to be an object; the content says the same
    meta = kept.get("_meta")
    if is_object(meta) and SERVER_INFO_META_KEY in meta:
        kept["_meta"] = {key: value for key, value in meta.items() if key != SERVER_INFO_META_KEY}
        if not kept["_meta"]:
            del kept["_meta"]
    return kept


def _meta(caller: Caller, upstream: Upstream, params: Mapping[str, Any], downstream: Downstream) -> dict[str, Any]:
    """The client's word to the server, such as ``traceparent``, without what is about the hop that it came over."""
    given = params.get("_meta")
    own: Mapping[str, Any] = given if is_object(given) else {}
    meta = {key: each for key, each in own.items() if key != "progressToken" and not key.startswith(_RESERVED_META)}
    if downstream.log_level is not None and (caller.era is Era.MODERN or upstream.is_modern):
        meta[LOG_LEVEL_META_KEY] = downstream.log_level
    return meta


def _without_secrets(error: MCPError, secrets: Collection[str]) -> MCPError:
    """The same refusal, with a server's own credentials, should it repeat them, made illegible."""
    if not secrets:
        return error
    data = error.data
    if data is not None:
        hidden = [json.dumps(secret)[1:-1] for secret in secrets]
        data = json.loads(redacted(json.dumps(data), hidden))
    return MCPError(error.code, redacted(error.message, secrets), data)
