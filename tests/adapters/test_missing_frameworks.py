"""Without its framework, an adapter says what to install."""

import sys
from importlib import import_module

import pytest

from toolsearch import MissingExtraError


@pytest.mark.parametrize(
    ("adapter", "imports", "extra"),
    [
        ("claude_agent_sdk", "claude_agent_sdk", "claude-agent-sdk"),
        ("fastmcp", "fastmcp.server.dependencies", "fastmcp"),
        ("google_adk", "google.adk.agents.readonly_context", "google-adk"),
        ("litellm", "litellm.integrations.custom_logger", "litellm"),
    ],
)
def test_an_adapter_names_the_extra_that_is_missing(monkeypatch, adapter, imports, extra):
    monkeypatch.setitem(sys.modules, imports, None)
    monkeypatch.delitem(sys.modules, f"toolsearch.adapters.{adapter}", raising=False)

    with pytest.raises(MissingExtraError, match=rf"run: pip install 'toolsearch\[{extra}\]'"):
        import_module(f"toolsearch.adapters.{adapter}")
