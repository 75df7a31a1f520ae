"""Who serves a model, told by the SDK's client."""

from collections.abc import Callable

import pytest
from anthropic import AsyncAnthropic, AsyncAnthropicFoundry
from openai import AsyncAzureOpenAI, AsyncOpenAI

from toolsearch.chat.models.anthropic_messages import AnthropicModel
from toolsearch.chat.models.openai_chat import OpenAIChatModel
from toolsearch.chat.models.openai_responses import OpenAIResponsesModel
from toolsearch.chat.models.sdk import cloud_of
from toolsearch.wire.capabilities import Endpoint

_AZURE = "https://here.openai.azure.com"


class AsyncAnthropicBedrock:
    """Named as the SDK's, which needs boto3."""

    base_url = "https://bedrock-runtime.eu-west-1.amazonaws.com"


class OurOwnBedrock(AsyncAnthropicBedrock):
    """Somebody's subclass."""


def test_the_clients_class_tells_the_cloud() -> None:
    clients = {
        "bedrock": OurOwnBedrock(),
        "azure": AsyncAnthropicFoundry(api_key="k", resource="here"),
        "": AsyncAnthropic(api_key="k"),
    }

    assert {expected: cloud_of(client, "api.anthropic.com") for expected, client in clients.items()} == {
        "bedrock": "bedrock",
        "azure": "azure",
        "": "",
    }
    azure = AsyncAzureOpenAI(api_key="k", azure_endpoint=_AZURE, api_version="2026-01-01")
    assert OpenAIResponsesModel("gpt-5.4", client=azure).endpoint == Endpoint("openai-responses", "gpt-5.4", "azure")


@pytest.mark.parametrize(
    ("base_url", "cloud"),
    [
        ("https://api.openai.com/v1", ""),
        ("https://eu.api.openai.com/v1", ""),
        ("https://api.openai.com.evil.example/v1", "other"),
        ("https://evilapi.openai.com.example/v1", "other"),
        ("https://notapi.openai.com/v1", "other"),
        ("http://localhost:11434/v1", "other"),
    ],
)
def test_an_address_that_is_not_the_providers_own_is_another_cloud(base_url: str, cloud: str) -> None:
    assert cloud_of(AsyncOpenAI(api_key="k", base_url=base_url), "api.openai.com") == cloud


@pytest.mark.parametrize(
    ("make", "wire_format"),
    [(AnthropicModel, "anthropic"), (OpenAIChatModel, "openai"), (OpenAIResponsesModel, "openai-responses")],
)
def test_a_cloud_that_is_given_counts_and_another_address_is_not_trusted_with_native_search(
    make: Callable[..., AnthropicModel | OpenAIChatModel | OpenAIResponsesModel], wire_format: str
) -> None:
    known = {"anthropic": "claude-opus-5"}.get(wire_format, "gpt-5.4")
    strange = make(known, base_url="http://localhost:1", api_key="k")
    proxy = make(known, base_url="http://localhost:1", api_key="k", cloud="")

    assert (strange.endpoint, proxy.endpoint) == (
        Endpoint(wire_format, known, "other"),
        Endpoint(wire_format, known),
    )
    assert not strange.native_tool_search
    assert proxy.native_tool_search is (wire_format != "openai")
