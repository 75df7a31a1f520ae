"""``toolsearch enrich`` from end to end: the official SDKs, a model's API on the loopback interface, and the file."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.commands import Ran
from tests.kit.lines import has_line
from tests.kit.loopback import Failure, LoopbackApi, Raw, Reply, TokenCounts
from tests.kit.request_writer import answer_to, asked_in

FORMATS = {"anthropic": "claude-sonnet-5-5", "openai": "gpt-5.1", "openai-responses": "gpt-6.2-sol"}


@pytest.fixture
def run(
    command: Callable[..., Ran], api: LoopbackApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ran]:
    """Run the command in an empty directory, for a model behind *api* that answers well."""
    monkeypatch.chdir(tmp_path)
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(key, "k")
    api.answer = answered_well

    def enrich(*arguments: str, wire_format: str = "openai") -> Ran:
        url = api.url if wire_format == "anthropic" else api.openai_url
        endpoint = ("--format", wire_format, "--model", FORMATS[wire_format], "--base-url", url)
        return command("enrich", *arguments, "--out", "requests.jsonl", *endpoint)

    return enrich


def question_in(body: dict[str, Any]) -> str:
    """What the model was asked, wherever the API has it."""
    return next(text for text in _texts(body.get("messages") or body["input"]) if text.startswith('{"tools"'))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def answered_well(body: dict[str, Any]) -> Reply:
    return Reply(answer_to(question_in(body)), usage=TokenCounts(1_000, 300))


def lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("requests.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("wire_format", FORMATS)
def test_a_model_of_each_api_writes_the_file_and_searches_find_by_it(
    run: Callable[..., Ran], command: Callable[..., Ran], api: LoopbackApi, wire_format: str
) -> None:
    ran = run("textwrap", "--json", wire_format=wire_format)

    assert (ran.code, api.refusals) == (0, [])
    report = ran.json
    assert {key: report[key] for key in ("written", "left", "calls", "input_tokens", "output_tokens", "problems")} == {
        "written": 5, "left": 0, "calls": 1, "input_tokens": 1_000, "output_tokens": 300, "problems": [],
    }  # fmt: skip
    assert report["cost"] > 0
    assert [(line["server"], line["model"], len(line["requests"])) for line in lines()] == [
        ("textwrap", FORMATS[wire_format], 4)
    ] * 5
    (body,) = api.bodies
    assert '"additionalProperties": false' in json.dumps(body)  # held to the schema by the provider
    assert "JSON Schema" not in json.dumps(body)
    Path("own.toml").write_text('[toolsearch.index]\nrequests_files = ["requests.jsonl"]\n')
    found = command(
        "search", "a wish like textwrap__dedent", "--source", "textwrap", "--settings", "own.toml", "--json"
    )
    assert found.json["results"][0]["name"] == "textwrap__dedent"


def test_a_dry_run_tells_the_cost_and_asks_nothing(
    run: Callable[..., Ran], command: Callable[..., Ran], api: LoopbackApi
) -> None:
    told = run("textwrap", "statistics", "--dry-run", "--json", "--prices", "input=2,output=10").json

    assert api.requests == []
    assert command("enrich", "textwrap", "--out", "r.jsonl", "--dry-run", "--json").json["model"] == ""
    assert not Path("requests.jsonl").exists()
    own = [{"name": "forecast", "description": "The weather of tomorrow", "inputSchema": {"type": "object"}}]
    Path("own.json").write_text(json.dumps(own))
    assert run("own.json", "statistics", "--dry-run", "--skip-shipped", "--json").json["tools"] == 1
    assert (told["tools"], told["known"], told["calls"], told["is_estimate"]) == (23, 0, 2, True)
    assert told["cost"] == pytest.approx((2 * told["input_tokens"] + 10 * told["output_tokens"]) / 1e6, abs=1e-6)
    assert "23 tools to ask for (0 are in the file), 2 calls, about" in run("textwrap", "statistics", "--dry-run").out


def test_what_was_written_is_not_asked_again_by_name_or_from_an_index(
    run: Callable[..., Ran], command: Callable[..., Ran], api: LoopbackApi
) -> None:
    assert command("index", "textwrap", "--to", "kept").code == 0
    assert run("kept", "--allow", "*__dedent", "--allow", "*__fill", "--json").json["written"] == 2
    assert run("--index", "kept", "--json").json["written"] == 3
    assert run("textwrap", "--json").json["calls"] == 0

    asked = [sorted(asked_in(question_in(body))) for body in api.bodies]
    assert [len(names) for names in asked] == [2, 3]
    assert asked[0] == ["textwrap__dedent", "textwrap__fill"]
    assert "textwrap__shorten: " in " ".join(json.loads(question_in(api.bodies[0]))["neighbours"])


def test_a_budget_is_kept_and_the_next_run_goes_on(run: Callable[..., Ran], api: LoopbackApi) -> None:
    first = run("textwrap", "--tools-per-call", "2", "--max-calls", "2", "--json")
    assert (first.code, first.json["written"], first.json["left"], len(api.requests)) == (0, 4, 1, 2)
    none = run("textwrap", "--max-tokens", "100")
    assert (none.code, len(api.requests)) == (0, 2)
    assert has_line(none.out, "requests.jsonl", "1 left; 0 calls")
    assert "Run it again" in none.err

    assert run("textwrap", "--json").json["left"] == 0
    assert len(lines()) == 5


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Failure(400, "no such model"), "not_answered"),
        (Raw({"nothing": 1}), "not_answered"),
        (Reply("I would rather not."), "bad_answer"),
        (Reply('{"tools": [{"na', stop="length"), "bad_answer"),
        (Reply("", stop="content_filter"), "bad_answer"),
    ],
    ids=str,
)
def test_a_call_that_goes_wrong_costs_no_other_and_says_what_was_wrong(
    run: Callable[..., Ran], api: LoopbackApi, reply: Any, code: str
) -> None:
    def answer(body: dict[str, Any]) -> Any:
        return reply if "textwrap__dedent" in asked_in(question_in(body)) else answered_well(body)

    api.answer = answer
    ran = run("textwrap", "--tools-per-call", "2", "--json")

    assert (ran.code, ran.json["written"], ran.json["left"]) == (1, 3, 2)
    assert {problem["code"] for problem in ran.json["problems"]} == {code}
    assert {problem["tool"] for problem in ran.json["problems"]} >= {"textwrap__dedent"}
    assert len(lines()) == 3
    again = run("textwrap", "--tools-per-call", "2")
    assert (again.code, code in again.out) == (1, True)


def test_one_cause_is_told_once_with_the_number_of_its_tools(run: Callable[..., Ran], api: LoopbackApi) -> None:
    api.answer = lambda _: Failure(400, "no such model")

    ran = run("textwrap", "--tools-per-call", "2")

    (told,) = [line for line in ran.out.splitlines() if "not_answered" in line]
    assert "5 tools" in told
    assert "no such model" in " ".join(ran.out.split())
    assert "textwrap__" not in ran.out


def test_what_cannot_be_used_is_told_before_anything_is_asked(
    run: Callable[..., Ran], command: Callable[..., Ran], api: LoopbackApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    def code_of(ran: Ran) -> tuple[int, str]:
        return ran.code, ran.err.splitlines()[-1].partition("[")[2].partition("]")[0]

    assert code_of(command("enrich", "textwrap", "--out", "r.jsonl")) == (2, "bad_setting")
    assert code_of(command("enrich", "textwrap", "--out", "r.jsonl", "--model", "m", "--format", "x")) == (
        2,
        "bad_setting",
    )
    assert code_of(run("textwrap", "--deny", "tag: ")) == (2, "bad_setting")
    nowhere = ("--model", "m", "--base-url", "localhost")
    assert code_of(command("enrich", "textwrap", "--out", "r.jsonl", *nowhere)) == (2, "bad_setting")
    Path("requests.jsonl").write_text("{}\n")
    assert code_of(run("textwrap")) == (3, "bad_requests_file")
    monkeypatch.delenv("OPENAI_API_KEY")
    Path("requests.jsonl").unlink()
    assert code_of(run("textwrap"))[1] == "chat_model_error"
    assert api.requests == []
