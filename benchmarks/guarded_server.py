"""An MCP server over HTTP that demands a login, with an authorization server of its own: everybody is let in."""

from __future__ import annotations

import json
import secrets
import threading
from collections import Counter
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlencode, urlsplit

_WORK = {"name": "work", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}


class GuardedServer(ThreadingHTTPServer):
    """
    access     the access tokens that are good now
    refreshes  the refresh tokens that are good now
    runs       the calls that have run, by their argument
    go_on      calls are answered while this is set
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.base = f"http://127.0.0.1:{self.server_port}"
        self.access: set[str] = set()
        self.refreshes: set[str] = set()
        self.runs: Counter[str] = Counter()
        self.go_on = threading.Event()
        self.go_on.set()

    @property
    def entry(self) -> dict[str, Any]:
        return {"type": "http", "url": f"{self.base}/mcp"}

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def revoke(self) -> None:
        """No token that was ever given is good from now on."""
        self.access.clear()
        self.refreshes.clear()

    def tokens(self) -> dict[str, Any]:
        access, refresh = secrets.token_urlsafe(), secrets.token_urlsafe()
        self.access.add(access)
        self.refreshes.add(refresh)
        return {"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": 3_600}


class _Handler(BaseHTTPRequestHandler):
    server: GuardedServer  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  named by the library
        """Nobody reads it."""

    def do_GET(self) -> None:
        base, asked = self.server.base, urlsplit(self.path)
        match asked.path:
            case "/authorize":
                query = parse_qs(asked.query)
                answer = urlencode({"code": secrets.token_urlsafe(), "state": query["state"][0]})
                self._answer(302, None, {"location": f"{query['redirect_uri'][0]}?{answer}"})
            case path if path.startswith("/.well-known/oauth-protected-resource"):
                self._answer(200, {"resource": f"{base}/mcp", "authorization_servers": [base]})
            case path if path.startswith("/.well-known/oauth-authorization-server"):
                pages = ("authorization", "authorize"), ("token", "token"), ("registration", "register")
                self._answer(
                    200,
                    {
                        "issuer": base,
                        **{f"{name}_endpoint": f"{base}/{path}" for name, path in pages},
                        "response_types_supported": ["code"],
                        "grant_types_supported": ["authorization_code", "refresh_token"],
                        "code_challenge_methods_supported": ["S256"],
                    },
                )
            case _:
                self._answer(405, None)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        match urlsplit(self.path).path:
            case "/register":
                self._answer(201, {**json.loads(body), "client_id": secrets.token_urlsafe()})
            case "/token":
                asked = {name: values[0] for name, values in parse_qs(body.decode()).items()}
                is_good = asked["grant_type"] != "refresh_token" or asked["refresh_token"] in self.server.refreshes
                self._answer(*((200, self.server.tokens()) if is_good else (400, {"error": "invalid_grant"})))
            case "/mcp" if self.headers.get("authorization", "").removeprefix("Bearer ") in self.server.access:
                self._serve(json.loads(body))
            case _:
                page = f"{self.server.base}/.well-known/oauth-protected-resource/mcp"
                self._answer(401, {"error": "no"}, {"www-authenticate": f'Bearer resource_metadata="{page}"'})

    def do_DELETE(self) -> None:
        self._answer(200, None)

    def _serve(self, message: Mapping[str, Any]) -> None:
        if "id" not in message:
            self._answer(202, None)
            return
        result: dict[str, Any] | None = None
        match message["method"]:
            case "initialize":
                info = {"name": "guarded", "version": "1"}
                result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                result = {"tools": [_WORK]}
            case "tools/call":
                call_id = message["params"]["arguments"]["id"]
                self.server.runs[call_id] += 1
                self.server.go_on.wait()
                result = {"content": [{"type": "text", "text": f"{call_id} by guarded"}]}
            case _:
                pass
        answer = {"result": result} if result is not None else {"error": {"code": -32601, "message": "no such method"}}
        self._answer(200, {"jsonrpc": "2.0", "id": message["id"], **answer})

    def _answer(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        content = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
