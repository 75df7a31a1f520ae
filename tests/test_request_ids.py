"""The id of a request: given by the client or made, in its answer, in logs and in errors."""

import asyncio
import json
import logging

import pytest
from mcp import Client

from tests.kit.fake_servers import gateway_of
from toolsearch.cli.output import log_from, logs_on_stderr
from toolsearch.gateway.caller import Caller, Context, caller_of
from toolsearch.gateway.server import make_server
from toolsearch.request_ids import answering, is_sound, new_request_id, request_id_now


@pytest.mark.parametrize("given", ["", "a" * 65, "a b", "a\n", "ä", '"', "${jndi}", "../x"])
def test_an_id_that_could_forge_a_line_of_the_log_is_not_taken(given: str) -> None:
    assert not is_sound(given)


@pytest.mark.parametrize("given", ["a", "a" * 64, "Trace-1.2_3"])
def test_a_plain_id_is_taken(given: str) -> None:
    assert is_sound(given)


def test_an_id_of_ours_is_taken_by_a_gateway_behind_this_one() -> None:
    assert is_sound(new_request_id())


async def test_requests_that_are_answered_at_once_have_each_their_own_id() -> None:
    async def answer(request_id: str) -> str:
        with answering(request_id):
            await asyncio.sleep(0)
            return request_id_now()

    assert await asyncio.gather(*map(answer, "abc")) == ["a", "b", "c"]
    assert request_id_now() == ""


async def test_each_request_without_http_has_an_id_of_its_own() -> None:
    seen: list[Caller] = []

    def who(ctx: Context) -> Caller:
        seen.append(caller_of(ctx))
        return seen[-1]

    async with gateway_of("git") as (gateway, servers):
        await servers["git"].lists("log")
        async with Client(make_server(gateway, who=who), mode="legacy") as client:
            ids = [
                ((await client.call_tool("callToolRead", {"name": "git__none"})).meta or {})["toolsearch/requestId"]
                for _ in range(2)
            ]

    assert ids[0] != ids[1]
    assert ids == [each.request_id for each in seen][-2:]


def test_lines_of_the_log_about_a_request_name_it(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("toolsearch.x")
    with logs_on_stderr():
        for form in ("text", "json"):
            log_from("warning", form)  # type: ignore[arg-type]
            with answering("req_1"):
                logger.warning("it fails")
            logger.warning("it ends")
    text, text_without, *documents = capsys.readouterr().err.splitlines()
    with_id, without = map(json.loads, documents)

    assert (text, text_without) == ("warning: it fails [req_1]", "warning: it ends")
    assert (with_id["request_id"], "request_id" in without) == ("req_1", False)
