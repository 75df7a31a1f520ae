"""What a model reads of an error is something that it can act on; what a developer has to do is logged instead."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence

import pytest

from toolsearch import Catalog, FunctionToolCallback, PassThrough, SessionOptions, ToolSearch
from toolsearch.errors import EncoderError, ToolSearchError, text_for_model
from toolsearch_indexes.encoders.protocol import FloatArray
from toolsearch_indexes.encoders.static import HashingEncoder

FOR_DEVELOPERS = "run: pip install 'toolsearch[x]', set TOOLSEARCH_X, pass ChatOptions, look at /srv/app"

# The messages of these are written so that a model, or the person it talks to, can act on them.
FOR_MODELS = {
    "BadArgumentsError",
    "BadPatternError",
    "BadQueryError",
    "CallDeniedError",
    "CallLimitError",
    "ChangedSkillError",
    "LoginRequiredError",
    "NotCallableHereError",
    "RepeatedCallError",
    "ServerUnavailableError",
    "ToolExecutionError",
    "ToolStuckError",
    "TooManyError",
    "ToolTimeoutError",
    "UnapprovedToolError",
    "UndiscoveredToolError",
    "UnfinishedCallError",
    "UnknownToolError",
}


def classes(root: type[ToolSearchError] = ToolSearchError) -> Iterator[type[ToolSearchError]]:
    for kind in root.__subclasses__():
        if kind.__module__ in ("toolsearch.errors", "toolsearch_indexes.errors"):
            yield kind
        yield from classes(kind)


def made(kind: type[ToolSearchError]) -> ToolSearchError:
    error = kind.__new__(kind)
    Exception.__init__(error, FOR_DEVELOPERS)
    return error


def engine(*functions: object, **options: object) -> ToolSearch:
    tools = functions or (FunctionToolCallback.build("idle", lambda: None),)
    session = SessionOptions(pass_through=PassThrough(max_tools=0))
    return ToolSearch(Catalog(tools), options=session, **{"encoder": None, **options})  # type: ignore[arg-type]


def answer(engine: ToolSearch, name: str, **arguments: object) -> str:
    """What a model reads of a call of *name*."""
    reply = {"tool_calls": [{"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}]}
    (message,) = engine.session("a").execute_sync(reply)
    return str(message["content"]).removeprefix("Error: ")


def test_each_error_is_either_written_for_models_or_has_a_text_for_them() -> None:
    assert {kind.__name__ for kind in classes() if not kind.model_text} == FOR_MODELS


@pytest.mark.parametrize("kind", sorted(classes(), key=lambda kind: kind.__name__))
def test_what_only_a_developer_can_act_on_reaches_the_log_and_no_model(
    kind: type[ToolSearchError], caplog: pytest.LogCaptureFixture
) -> None:
    def run() -> None:
        raise made(kind)

    with caplog.at_level(logging.INFO):
        told = answer(engine(FunctionToolCallback.build("broken", run)), "broken")

    if kind.__name__ in FOR_MODELS:
        assert told == FOR_DEVELOPERS
    else:
        assert told == kind.model_text
        assert FOR_DEVELOPERS in caplog.text


def test_a_search_by_meaning_whose_encoder_fails_tells_the_model_how_to_go_on() -> None:
    class Failing(HashingEncoder):
        def encode_queries(self, texts: Sequence[str]) -> FloatArray:  # noqa: ARG002
            raise EncoderError("the model in '/srv/model' cannot be loaded")

    told = answer(engine(encoder=Failing(32)), "toolSearchTool", query="anything", strategy="semantic")
    assert told == "searching by meaning does not work at the moment; search by a /pattern/, or by select:NAME"


@pytest.mark.parametrize("value", [asyncio.Lock, lambda: 10**5_000])
def test_a_result_without_a_json_form_is_not_explained_to_the_model(value: object) -> None:
    told = answer(engine(FunctionToolCallback.build("odd", value)), "odd")  # type: ignore[arg-type]
    assert told == "the tool ran, but its result cannot be shown; go on without it, or use another tool"


def test_an_error_that_is_not_ours_keeps_its_words() -> None:
    assert text_for_model(ValueError("no such city")) == "no such city"
