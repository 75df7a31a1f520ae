"""The mcpServers JSON: what is read, what is filled in, what is refused and why."""

import json

import pytest

from toolsearch.errors import SourceError
from toolsearch.upstreams.config import HttpServer, McpConfig, StdioServer, read_mcp_config
from toolsearch.upstreams.secrets import redacted


def read(servers: dict, environment: dict | None = None, **options) -> McpConfig:
    return read_mcp_config({"mcpServers": servers}, environment or {}, **options)


def reason_of(entry: object, environment: dict | None = None) -> str:
    config = read({"s": entry}, environment)
    assert config.servers == ()
    (refusal,) = config.refused
    assert (refusal.name, refusal.source) == ("s", "mcpServers")
    return refusal.reason


def test_both_kinds_of_server_are_read_in_the_order_of_the_file():
    config = read(
        {
            "web": {"url": "https://example.com/mcp", "headers": {"X-Team": "blue"}},
            "local": {"command": "uvx", "args": ["srv"], "env": {"LEVEL": 3}, "cwd": "/srv", "mode": "legacy"},
        }
    )

    assert config.servers == (
        HttpServer("web", "https://example.com/mcp", headers={"X-Team": "blue"}),
        StdioServer("local", "uvx", args=("srv",), env={"LEVEL": "3"}, cwd="/srv", mode="legacy"),
    )
    assert config.refused == config.warnings == ()


@pytest.mark.parametrize("kind", ["http", "streamable-http", "streamableHttp"])
def test_every_spelling_of_streamable_http_means_it(kind):
    (server,) = read({"s": {"type": kind, "url": "http://h/mcp"}}).servers

    assert server.transport == "http"


def test_an_http_url_of_gemini_is_streamable_http_and_no_other():
    (server,) = read({"s": {"httpUrl": "http://h/mcp", "url": "http://h/sse"}}).servers

    assert server == HttpServer("s", "http://h/mcp", kind_is_given=True)
    assert reason_of({"httpUrl": "ftp://h"}).startswith("'httpUrl' must start with http")
    assert "both 'command' and 'httpUrl'" in reason_of({"httpUrl": "http://h", "command": "x"})


def test_variables_are_filled_in_everywhere_and_their_values_are_not_looked_at_again():
    environment = {"DIR": "/d", "KEY": "a${DIR}$b", "EMPTY": ""}
    entry = {
        "command": "${DIR}/run",
        "args": ["--key=${env:KEY}", "${ABSENT:-x:-y}", "${EMPTY:-e}", "${EMPTY}", "$DIR", "{DIR}"],
        "env": {"K": "${KEY}"},
        "cwd": "${DIR}",
    }

    (server,) = read({"s": entry}, environment).servers

    assert server.command == "/d/run"
    assert server.args == ("--key=a${DIR}$b", "x:-y", "e", "", "$DIR", "{DIR}")
    assert server.env == {"K": "a${DIR}$b"}
    assert server.cwd == "/d"


def test_a_missing_variable_costs_only_its_server_and_is_named():
    config = read({"a": {"command": "x", "env": {"T": "${TOKEN}"}}, "b": {"command": "x"}})

    assert [server.name for server in config.servers] == ["b"]
    assert "variable TOKEN is not set" in config.refused[0].reason
    assert "${TOKEN:-}" in config.refused[0].reason


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("uvx srv", "it must be an object with 'command' or 'url'"),
        ({}, "'command' must be a string that is not empty"),
        ({"command": "x", "args": "--a"}, "'args' must be a list of strings"),
        ({"command": "x", "args": [1]}, "'args' must be a list of strings"),
        ({"command": "x", "env": {"A": True}}, "'env' must map names to strings, and 'A' is not one"),
        ({"command": "x", "env": ["A"]}, "'env' must map names to strings"),
        ({"command": "x", "mode": "2024"}, "mode is '2024'; use 'auto' or 'legacy'"),
        ({"command": "x", "url": "http://h"}, "it has both 'command' and 'url'; keep one, or set 'type'"),
        ({"command": "x", "type": "pipe"}, "type is 'pipe'; use 'stdio', 'http' or 'sse'"),
        ({"command": "x", "type": ["stdio"]}, "type is ['stdio']; use 'stdio', 'http' or 'sse'"),
        ({"url": "ftp://h/mcp"}, "'url' must start with http:// or https:// and name a host"),
        ({"url": "http://[::1/mcp"}, "'url' is not an address"),
        ({"command": "${input:key}"}, "${input:key} cannot be filled in; only environment variables can"),
    ],
)
def test_an_unusable_server_is_refused_with_what_to_do(entry, reason):
    assert reason_of(entry) == reason


def test_the_older_http_is_taken_where_it_is_named_and_tried_where_nothing_is():
    entries = {kind: {"type": kind, "url": "https://example.com/x"} for kind in ("sse", "http")}
    config = read({**entries, "untold": {"url": "https://example.com/x"}})

    assert [(server.transport, server.kind_is_given) for server in config.servers] == [
        ("sse", True),
        ("http", True),
        ("http", False),
    ]


def test_what_is_not_understood_is_left_alone_with_a_warning():
    config = read_mcp_config({"inputs": [], "servers": {"s": {"command": "x", "autoApprove": ["a"], "timeout": 3}}}, {})

    assert [server.name for server in config.servers] == ["s"]
    assert config.warnings == (
        "mcpServers: 'inputs' is ignored: it has no meaning here",
        "mcpServers: 'autoApprove' of server 's' is ignored: it has no meaning here",
        "mcpServers: 'timeout' of server 's' is ignored: it has no meaning here",
    )


def test_a_disabled_server_is_left_out_even_if_it_is_unusable():
    config = read({"off": {"command": "${TOKEN}", "disabled": True}, "on": {"command": "x", "disabled": False}})

    assert [server.name for server in config.servers] == ["on"]
    assert config.refused == config.warnings == ()


def test_two_servers_whose_tools_would_have_one_prefix_are_not_both_taken():
    config = read({"my server": {"command": "x"}, "my.server": {"command": "x"}, "..": {"command": "x"}})

    assert [server.name for server in config.servers] == ["my server"]
    assert [refusal.reason for refusal in config.refused] == [
        "its tools would be named my_server__..., as those of 'my server' are; rename one",
        "its name has no letter or digit that a tool name could start with",
    ]


def test_only_picks_servers_and_a_name_that_is_not_there_is_an_error():
    servers = {"a": {"command": "x"}, "b": {"command": "x"}}

    assert [server.name for server in read(servers, only=["b"]).servers] == ["b"]
    with pytest.raises(SourceError, match=r"mcpServers has no server c; it has: a, b"):
        read(servers, only={"c", "a"})


def test_a_file_is_named_by_its_name(tmp_path):
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"s": {"command": ""}}}), encoding="utf-8-sig")

    assert read_mcp_config(str(path), {}).refused[0].source == "mcp.json"


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "is malformed"), ("[]", "must be an object"), ("{}", "neither"), ('{"mcpServers": []}', "must map")],
)
def test_a_file_without_servers_cannot_be_read(tmp_path, text, message):
    path = tmp_path / "mcp.json"
    path.write_text(text)

    with pytest.raises(SourceError, match=message):
        read_mcp_config(path, {})


def test_a_missing_file_is_named():
    with pytest.raises(SourceError, match=r"no/such\.json"):
        read_mcp_config("no/such.json", {})


def test_credentials_are_secrets_wherever_they_stand_and_harmless_values_are_not():
    stdio = {"command": "x", "args": ["${IN_ARGS}"], "env": {"KEY": "literal-key", "DEBUG": "1"}}
    http = {"url": "http://u:password@h/mcp?k=query-key", "headers": {"Authorization": "Bearer abcdef"}}

    local, web = read({"local": stdio, "web": http}, {"IN_ARGS": "from-environment"}).servers

    assert local.secrets == {"literal-key", "from-environment"}
    assert web.secrets == {"Bearer abcdef", "abcdef", "password", "query-key"}
    assert redacted("a literal-key", local.secrets) == "a ***"
    assert "abcdef" not in repr(web)
    assert "literal-key" not in repr(local)
