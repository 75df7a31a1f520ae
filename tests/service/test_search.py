"""Searches over HTTP without a session: several queries, names, definitions, and explanations."""

import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.kit.service import ServiceKit, codes, serving
from toolsearch.engine import ToolSearch
from toolsearch.tools.definition import ToolReference

TOOLS: list[dict[str, Any]] = [
    {"name": "send_mail", "description": "Send an email message."},
    {"name": "list_events", "description": "List the events of a calendar on a day.", "server": "calendar"},
    {"name": "convert_time", "description": "Convert an hour from one time zone to another."},
    {"name": "pay_bill", "description": "Pay a bill with money."},
]


async def ready(kit: ServiceKit) -> httpx2.AsyncClient:
    await kit.catalog(kit.operator, tools=TOOLS)
    return kit.client(kit.operator)


async def asked(client: httpx2.AsyncClient, **body: Any) -> dict[str, Any]:
    answer = await client.post("/v1/search", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def names(answer: dict[str, Any]) -> list[list[str]]:
    return [[tool["name"] for tool in each["tools"]] for each in answer["answers"]]


async def test_several_queries_are_answered_in_their_order(tmp_path: Path) -> None:
    async with serving(tmp_path) as kit:
        client = await ready(kit)
        answer = await asked(client, queries=["email", "select:pay_bill", "/_time$/"], limit=1)
        assert [each["query"] for each in answer["answers"]] == ["email", "select:pay_bill", "/_time$/"]
        assert names(answer) == [["send_mail"], ["pay_bill"], ["convert_time"]]
        (mail,) = answer["answers"][0]["tools"]
        assert (mail["summary"], mail["confidence"], mail["runs_here"]) == ("Send an email message.", "high", False)


async def test_names_are_looked_up_exactly_and_unknown_ones_given_back(tmp_path: Path) -> None:
    async with serving(tmp_path) as kit:
        client = await ready(kit)
        answer = await asked(client, names=["pay_bill", "no_such", "Pay_Bill"])
        assert [tool["name"] for tool in answer["named"]] == ["pay_bill"]
        assert answer["not_found"] == ["no_such", "Pay_Bill"]
        assert answer["answers"] == []


@pytest.mark.parametrize(
    ("wire_format", "schema"),
    [("anthropic", "input_schema"), ("mcp", "inputSchema"), ("openai-responses", "parameters")],
)
async def test_definitions_are_given_once_for_all_answers_where_they_are_asked_for(
    tmp_path: Path, wire_format: str, schema: str
) -> None:
    async with serving(tmp_path) as kit:
        client = await ready(kit)
        answer = await asked(
            client, queries=["send mail", "mail a message"], names=["pay_bill"], definitions=wire_format
        )
        assert sorted(answer["definitions"]) == ["pay_bill", "send_mail"]
        assert answer["definitions"]["pay_bill"]["description"] == "Pay a bill with money."
        assert answer["definitions"]["pay_bill"][schema]["type"] == "object"


async def test_a_search_can_be_narrowed_by_rules_a_server_and_the_key(tmp_path: Path) -> None:
    async with serving(tmp_path) as kit:
        client = await ready(kit)
        everything = {"queries": ["/./"], "limit": 10}
        (found,) = names(await asked(client, **everything))
        assert sorted(found) == ["calendar__list_events", "convert_time", "pay_bill", "send_mail"]
        assert names(await asked(client, **everything, deny=["pay_*"], allow=["*_*l", "pay_bill"])) == [["send_mail"]]
        assert names(await asked(client, **everything, server="calendar")) == [["calendar__list_events"]]
        narrow = kit.client(kit.key("default", "search", deny=["send_mail"]))
        assert names(await asked(narrow, **everything, allow=["send_mail", "pay_bill"])) == [["pay_bill"]]
        assert (await asked(narrow, names=["send_mail"]))["not_found"] == ["send_mail"]


async def test_scores_are_explained_and_why_a_tool_is_not_found(tmp_path: Path) -> None:
    async with serving(tmp_path) as kit:
        client = await ready(kit)
        answer = await asked(client, queries=["email"], explain=True, explain_tools=["pay_bill", "no_such"], limit=1)
        mail, bill, unknown = answer["answers"][0]["explanations"]
        assert (mail["tool"], mail["outcome"], mail["place"]) == ("send_mail", "found", 1)
        assert mail["score"] == answer["answers"][0]["tools"][0]["score"]
        assert mail["raw"] == pytest.approx(mail["word_score"] + mail["weight"] * mail["deviations"], abs=1e-4)
        assert (bill["tool"], bill["place"]) == ("pay_bill", None)
        assert (unknown["tool"], unknown["outcome"]) == ("no_such", "no such tool")


async def test_what_a_key_does_not_reach_is_explained_as_what_is_not_there(tmp_path: Path) -> None:
    async with serving(tmp_path) as kit:
        await ready(kit)
        narrow = kit.client(kit.key("default", "search", deny=["send_mail"]))
        answer = await asked(narrow, queries=["email"], explain_tools=["send_mail", "no_such"], deny=["pay_bill"])
        hidden, unknown = answer["answers"][0]["explanations"]
        assert {**hidden, "tool": ""} == {**unknown, "tool": ""}
        denied = await asked(narrow, queries=["email"], explain_tools=["pay_bill"], deny=["pay_bill"])
        assert denied["answers"][0]["explanations"][0]["outcome"] == "out of reach"


async def test_a_bad_query_alone_is_an_error_and_among_others_a_part_of_the_answer(tmp_path: Path) -> None:
    async with serving(tmp_path) as kit:
        client = await ready(kit)
        alone = await client.post("/v1/search", json={"queries": ["/(/"]})
        assert codes([alone]) == [(400, "bad_pattern")]
        answer = await asked(client, queries=["/(/", "send mail"])
        assert answer["answers"][0]["error"]
        assert names(answer) == [[], ["send_mail"]]


async def test_requests_that_cannot_be_answered_say_why(tmp_path: Path) -> None:
    async with serving(tmp_path) as kit:
        client = await ready(kit)
        bodies: list[dict[str, Any]] = [
            {},
            *({"queries": ["x"], "limit": limit} for limit in (0, True, "3", 1.5)),
            {"queries": ["x"], "catalog": "a", "toolset": "b"},
            {"queries": ["x"], "allow": ["a b"]},
            {"queries": ["x"], "catalog": "none"},
            {"queries": ["x"], "toolset": "default"},
            {"queries": ["x"], "server": "none"},
            {"queries": ["x"], "strategy": "magic"},
        ]
        assert codes([await client.post("/v1/search", json=body) for body in bodies]) == [
            *[(422, "bad_request")] * 4,
            (422, "bad_request"),
            (422, "bad_request"),
            (400, "bad_setting"),
            (404, "not_found"),
            (404, "not_found"),
            (400, "bad_query"),
            (422, "bad_request"),
        ]


async def test_a_catalog_of_another_tenant_is_not_found(tmp_path: Path) -> None:
    async with serving(tmp_path) as kit:
        await ready(kit)
        other = kit.client(kit.key("other"))
        assert codes([await other.post("/v1/search", json={"queries": ["email"]})]) == [(404, "not_found")]


async def test_a_short_search_stays_in_the_thread_of_the_loop_and_all_others_leave_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched_in: list[str] = []
    search = ToolSearch.search

    def noting(engine: ToolSearch, query: str, **options: Any) -> list[ToolReference]:
        searched_in.append(threading.current_thread().name)
        return search(engine, query, **options)

    monkeypatch.setattr(ToolSearch, "search", noting)
    here = threading.current_thread().name
    async with serving(tmp_path) as kit:
        client = await ready(kit)
        await asked(client, queries=["email"])  # reads what was learnt from use from the store
        await asked(client, queries=["email"])
        assert [each == here for each in searched_in] == [False, True]

        bodies: tuple[dict[str, Any], ...] = (
            {"queries": ["/mail/"]},
            {"queries": ["select:pay_bill"]},
            {"queries": ["send a mail " * 20]},
            {"queries": ["email", "money"]},
            {"queries": ["email"], "strategy": "regex"},
            {"queries": ["email"], "server": "calendar"},
            {"queries": ["email"], "allow": ["send_*"]},
            {"queries": ["email"], "explain": True},
            {"queries": ["email"], "explain_tools": ["send_mail"]},
            {"queries": ["email"], "names": ["send_mail"]},
            {"queries": ["email"], "definitions": "anthropic"},
        )
        for body in bodies:
            await asked(client, **body)
        assert here not in searched_in[2:]

        await asked(client, queries=["email"], allow=["send_*"])  # the view of this reach is made now
        assert searched_in[-1] == here

        monkeypatch.setattr(type(kit.service.storage), "is_shared", True)
        await asked(client, queries=["email"])
        assert searched_in[-1] != here
