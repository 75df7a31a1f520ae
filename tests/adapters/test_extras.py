"""An adapter whose framework is not installed says what to install."""

import importlib
import sys

import pytest

from toolsearch.errors import MissingExtraError


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("claude_agent_sdk", "claude_agent_sdk", "claude-agent-sdk"),
        ("fastmcp", "fastmcp.server.dependencies", "fastmcp"),
        ("google_adk", "google.adk.agents.readonly_context", "google-adk"),
        ("langchain", "langchain", "langchain"),
        ("litellm", "litellm.integrations.custom_logger", "litellm"),
        ("llama_index", "llama_index", "llama-index"),
        ("openai_agents", "agents", "openai-agents"),
        ("pydantic_ai", "pydantic_ai", "pydantic-ai"),
    ],
)
def test_a_missing_framework_is_an_error_that_names_the_extra(
    module: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"toolsearch.adapters.{module}", raising=False)

    with pytest.raises(MissingExtraError, match=rf"run: pip install 'toolsearch\[{extra}\]'"):
        importlib.import_module(f"toolsearch.adapters.{module}")
