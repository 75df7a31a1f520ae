"""The gateway over HTTP: who gets in, from where, and what they are told who do not."""

import base64
import json
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from typing import Any, cast

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from tests.kit.gateway import raw_server, served
from toolsearch.access.directory import Directory, make_directory
from toolsearch.access.jwt import IssuerKeys, JwtVerifier
from toolsearch.access.settings import JwtSettings
from toolsearch.errors import BadSettingError
from toolsearch.gateway import http as gateway_http
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.http import http_app
from toolsearch.gateway.http_guard import HostPort
from toolsearch.gateway.servers import LogGuard
from toolsearch.tools.definition import Tool, ToolDefinition, ToolOrigin
from toolsearch.upstreams.interface import Listing, UpstreamRequest, UpstreamSinks, UpstreamState, UpstreamStatus

ALICE, BOB = "alice-token-0123456789", "bob-token-abcdefghij"
ENVIRONMENT = {"ALICE": ALICE, "BOB": BOB}
TOKENS = {"alice": {"token": "${ALICE}", "operator": True}, "bob": {"token": "${BOB}"}}
JSON = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
HOST = "127.0.0.1:8080"
MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}


class Fake:
    """A server with one tool, whose argument clients have to repeat as a header."""

    is_modern = False
    state = UpstreamState.READY

    def __init__(self, settings: Any, sinks: UpstreamSinks) -> None:
        self.name = settings.name
        self._sinks = sinks
        self.called: list[Any] = []

    def status(self) -> UpstreamStatus:
        return UpstreamStatus(self.name, "stdio", self.state)

    def start(self) -> None: ...

    async def list(self) -> None:
        region = {"type": "string", "x-mcp-header": "Region"}
        schema = {"type": "object", "properties": {"region": region}, "required": ["region"]}
        raw = {"name": "tax", "description": "Computes a tax.", "inputSchema": schema}
        definition = ToolDefinition("a__tax", server="a", description="Computes a tax.", input_schema=schema)
        await self._sinks.listing(Listing(self.name, (Tool(definition, origin=ToolOrigin("a", "tax", raw)),)))

    def of(self, _: object) -> "Fake":
        return self

    async def request(self, request: UpstreamRequest) -> dict[str, Any]:
        request.admit()
        self.called.append(request.params["arguments"])
        return {"content": []}

    async def aclose(self) -> None: ...


def made(section: dict[str, Any] | None = None, **http: Any) -> Gateway:
    document = {
        "mcpServers": {"a": {"command": "a"}},
        "toolsearch": {**(section or {}), "http": {**(section or {}).get("http", {}), **http}},
    }
    return Gateway(read_gateway_config(document, ENVIRONMENT), upstreams=Fake)


@asynccontextmanager
async def asked(
    gateway: Gateway, host: str = "127.0.0.1", port: int | None = 8080, base: str = f"http://{HOST}"
) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of the application, bound to *host* and *port*, that asks without a token."""
    app = http_app(gateway, host=host, port=port)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=base) as client,
    ):
        await gateway.upstreams["a"].list()
        yield client


def bearer(token: str, **more: str) -> dict[str, str]:
    return {**JSON, "authorization": f"Bearer {token}", **more}


def rpc(method: str, number: int | None = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params} | ({"id": number} if number is not None else {})


INITIALIZE = rpc(
    "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "test", "version": "1"}
)


# --- who is let in ----------------------------------------------------------------------------------------------------


async def test_a_token_lets_in_and_without_one_there_is_a_401_that_says_how():
    async with asked(made({"principals": TOKENS})) as client:
        for headers in (JSON, bearer("x" * 20), bearer(""), {**JSON, "authorization": ALICE}):
            refused = await client.post("/mcp", headers=headers, json=INITIALIZE)
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"].startswith("Bearer ")
        let_in = await client.post("/mcp", headers=bearer(ALICE), json=INITIALIZE)
    assert let_in.status_code == 200


async def test_a_password_is_no_way_to_mcp():
    basic = base64.b64encode(f"x:{ALICE}".encode()).decode()
    async with asked(made({"principals": TOKENS})) as client:
        refused = await client.post("/mcp", headers={**JSON, "authorization": f"Basic {basic}"}, json=INITIALIZE)
    assert refused.status_code == 401


async def test_a_session_is_of_the_principal_that_began_it_and_of_nobody_else():
    async with asked(made({"principals": TOKENS})) as client:
        begun = await client.post("/mcp", headers=bearer(ALICE), json=INITIALIZE)
        session = {"mcp-session-id": begun.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}

        hers = await client.post("/mcp", headers=bearer(ALICE, **session), json=rpc("tools/list"))
        his = await client.post("/mcp", headers=bearer(BOB, **session), json=rpc("tools/list"))
        nobodys = await client.post("/mcp", headers={**JSON, **session}, json=rpc("tools/list"))
        deleted = await client.delete("/mcp", headers=bearer(BOB, **session))
        still = await client.post("/mcp", headers=bearer(ALICE, **session), json=rpc("tools/list"))

    assert [each.status_code for each in (hers, his, nobodys, deleted, still)] == [200, 404, 401, 404, 200]


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("era", ["2025-11-25", MODERN])
async def test_each_principal_is_shown_its_own_tools_in_both_eras(era, monkeypatch):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    config = {
        "mcpServers": {"raw": raw_server()},
        "toolsearch": {"principals": {"alice": TOKENS["alice"], "bob": {**TOKENS["bob"], "deny": ["server:raw"]}}},
    }
    async with served(config) as (_, url), httpx2.AsyncClient() as client:
        found, hidden = [await _found(client, url, token, era, "raw__pid") for token in (ALICE, BOB)]
        absent = await _found(client, url, BOB, era, "raw__none")

    assert "raw__pid" in found
    assert "No tool is named raw__pid" not in found
    assert hidden.replace("raw__pid", "NAME") == absent.replace("raw__none", "NAME")
    assert "raw" not in hidden.replace("raw__pid", "").replace("draw", "")


async def test_what_the_transport_checks_tells_nothing_of_tools_out_of_reach():
    """Which arguments have to be repeated as headers is checked before the call is, and against a tool's schema."""
    principals = {"alice": TOKENS["alice"], "bob": {**TOKENS["bob"], "deny": ["server:a"]}}
    async with asked(made({"principals": principals})) as client:

        async def told(token: str, name: str) -> tuple[int, str]:
            call = rpc("tools/call", name=name, arguments={"region": "x"}, _meta=META)
            more = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": name}
            answer = await client.post("/mcp", headers=bearer(token, **more), json=call)
            return answer.status_code, answer.text.replace(name, "NAME")

        alices = await told(ALICE, "a__tax")
        bobs = [await told(BOB, name) for name in ("a__tax", "a__none")]

    assert alices[0] == 400
    assert "-32020" in alices[1]
    assert bobs[0] == bobs[1]
    assert "Unknown tool" in bobs[0][1]


async def _found(client: httpx2.AsyncClient, url: str, token: str, era: str, name: str) -> str:
    call = {"name": "toolSearchTool", "arguments": {"query": f"select:{name}"}}
    if era == MODERN:
        more = {"mcp-protocol-version": era, "mcp-method": "tools/call", "mcp-name": "toolSearchTool"}
        answer = await client.post(
            url, headers=bearer(token, **more), json=rpc("tools/call", **call, _meta=META), timeout=30
        )
    else:
        begun = await client.post(url, headers=bearer(token), json=INITIALIZE)
        session = {"mcp-session-id": begun.headers["mcp-session-id"], "mcp-protocol-version": era}
        await client.post(url, headers=bearer(token, **session), json=rpc("notifications/initialized", None))
        answer = await client.post(url, headers=bearer(token, **session), json=rpc("tools/call", **call), timeout=30)
    assert answer.status_code == 200
    return answer.text


@pytest.fixture
def issuer(monkeypatch: pytest.MonkeyPatch) -> ec.EllipticCurvePrivateKey:
    """The key of an issuer whose JWTs the application accepts, as the settings say."""
    key = ec.generate_private_key(ec.SECP256R1())
    keys = {"keys": [jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True)]}

    async def fetch(_: str) -> bytes:
        return json.dumps(keys).encode()

    def directory(settings: Any) -> Directory:
        said: JwtSettings = settings.jwt
        verifier = JwtVerifier(said, IssuerKeys(said.issuer, "https://idp.example/keys", fetch=fetch))
        return replace(cast("Directory", make_directory(settings)), verifier=verifier)

    monkeypatch.setattr(gateway_http, "make_directory", directory)
    return key


JWT = {"jwt": {"issuer": "https://idp.example", "audience": "https://tools.example/mcp", "requiredScopes": ["tools"]}}


def jwt_of(issuer: ec.EllipticCurvePrivateKey, **more: Any) -> str:
    claims = {"iss": "https://idp.example", "aud": "https://tools.example/mcp", "sub": "al", "exp": 32_503_680_000}
    return jwt.encode(claims | more, issuer, algorithm="ES256")


async def test_a_subject_that_is_not_listed_is_turned_away_from_every_path(issuer, monkeypatch):
    monkeypatch.setattr(gateway_http, "status_routes", lambda _: [Route("/status", _page)])
    principals = {"al": {"subject": "al", "operator": True}}
    async with asked(made({**JWT, "principals": principals})) as client:
        for subject, expected in (("al", (200, 200)), ("bo", (401, 401))):
            headers = bearer(jwt_of(issuer, sub=subject, scope="tools"))
            begun = await client.post("/mcp", headers=headers, json=INITIALIZE)
            page = await client.get("/status", headers=headers)
            assert (begun.status_code, page.status_code) == expected


async def test_a_call_is_made_with_a_claim_of_the_very_token_that_it_came_with(issuer):
    by_claim = {"servers": {"a": {"tools": {"tax": {"arguments": {"region": "${claim:region}"}}}}}}
    gateway = made({**JWT, **by_claim})
    call = rpc("tools/call", name="a__tax", arguments={}, _meta=META)
    more = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "a__tax"}
    async with asked(gateway) as client:
        for claims in ({"region": "north"}, {"region": "south"}, {"other": "east"}):
            token = jwt_of(issuer, scope="tools", **claims)
            await client.post("/mcp", headers=bearer(token, **more), json=call)
    assert gateway.upstreams["a"].called == [{"region": "north"}, {"region": "south"}]


async def test_the_page_needs_the_scopes_too(issuer, monkeypatch):
    monkeypatch.setattr(gateway_http, "status_routes", lambda _: [Route("/status", _page)])
    async with asked(made({**JWT, "principals": {"al": {"subject": "al", "operator": True}}})) as client:
        narrow = await client.get("/status", headers=bearer(jwt_of(issuer, scope="x")))
    assert narrow.status_code == 403


def challenge_in(header: str) -> dict[str, str]:
    assert header.startswith("Bearer ")
    return dict(re.findall(r'(\w+)="([^"]*)"', header))


async def test_a_jwt_needs_the_scopes_and_who_has_none_is_told_where_to_ask(issuer):
    def token(**more: Any) -> str:
        return jwt_of(issuer, **more)

    async with asked(made(JWT)) as client:
        good = await client.post("/mcp", headers=bearer(token(scope="x tools")), json=INITIALIZE)
        narrow = await client.post("/mcp", headers=bearer(token(scope="x")), json=INITIALIZE)
        for_others = await client.post("/mcp", headers=bearer(token(aud="https://x", scope="tools")), json=INITIALIZE)
        nobody = await client.post("/mcp", headers=JSON, json=INITIALIZE)
        places = [f"/.well-known/oauth-protected-resource{path}" for path in ("/mcp", "")]
        metadata, short = [(await client.get(place)).json() for place in places]

    assert [each.status_code for each in (good, narrow, for_others, nobody)] == [200, 403, 401, 401]
    told = [challenge_in(each.headers["www-authenticate"]) for each in (narrow, for_others, nobody)]
    assert [each.get("error") for each in told] == ["insufficient_scope", "invalid_token", None]
    where = "https://tools.example/.well-known/oauth-protected-resource/mcp"
    assert [(each["scope"], each["resource_metadata"]) for each in told] == [("tools", where)] * 3
    assert short == metadata
    assert metadata == {
        "resource": "https://tools.example/mcp",
        "authorization_servers": ["https://idp.example"],
        "scopes_supported": ["tools"],
        "bearer_methods_supported": ["header"],
    }


# --- where from -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost:8080"}, 200),
        ({"host": "[::1]:8080"}, 200),
        ({"host": "LOCALHOST:8080"}, 200),
        ({"host": "localhost:8081"}, 421),
        ({"host": "localhost"}, 421),
        ({"host": "evil.example:8080"}, 421),
        ({"host": "127.0.0.1:8080.evil.example"}, 421),
        ({"host": "127.0.0.1:8080@evil.example"}, 421),
        ({"host": ""}, 421),
        ({"origin": "http://localhost:8080"}, 200),
        ({"origin": "https://app.example"}, 200),
        ({"origin": "https://app.example.evil.example"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://localhost:3000"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "chrome-extension://x"}, 403),
    ],
)
async def test_only_requests_to_us_and_from_our_pages_are_answered(headers, status):
    async with asked(made(allowedOrigins=["https://app.example"])) as client:
        answer = await client.post("/mcp", headers={**JSON, **headers}, json=INITIALIZE)
    assert answer.status_code == status


async def test_every_path_is_guarded_by_the_host_but_the_one_that_tells_nothing(monkeypatch):
    monkeypatch.setattr(gateway_http, "status_routes", lambda _: [Route("/status", _page)])
    async with asked(made()) as client:
        rebound = {"host": "evil.example"}
        answers = [await client.get(path, headers=rebound) for path in ("/mcp", "/status", "/none", "/healthz")]
    assert [each.status_code for each in answers] == [421, 421, 421, 200]
    assert answers[-1].json() == {"status": "ok"}


async def test_a_page_that_is_allowed_may_read_the_answers():
    preflight = {"origin": "https://app.example", "access-control-request-method": "POST"}
    async with asked(made({"principals": TOKENS}, allowedOrigins=["https://app.example/"])) as client:
        before = await client.options("/mcp", headers=preflight)
        refused = await client.post("/mcp", headers={**JSON, "origin": "https://app.example"}, json=INITIALIZE)
    assert before.status_code == 200
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, "https://app.example")


@pytest.mark.parametrize(
    ("host", "section", "message"),
    [
        ("192.0.2.7", {}, "would serve anybody who can reach it"),
        ("0.0.0.0", {}, "would serve anybody who can reach it"),  # noqa: S104
        ("", {}, "bound to every address"),
        ("0.0.0.0", {"principals": TOKENS}, "toolsearch.http.allowedHosts"),  # noqa: S104
        ("::", {"http": {"allowAnonymous": True}}, "toolsearch.http.allowedHosts"),
        ("127.0.0.1", {"http": {"allowedHosts": ["http://x/"]}}, "not of the form HOST or HOST:PORT"),
    ],
)
def test_nothing_is_bound_that_would_be_open_by_mistake(host, section, message):
    with pytest.raises(BadSettingError, match=message):
        http_app(made(section), host=host, port=8080)


@pytest.mark.parametrize(
    ("host", "section", "reached"),
    [
        ("192.0.2.7", {"principals": TOKENS}, "192.0.2.7:8080"),
        ("192.0.2.7", {"http": {"allowAnonymous": True}}, "192.0.2.7:8080"),
        ("::", {"principals": TOKENS, "http": {"allowedHosts": ["tools.example"]}}, "tools.example"),
        ("localhost", {}, "127.0.0.1:8080"),
        ("127.0.0.2", {}, "localhost:8080"),
    ],
)
async def test_what_is_bound_on_purpose_is_reached_by_its_name(host, section, reached):
    async with asked(made(section), host, base=f"http://{reached}") as client:
        answer = await client.post("/mcp", headers=bearer(ALICE), json=INITIALIZE)
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("Tools.Example", HostPort("tools.example")),
        ("a:1", HostPort("a", 1)),
        ("a:*", HostPort("a")),
        ("[::1]:80", HostPort("::1", 80)),
    ],
)
def test_an_address_is_read_as_a_browser_writes_it(text, address):
    assert HostPort.parse(text) == address


@pytest.mark.parametrize("text", ["", "a:b", "a/b", "u@a", "a?b", "a#b", "[::1", "a:70000"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        HostPort.parse(text)


# --- how much ---------------------------------------------------------------------------------------------------------


async def test_a_body_beyond_the_limit_is_refused_but_only_to_those_let_in(monkeypatch):
    monkeypatch.setattr(gateway_http, "MAX_BODY_BYTES", 100)
    async with asked(made({"principals": TOKENS})) as client:
        stranger = await client.post("/mcp", headers=JSON, content=b" " * 101)
        known = await client.post("/mcp", headers=bearer(ALICE), content=b" " * 101)
    assert (stranger.status_code, known.status_code) == (401, 413)


async def test_a_session_beyond_the_limit_is_refused_and_told_when_to_come_again():
    async with asked(made(maxSessions=1)) as client:
        first = await client.post("/mcp", headers=JSON, json=INITIALIZE)
        second = await client.post("/mcp", headers=JSON, json=INITIALIZE)
    assert (first.status_code, second.status_code, second.headers["retry-after"]) == (200, 503, "60")


# --- the page ---------------------------------------------------------------------------------------------------------


async def _page(_: Any) -> PlainTextResponse:
    return PlainTextResponse("everything")


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        (None, 401),
        (f"Bearer {ALICE}", 200),
        (f"Bearer {BOB}", 403),
        ("Basic " + base64.b64encode(f"any:{ALICE}".encode()).decode(), 200),
        ("Basic " + base64.b64encode(f"any:{BOB}".encode()).decode(), 403),
        ("Basic " + base64.b64encode(b"any:wrong").decode(), 401),
        ("Basic ???", 401),
    ],
)
async def test_the_page_is_for_operators_where_there_are_principals(monkeypatch, authorization, status):
    monkeypatch.setattr(gateway_http, "status_routes", lambda _: [Route("/status", _page)])
    async with asked(made({"principals": TOKENS})) as client:
        answer = await client.get("/status", headers={"authorization": authorization} if authorization else {})
    assert answer.status_code == status
    assert ("everything" in answer.text) == (status == 200)
    assert ("www-authenticate" in answer.headers) == (status == 401)


@pytest.mark.parametrize(
    ("origin", "headers", "status"),
    [
        ("127.0.0.1", {}, 200),
        ("::1", {}, 200),
        ("10.0.0.9", {}, 403),
        ("127.0.0.1", {"x-forwarded-for": "10.0.0.9"}, 403),
        ("127.0.0.1", {"forwarded": "for=10.0.0.9"}, 403),
        ("127.0.0.1", {"x-forwarded-host": "tools.example"}, 403),
        ("127.0.0.1", {"x-real-ip": "10.0.0.9"}, 403),
        ("127.0.0.1", {"via": "1.1 proxy"}, 403),
    ],
)
@pytest.mark.parametrize("path", ["/", "/status", "/status.json", "/metrics"])
async def test_where_nobody_is_named_only_this_machine_sees_pages_and_metrics(origin, headers, status, path):
    app = http_app(made(allowAnonymous=True, allowedHosts=["tools.example"]), host="0.0.0.0")  # noqa: S104
    transport = httpx2.ASGITransport(app, client=(origin, 1))
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://tools.example") as client,
    ):
        assert (await client.get(path, headers=headers)).status_code == status


@pytest.mark.parametrize(("token", "status"), [(ALICE, 200), (BOB, 403), (None, 401)])
async def test_the_metrics_are_for_operators(token, status):
    async with asked(made({"principals": TOKENS})) as client:
        answer = await client.get("/metrics", headers={"authorization": f"Bearer {token}"} if token else {})
        rebound = await client.get("/metrics", headers={"host": "evil.example", "authorization": f"Bearer {ALICE}"})
    assert (answer.status_code, rebound.status_code) == (status, 421)
    assert ('toolsearch_server_tools{server="a"} 1.0' in answer.text) == (status == 200)


# --- secrets ----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("processes")
async def test_no_secret_is_in_any_log_answer_or_status(caplog, monkeypatch):
    """Of the environment, of headers, of URLs and of callers, through good requests, bad ones and a dead server."""
    caplog.set_level(logging.DEBUG)
    secrets = {
        "ENV_SECRET": "env-secret-1234567",
        "HEADER_SECRET": "header-secret-1234567",
        "URL_SECRET": "url-secret-1234567",
        "QUERY_SECRET": "query-secret-1234567",
    }
    for name, value in (secrets | ENVIRONMENT).items():
        monkeypatch.setenv(name, value)
    config = {
        "mcpServers": {
            "raw": raw_server() | {"env": {"API_KEY": "${ENV_SECRET}"}},
            "dead": {
                "url": "http://user:${URL_SECRET}@127.0.0.1:9/mcp?key=${QUERY_SECRET}",
                "headers": {"Authorization": "Bearer ${HEADER_SECRET}"},
            },
        },
        "toolsearch": {"principals": TOKENS},
    }
    forged = jwt.encode({"sub": "x", "password": "jwt-secret-1234567"}, "k" * 32, algorithm="HS256")
    answers: list[str] = []
    async with served(config) as (gateway, url), httpx2.AsyncClient() as client:
        for token in (ALICE, BOB, "wrong-secret-1234567", forged):
            begun = await client.post(url, headers=bearer(token), json=INITIALIZE, timeout=30)
            session = {"mcp-session-id": begun.headers.get("mcp-session-id", "none")}
            answers.append(begun.text)
            for name, arguments in (
                ("toolSearchTool", {"query": "pid"}),
                ("callToolRead", {"name": "raw__crash", "arguments": {}}),
                ("callToolRead", {"name": "dead__x", "arguments": {}}),
            ):
                call = rpc("tools/call", name=name, arguments=arguments)
                answers.append((await client.post(url, headers=bearer(token, **session), json=call, timeout=30)).text)
        status = json.dumps(asdict(gateway.status()), default=str)

    told = "\n".join([*answers, status, repr(gateway.config), *caplog.messages, caplog.text])
    planted = [*secrets.values(), ALICE, BOB, "wrong-secret-1234567", forged, "jwt-secret-1234567"]
    assert "raw__pid" in told  # there was something to look through
    assert "dead" in status
    assert [secret for secret in planted if secret in told] == []


def test_what_libraries_log_is_told_without_secrets_while_the_guard_is_there(caplog):
    caplog.set_level(logging.DEBUG)
    guard = LogGuard(["s3cret/ word"])
    library = logging.getLogger("httpx2")
    guard.remove()
    guard.install()
    library.info("POST %s %d", "https://h/?key=s3cret/%20word&b=s3cret%2F+word&c=s3cret/ word", 200)
    guard.remove()
    library.info("s3cret/ word")

    assert caplog.messages == ["POST https://h/?key=***&b=***&c=*** 200", "s3cret/ word"]
