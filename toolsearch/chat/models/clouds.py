"""Who serves a model, as far as an SDK's client tells."""

from __future__ import annotations

from urllib.parse import urlsplit

from toolsearch.wire.capabilities import Cloud

# By the names of the SDKs' classes, since some can only be imported with a cloud's own libraries. Claude Platform on
# AWS (AsyncAnthropicAWS) is Anthropic's own API, whatever its address.
_CLIENTS: dict[str, Cloud] = {
    "AsyncAnthropicAWS": "",
    "AsyncAnthropicBedrock": "bedrock",
    "AsyncAnthropicBedrockMantle": "bedrock",
    "AsyncAnthropicFoundry": "azure",
    "AsyncAnthropicGoogleCloud": "vertex",
    "AsyncAnthropicVertex": "vertex",
    "AsyncAzureOpenAI": "azure",
    "AsyncBedrockOpenAI": "bedrock",
}


def cloud_of(client: object, own_host: str) -> Cloud:
    """The cloud that *client* is made for; "other" if it talks neither to *own_host*, the provider's, nor to a part of
    it, such as a region's.
    """
    for kind in type(client).__mro__:
        if kind.__name__ in _CLIENTS:
            return _CLIENTS[kind.__name__]
    host = urlsplit(str(getattr(client, "base_url", ""))).hostname or ""
    return "" if host == own_host or host.endswith(f".{own_host}") else "other"
