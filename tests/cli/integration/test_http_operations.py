"""Operations of an OpenAPI document, sent to a server on this machine by the command line."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.kit.lines import has_line

DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Orders"},
    "servers": [{"url": "/v1"}],
    "security": [{"key": []}],
    "components": {
        "securitySchemes": {
            "key": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
            "query": {"type": "apiKey", "in": "query", "name": "token"},
            "login": {"type": "http", "scheme": "basic"},
            "bearer": {"type": "http", "scheme": "bearer"},
        }
    },
    "paths": {
        "/orders/{id}": {
            "get": {
                "operationId": "getOrder",
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
            }
        },
        "/orders": {
            "post": {
                "operationId": "addOrder",
                "requestBody": {
                    "content": {
                        "application/json": {"schema": {"type": "object", "properties": {"count": {"type": "integer"}}}}
                    }
                },
            }
        },
        **{
            f"/by/{scheme}": {"get": {"operationId": f"by_{scheme}", "security": [{scheme: []}]}}
            for scheme in ("query", "login", "bearer")
        },
        "/open": {"get": {"operationId": "open", "security": []}},
        "/moved": {"get": {"operationId": "moved", "security": []}},
        "/broken": {"get": {"operationId": "broken", "security": [{}, {"key": []}, {"login": []}]}},
        "/short": {"get": {"operationId": "short", "security": []}},
    },
}


class Handler(BaseHTTPRequestHandler):
    """Answers with what it was asked."""

    def _answer(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        status = {"/v1/moved": 302, "/v1/broken": 500}.get(self.path, 200)
        self.send_response(status)
        if status == 302:
            self.send_header("location", "/elsewhere")
        self.send_header("content-type", "application/json")
        if self.path == "/v1/short":
            self.send_header("content-length", "100000")
        self.end_headers()
        seen = {name: self.headers.get(name) for name in ("X-Api-Key", "X-Team", "Authorization")}
        asked = {"method": self.command, "path": self.path, "body": body, **seen}
        self.wfile.write(json.dumps(asked).encode())

    do_GET = do_POST = _answer  # noqa: N815  as the standard library calls them

    def log_message(self, *_arguments):
        """Say nothing."""


@pytest.fixture
def base_url():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


@pytest.fixture
def run(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ORDERS_KEY", "s3cret")
    monkeypatch.setenv("TEAM", "blue")
    (tmp_path / "orders.json").write_text(json.dumps(DOCUMENT))
    return command


def test_an_operation_is_sent_with_key_and_headers_of_the_environment(run, base_url):
    options = ["--base-url", base_url, "--key", "key=ORDERS_KEY", "--header", "X-Team=TEAM", "--source", "orders.json"]
    got = run("call", "orders__getOrder", "id=a/7", *options)
    added = run("call", "orders__addOrder", "count=3", *options)

    assert (got.code, got.err) == (0, "")
    assert got.json == {
        "method": "GET",
        "path": "/v1/orders/a%2F7",
        "body": "",
        "X-Api-Key": "s3cret",
        "X-Team": "blue",
        "Authorization": None,
    }
    assert (added.json["method"], json.loads(added.json["body"])) == ("POST", {"count": 3})


@pytest.mark.parametrize(
    ("scheme", "sees"),
    [
        ("query", ("path", "/v1/by/query?token=s3cret")),
        ("login", ("Authorization", "Basic czNjcmV0")),
        ("bearer", ("Authorization", "Bearer s3cret")),
    ],
)
def test_a_key_goes_where_its_scheme_says(run, base_url, scheme, sees):
    options = ["--base-url", base_url, "--key", f"{scheme}=ORDERS_KEY", "--source", "orders.json"]

    ran = run("call", f"orders__by_{scheme}", *options)

    assert ran.json[sees[0]] == sees[1]


def test_an_operation_gets_only_the_keys_that_it_asks_for(run, base_url):
    keys = ["--key", "key=ORDERS_KEY", "--key", "bearer=ORDERS_KEY", "--key", "query=ORDERS_KEY"]
    options = ["--base-url", base_url, *keys, "--source", "orders.json"]

    by_bearer, open_to_all = (run("call", f"orders__{name}", *options).json for name in ("by_bearer", "open"))

    assert (by_bearer["path"], by_bearer["X-Api-Key"]) == ("/v1/by/bearer", None)
    assert by_bearer["Authorization"] == "Bearer s3cret"
    assert (open_to_all["path"], open_to_all["X-Api-Key"], open_to_all["Authorization"]) == ("/v1/open", None, None)


@pytest.mark.parametrize("keys", [[], ["--key", "bearer=ORDERS_KEY"], ["--header", "X-Team=TEAM"]])
def test_an_operation_without_the_key_that_it_asks_for_is_not_sent(run, base_url, keys):
    ran = run("call", "orders__getOrder", "id=7", "--base-url", base_url, *keys, "--source", "orders.json")

    assert (ran.code, ran.out) == (1, "")
    assert has_line(ran.err, "not sent: ", "scheme key; give it by --key")


def test_a_header_may_be_what_an_operation_asks_for(run, base_url):
    options = ["--base-url", base_url, "--header", "X-Api-Key=ORDERS_KEY", "--source", "orders.json"]

    assert run("call", "orders__getOrder", "id=7", *options).json["X-Api-Key"] == "s3cret"


def test_an_operation_of_a_document_that_was_named_is_sent(run, base_url):
    run("index", "shop=orders.json")

    ran = run("call", "shop__getOrder", "id=7", "--base-url", base_url, "--key", "key=ORDERS_KEY")

    assert ran.json["path"] == "/v1/orders/7"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["orders__moved", "--base-url", "{url}"], 1, "error [tool_failed]: the API answers 302, a redirect"),
        (["orders__broken", "--base-url", "{url}"], 1, "error [tool_failed]: the API answers 500"),
        (["orders__moved", "--header", "X-Team=TEAM"], 1, "error [tool_failed]: the document says no address"),
        (["orders__moved"], 1, "error [tool_failed]: the tool 'orders__moved' can be found, but not called"),
        (["orders__moved", "--key", "key=hunter-2"], 2, "error [bad_setting]: --key needs NAME=VARIABLE"),
        (["orders__moved", "--key", "key=ABSENT"], 2, "error [bad_setting]: --key: the environment has no variable"),
        (["orders__moved", "--key", "other=TEAM"], 2, "error [bad_setting]: --key: orders.json has no security scheme"),
    ],
)
def test_what_cannot_be_sent_is_told(run, base_url, arguments, code, message):
    ran = run("call", *(each.format(url=base_url) for each in arguments), "--source", "orders.json")

    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith(message)
    assert "hunter" not in ran.err


def test_an_answer_that_breaks_off_is_refused(run, base_url):
    ran = run("call", "orders__short", "--base-url", base_url, "--source", "orders.json")

    assert (ran.code, ran.out) == (1, "")
    assert "broke off; the call may" in ran.err


@pytest.mark.parametrize(("scheme", "shown"), [("key", '"X-Api-Key": "***"'), ("login", '"Authorization": "***"')])
def test_an_error_of_the_api_shows_no_credential(run, base_url, scheme, shown):
    options = ["--base-url", base_url, "--key", f"{scheme}=ORDERS_KEY", "--source", "orders.json"]

    ran = run("call", "orders__broken", *options)

    assert ran.err.startswith("error [tool_failed]: the API answers 500")
    assert shown in ran.err
    assert "s3cret" not in ran.err


def test_a_value_that_no_header_can_hold_is_refused_unseen(run, base_url, monkeypatch):
    monkeypatch.setenv("ORDERS_KEY", "s3cret\r")

    ran = run("call", "orders__broken", "--base-url", base_url, "--key", "key=ORDERS_KEY", "--source", "orders.json")

    assert ran.code == 2
    assert has_line(ran.err, "ORDERS_KEY has a line break")
    assert "s3cret" not in ran.err


def test_other_tools_are_not_sent_anywhere(run):
    ran = run("call", "math__fabs", "x=1", "--source", "math", "--base-url", "http://127.0.0.1:9")

    assert (ran.code, ran.out) == (2, "")
    assert has_line(ran.err, "operations of OpenAPI", "not math__fabs")
