"""The adapter for LiteLLM, in front of APIs on the loopback interface, as ``inside/litellm_client.py`` asks them."""

import json
from itertools import chain
from typing import Any

import pytest

from tests.adapters.inside.toolbox import WISHES
from tests.kit.adapter_pages import PAGES, assert_runs
from tests.kit.loopback import Call, LoopbackApi, Reply

PIN = "audit_firewall"
FOUND = {
    "ann": [
        ["rename_invoice", "assign_invoice", "rename_payslip"],
        ["schedule_exam", "audit_exam", "assign_exam"],
        ["compress_video", "compress_customer", "compress_lead"],
    ],
    "bob": [
        ["merge_lead", "merge_invoice", "merge_customer"],
        ["print_barcode", "count_barcode", "label_barcode"],
        ["translate_footnote", "describe_footnote", "count_footnote"],
    ],
}
RAN = {
    "ann": ["rename_invoice has run for 7", "ValueError: there is no exam 'lost'", "compress_video has run for 7"],
    "bob": ["merge_lead has run for 7", "print_barcode has run for 7", "translate_footnote has run for 7"],
}
WAYS = {
    "chat": "/v1/chat/completions",
    "routed": "/v1/chat/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
}


def answer(body: dict[str, Any]) -> Reply:
    """Call what the user has wished for last, or say that it is done."""
    said = body.get("messages") or body["input"]
    wishes = WISHES[user_of(body)]
    wish = wishes[sum(each.said in json.dumps(said) for each in wishes) - 1]
    is_asked = wish.said in json.dumps(said[-1])
    return Reply(calls=[Call(wish.name, {"id": wish.id})]) if is_asked else Reply("That is all.")


def user_of(body: dict[str, Any]) -> str:
    text = json.dumps(body.get("messages") or body["input"])
    return next(user for user, wishes in WISHES.items() if wishes[0].said in text)


def lists_at(api: LoopbackApi, path: str, user: str) -> list[list[str]]:
    sent = zip(api.requests, api.tools, strict=True)
    return [names for request, names in sent if request.path == path and user_of(request.body) == user]


@pytest.mark.timeout(300)  # for the environment, which the first run makes
def test_requests_keep_what_the_conversation_asks_for(framework, api):
    """Two users at once, in each of LiteLLM's ways to be asked. A turn is two requests. The program runs the tools."""
    api.answer = answer

    played = framework("litellm").run("litellm_client.py", api.url)

    assert api.refusals == []
    for path in WAYS.values():
        for user, found in FOUND.items():
            lists = [[PIN, *chain(*found[: request // 2 + 1])] for request in range(6)]
            assert lists_at(api, path, user) == lists * [*WAYS.values()].count(path)
    assert played["told"] == dict.fromkeys(WAYS, RAN)
    assert played["others"] == {
        "a provider's tool": ["web_search", PIN, *FOUND["ann"][0]],
        "chosen": [PIN, *FOUND["ann"][0], "print_exam"],
        "a pattern": [PIN, *FOUND["ann"][0]],
        **{key: [] for key in ("found nothing", "few", "deferred by the client", "kept by the provider")},
    }
    assert played["marks"] == [False, False, False, True]


@pytest.mark.timeout(300)
def test_the_page_runs(framework):
    assert_runs(PAGES / "litellm.md", framework("litellm"))
