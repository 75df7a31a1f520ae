"""Secrets that are written into a server's entry: found by where they stand or how they look, and never shown."""

import asyncio
import sys

import pytest

from tests.kit.upstream_actors import running, settings_of
from toolsearch.errors import ServerUnavailableError
from toolsearch.upstreams.config import HttpServer, StdioServer, read_mcp_config, server_identity
from toolsearch.upstreams.secrets import redacted
from toolsearch.upstreams.stdio import StderrTail


def server(**entry: object) -> StdioServer | HttpServer:
    (read,) = read_mcp_config({"mcpServers": {"s": entry}}, {}).servers
    return read


def hidden(*args: str) -> set[str]:
    return set(server(command="x", args=list(args)).secrets)


@pytest.mark.parametrize(
    ("args", "secrets"),
    [
        (["--api-key", "blue-sky", "--verbose"], {"blue-sky"}),
        (["--token=blue-sky"], {"blue-sky"}),
        (["-e", "DB_PASSWORD=blue-sky", "image"], {"blue-sky"}),
        (
            ["--header", "Authorization: Bearer blue-sky"],
            {"Bearer blue-sky", "blue-sky"},
        ),
        (["postgres://ann:blue%2Fsky@db/x"], {"blue%2Fsky", "blue/sky"}),
        (["--url=https://h/mcp?a=red-sky&b=blue-sky"], {"red-sky", "blue-sky"}),
        (["ghp_abcdefghijklmnopqrstuvwxyz"], {"ghp_abcdefghijklmnopqrstuvwxyz"}),
        (['{"x": "0123456789abcdef01234567"}'], {"0123456789abcdef01234567"}),
        (["--token", "first line\nsecond line"], {"first line\nsecond line", "first line", "second line"}),
    ],
)
def test_what_stands_after_a_telling_name_in_an_address_or_looks_like_a_key_is_a_secret(args, secrets):
    assert secrets <= hidden(*args)


@pytest.mark.parametrize(
    "args",
    [
        ["-y", "@modelcontextprotocol/server-filesystem@2026.8.31", "/home/ann/projects"],
        ["-m", "mcp_server_time", "--local-timezone", "Europe/Vienna"],
        ["--port", "8080", "--verbose", "--token", "--yes"],
        ["run", "--rm", "-i", "ghcr.io/github/github-mcp-server:latest"],
    ],
)
def test_ordinary_arguments_can_be_read_in_messages(args):
    text = " ".join(args)
    assert redacted(text, hidden(*args)) == text


def test_results_hide_what_has_a_telling_name_or_look_and_keep_folders_names_and_modes():
    local = server(
        command="x",
        args=["--token", "blue-sky", "postgres://ann:red-sky@db/x?sslmode=require"],
        env={"GITHUB_TOKEN": "green-sky", "GIT_AUTHOR_NAME": "Ann Smith", "KEYBOARD": "qwertz", "FOLDER": "/home/ann"},
    )
    web = server(
        url="https://h/mcp?project=sunrise&api_key=grey-sky",
        headers={"Authorization": "Bearer pink-sky", "X-Team": "sunset", "X-Id": "0123456789abcdef01234567"},
    )

    assert {"blue-sky", "red-sky", "green-sky"} <= local.certain_secrets <= local.secrets
    assert {"grey-sky", "pink-sky", "0123456789abcdef01234567"} <= web.certain_secrets <= web.secrets
    shown = "require Ann Smith qwertz /home/ann sunrise sunset"
    assert redacted(shown, local.certain_secrets | web.certain_secrets) == shown


def test_a_command_line_in_place_of_a_command_hides_its_secrets_too():
    assert server(command="npx -y server --api-key blue-sky").secrets == {"blue-sky"}


def test_a_key_in_the_path_of_an_address_is_not_shown_and_yet_tells_servers_apart():
    """It may be all that tells one account's server from another's, so that it is no mere credential."""
    one, other = (server(url=f"https://h/s/{key}/mcp") for key in ("k3y" * 10, "k4y" * 10))
    assert one.secrets == {"k3y" * 10}
    assert server_identity(one) != server_identity(other)


def test_arguments_are_not_part_of_what_a_server_prints_as():
    assert "blue-sky" not in repr(server(command="x", args=["--token", "blue-sky"]))


@pytest.mark.usefixtures("processes")
async def test_a_server_that_fails_with_its_own_arguments_on_stderr_shows_no_secret_of_them():
    dying = "import sys; sys.exit('cannot use ' + ' '.join(sys.argv[1:]))"
    settings = settings_of({"command": sys.executable, "args": ["-c", dying, "--api-key", "blue-sky", "--depth", "3"]})
    async with running(settings) as (actor, _):
        with pytest.raises(ServerUnavailableError, match=r"cannot use --api-key \*\*\* --depth 3") as failed:
            await actor.relist()
        assert "blue-sky" not in str(failed.value)
        assert "blue-sky" not in actor.status().last_error


@pytest.mark.parametrize("separator", ["\n", " "])
async def test_of_what_no_longer_fits_no_half_a_word_is_kept(separator):
    """Half a secret is no secret that could be found in the text."""
    tail = StderrTail()
    with tail.pipe() as stream:
        stream.write(f"blue-sky-0123456789{separator}" + "x" * 4_086)
    assert await tail.last_words() == "x" * 4_086


async def test_a_word_without_end_is_not_kept():
    tail = StderrTail()
    with tail.pipe() as stream:
        await asyncio.to_thread(stream.write, "x" * 10_000)
    assert await tail.last_words() == ""
