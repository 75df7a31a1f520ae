"""A request that is answered whole, or streamed and put together again."""

from typing import Any

import pytest

from toolsearch.chat.advisor import ChatRequest, chain_of
from toolsearch.chat.model import ChatModel
from toolsearch.wire.answers import ChatResponse, aggregate


@pytest.fixture(params=["call", "stream"])
def run(request: pytest.FixtureRequest) -> Any:
    """Run a request through an advisor and a model; the response is to be the same."""

    async def whole(advisor: Any, model: ChatModel, asked: ChatRequest) -> ChatResponse:
        return await chain_of([advisor], model).call(asked)

    async def streamed(advisor: Any, model: ChatModel, asked: ChatRequest) -> ChatResponse:
        return aggregate([chunk async for chunk in chain_of([advisor], model).stream(asked)])

    return whole if request.param == "call" else streamed
