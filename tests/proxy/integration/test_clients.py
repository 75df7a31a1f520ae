"""Real programs that nobody changed, through the proxy: each finds one of its own tools and runs it, as without."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.clients.installing import Programs
from benchmarks.clients.running import scripted_model
from tests.kit.framework_environment import Framework
from tests.kit.proxied import served_proxy
from tests.kit.published_servers import needs_node
from tests.kit.real_clients import (
    CLOCK,
    LIBRARIES,
    Finder,
    Library,
    asked,
    published_tools,
    write_listing,
)
from toolsearch.wire.capabilities import Cloud

AGENTS = ("claude-code", "codex", "opencode", "qwen")
OURS = re.compile(rb'"[\w-]+_(toolsearch|ts)_[\w-]+"')  # an id that the proxy made, which no model API knows
_TO_INSTALL_S = 600
_WAYS = [
    pytest.param(library, wire, mode, id=f"{library.name}-{wire}-{mode}")
    for library in LIBRARIES
    for wire in library.wires
    for mode in ("whole", "stream")
]
_Tools = Mapping[str, Sequence[dict[str, Any]]]
pytestmark = [needs_node, pytest.mark.timeout(_TO_INSTALL_S)]


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> _Tools:
    return asyncio.run(published_tools(tmp_path_factory.mktemp("servers")))


@pytest.mark.parametrize(
    ("name", "cloud", "model"),
    [
        *((name, None, "") for name in AGENTS),
        pytest.param("codex", "", "", id="codex-messages"),
        pytest.param("claude-code", "", "claude-opus-5", id="claude-code-messages"),
        pytest.param("claude-code", "", "claude-sonnet-5", id="claude-code-deferred"),
    ],
)
def test_an_agent_finds_and_runs_its_own_tool(
    name: str, cloud: Cloud | None, model: str, programs: Programs, tools: _Tools, tmp_path: Path
) -> None:
    """At its provider itself, messages add the found tools, or answers load them, as the model takes it."""
    _, direct = asked(name, programs, tools, tmp_path / "direct", model=model, is_behind=False)
    finder, behind = asked(name, programs, tools, tmp_path / "behind", model=model, cloud=cloud)

    assert "It is done." in direct.output
    assert "It is done." in behind.output
    assert finder.has_searched
    shown = [[tool for tool in run.seen[0].tools if not tool.is_deferred] for run in (behind, direct)]
    assert len(shown[0]) < len(shown[1])
    assert len({seen.listing for seen in behind.seen}) == 1
    assert not [request.raw for request in behind.requests if OURS.search(request.raw)]


@pytest.mark.parametrize(("library", "wire", "mode"), _WAYS)
def test_a_library_finds_and_runs_its_own_tool(
    library: Library, wire: str, mode: str, framework: Callable[[str], Framework], tools: _Tools, tmp_path: Path
) -> None:
    """A second prompt follows, with the history as the library has kept it."""
    listing = tmp_path / "tools.json"
    write_listing(listing, tools)
    model = Finder(CLOCK, CLOCK.name)
    with scripted_model() as api, served_proxy(api.url) as url:
        api.play = model
        told = library.ask(framework, url, wire, listing, CLOCK.prompt, "Thank you.", mode=mode)

    assert told.calls == [(CLOCK.name, dict(CLOCK.arguments))]
    assert told.answers == ["It is done.", "It is done."]
    assert model.has_searched
    assert len(api.bodies[0]["tools"]) < len(json.loads(listing.read_text(encoding="utf-8")))
    assert len({request.seen.listing for request in api.requests}) == 1
    assert not [request.raw for request in api.requests if OURS.search(request.raw)]
