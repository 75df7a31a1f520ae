"""Spans of the requests that a gateway sends to its servers, and the context of the trace that servers are sent."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError
from opentelemetry.trace import SpanKind

from tests.gateway.test_audit import ANN, audited
from tests.kit.fake_servers import Nobody, call
from tests.kit.telemetry_recorder import Recorder
from toolsearch.errors import ServerUnavailableError
from toolsearch.upstreams.interface import UpstreamRequest

TRACE = "0af7651916cd43dd8448eb211c80319c"
THEIRS = f"00-{TRACE}-b7ad6b7169203331-01"


class Sent:
    """What a server is sent; it answers with *error*, or with nothing in particular."""

    def __init__(self, server: Any, error: Exception | None = None) -> None:
        self.params: list[Any] = []
        self._error = error
        server.request = self._request

    async def _request(self, request: UpstreamRequest) -> dict[str, Any]:
        request.admit()
        self.params.append(request.params)
        if self._error is not None:
            raise self._error
        return {"content": []}


async def test_a_request_to_a_server_is_a_span_below_that_of_the_call_and_the_server_is_sent_its_context(
    tmp_path: Path,
) -> None:
    recorder = Recorder()
    async with audited(tmp_path, is_on=False, telemetry=recorder.telemetry) as (gateway, server):
        sent = Sent(server)
        await call(gateway, "callToolDestructive", {"name": "git__log", "arguments": {}}, ANN)

    span, call_span = recorder.span("tools/call git"), recorder.span("execute_tool git__log")
    assert dict(span.attributes) == {
        "mcp.method.name": "tools/call",
        "toolsearch.server": "git",
        "toolsearch.era": "legacy",
    }
    assert (span.kind, span.parent.span_id) == (SpanKind.CLIENT, call_span.context.span_id)
    trace, parent = f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}"
    assert sent.params[0]["_meta"]["traceparent"].startswith(f"00-{trace}-{parent}-")
    labels = {"mcp.method.name": "tools/call", "toolsearch.server": "git"}
    assert [labels for labels, _ in recorder.points("mcp.client.operation.duration")] == [labels]


@pytest.mark.parametrize(
    ("error", "code"),
    [(MCPError(-32603, "secret"), "MCPError"), (ServerUnavailableError("secret"), "server_unavailable")],
)
async def test_a_failure_is_named_by_its_code_alone(tmp_path: Path, error: Exception, code: str) -> None:
    recorder = Recorder()
    async with audited(tmp_path, is_on=False, telemetry=recorder.telemetry) as (gateway, server):
        Sent(server, error)
        with suppress(MCPError):
            await call(gateway, "git__log", {}, ANN)

    span = recorder.span("tools/call git")
    assert (span.attributes["error.type"], span.events) == (code, ())


async def test_without_telemetry_the_context_that_the_client_sends_goes_on_to_the_server(tmp_path: Path) -> None:
    async with audited(tmp_path, is_on=False) as (gateway, server):
        sent = Sent(server)
        params = {"name": "git__log", "arguments": {}, "_meta": {"traceparent": THEIRS}}
        await gateway.call(ANN, params, Nobody())  # type: ignore[arg-type]
        await call(gateway, "git__log", {}, ANN)

    assert [each.get("_meta") for each in sent.params] == [{"traceparent": THEIRS}, None]
