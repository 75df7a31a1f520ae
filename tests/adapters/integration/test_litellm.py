"""The adapter for LiteLLM, in front of APIs on the loopback interface, as ``inside/litellm_client.py`` asks them."""

import json
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from threading import Thread
from typing import Any

import httpx2
import pytest

from tests.adapters.inside.toolbox import WISHES, tools
from tests.kit.adapter_pages import PAGES, assert_runs
from tests.kit.framework_environment import ROOT, Framework
from tests.kit.loopback import Call, LoopbackApi, Reply, available_tools
from toolsearch import as_tools
from toolsearch.wire import render_tools

PIN = "audit_firewall"
FOUND = {
    "ann": [
        ["rename_invoice", "rename_customer", "rename_voucher"],
        ["schedule_exam", "archive_exam", "audit_exam"],
        ["compress_video", "compress_customer", "compress_trailer"],
    ],
    "bob": [
        ["merge_lead", "merge_video", "merge_campaign"],
        ["print_barcode", "label_barcode", "count_barcode"],
        ["translate_footnote", "schedule_footnote", "forward_footnote"],
    ],
}
RAN = {
    "ann": ["rename_invoice has run for 7", "there is no exam 'lost'", "compress_video has run for 7"],
    "bob": ["merge_lead has run for 7", "print_barcode has run for 7", "translate_footnote has run for 7"],
}
WAYS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}


def answer(body: dict[str, Any]) -> Reply:
    """Call what the user has wished for last, or say that it is done."""
    said = body.get("messages") or body["input"]
    wishes = WISHES[user_of(body)]
    wish = wishes[sum(each.said in json.dumps(said) for each in wishes) - 1]
    spoken = [each for each in said if each.get("role") not in ("system", "developer")]  # without what adds tools
    is_asked = wish.said in json.dumps(spoken[-1])
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
            assert lists_at(api, path, user) == lists
    assert played["told"] == dict.fromkeys(WAYS, RAN)
    assert played["others"] == {
        "a provider's tool": ["web_search", PIN, *FOUND["ann"][0]],
        "chosen": [PIN, *FOUND["ann"][0], "print_exam"],
        "a pattern": [PIN, *FOUND["ann"][0]],
        **{key: [] for key in ("found nothing", "few", "deferred by the client", "kept by the provider")},
    }
    assert played["marks"] == [False, False, False, True]


@pytest.mark.timeout(300)
def test_the_list_stays_where_a_model_binds_its_thinking_to_it_or_is_told_of_tools_in_messages(framework, api):
    """A Claude that is asked as its own API is, the same by Chat Completions, and a GPT by Responses."""
    api.answer = lambda body: replace(answer(body), thinking="Let me see." if "claude" in body["model"] else "")

    played = framework("litellm").run("litellm_stays.py", api.url)

    assert api.refusals == []
    assert played["talks"] == dict.fromkeys(("messages", "chat", "responses"), RAN["ann"])
    grown = [PIN, *FOUND["ann"][0], *FOUND["ann"][1]]
    assert played["others"] == {
        "thinking that is not bound": grown,
        "a stranger's model": grown,
        **{key: [] for key in ("found later", "chosen", "behind another address", "in a cloud")},
    }
    by_way = [slice(start, start + 6) for start in range(0, 18, 6)]
    everything = [tool.name for tool in as_tools(*tools())]
    first = [PIN, *FOUND["ann"][0]]
    for way, listed in zip(by_way, (first, everything, first), strict=True):
        assert api.tools[way] == [listed] * 6
    for way in (by_way[0], by_way[2]):
        available = [{PIN, *chain(*FOUND["ann"][: request // 2 + 1])} for request in range(6)]
        assert [available_tools(request) for request in api.requests[way]] == available


@pytest.mark.timeout(300)
def test_the_proxy_does_the_same_for_each_api_whatever_the_provider_speaks(framework, api, tmp_path):
    """Configured as the page says. For the model of another provider LiteLLM translates the request."""
    api.answer = lambda _body: Reply("That is all.")
    said = [{"role": "user", "content": WISHES["ann"][0].said}]
    definitions = [tool.definition for tool in as_tools(*tools())]
    chat, messages, responses = (
        {"messages": said, "tools": render_tools(definitions, "openai")},
        {"messages": said, "tools": render_tools(definitions, "anthropic"), "max_tokens": 100},
        {"input": said, "tools": render_tools(definitions, "openai-responses")},
    )

    with proxy(framework("litellm"), api, tmp_path) as client:
        for model in ("gpt", "claude"):
            for path, body in zip(WAYS.values(), (chat, messages, responses), strict=True):
                assert client.post(path, json={"model": model, **body}).status_code == 200

    assert api.refusals == []
    assert api.tools == [FOUND["ann"][0]] * 6


@contextmanager
def proxy(installed: Framework, api: LoopbackApi, folder: Path) -> Iterator[httpx2.Client]:
    """LiteLLM's proxy in front of *api*, as a process of its own."""
    page = (PAGES / "litellm.md").read_text(encoding="utf-8")
    _, callback = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (settings,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    models = [
        {"model_name": "gpt", "litellm_params": {"model": "openai/gpt-5", "api_key": "k", "api_base": api.openai_url}},
        {
            "model_name": "claude",
            "litellm_params": {"model": "anthropic/claude-haiku-4-5", "api_key": "k", "api_base": api.url},
        },
    ]
    (folder / "tool_search.py").write_text(callback, encoding="utf-8")
    (folder / "config.yaml").write_text(f"model_list: {json.dumps(models)}\n{settings}", encoding="utf-8")
    with socket.socket() as at:
        at.bind(("127.0.0.1", 0))
        port = str(at.getsockname()[1])
    command = [installed.python.with_name("litellm"), "--config", "config.yaml", "--host", "127.0.0.1", "--port", port]
    environment = {
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "indexes"))),
    }
    with Popen(command, cwd=folder, env=os.environ | environment, stdout=DEVNULL, stderr=PIPE, text=True) as started:
        assert started.stderr is not None
        log = iter(started.stderr.readline, "")
        reader = Thread(target=list, args=(log,))
        try:
            assert any("Uvicorn running" in line for line in log)
            reader.start()  # or the proxy would wait once the pipe is full
            with httpx2.Client(
                base_url=f"http://127.0.0.1:{port}", headers={"authorization": "Bearer k"}, timeout=60
            ) as client:
                yield client
        finally:
            started.kill()
            if reader.is_alive():
                reader.join()


@pytest.mark.timeout(300)
def test_the_page_runs(framework):
    assert_runs(PAGES / "litellm.md", framework("litellm"))
