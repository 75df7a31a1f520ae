"""About how many tokens all definitions take, without looking at each of thousands."""

import pytest

from toolsearch import Catalog, Reach, ToolDefinition, ToolSearch
from toolsearch.tokens import HeuristicTokenCounter, definition_tokens


def catalog_of(count: int) -> list[ToolDefinition]:
    """Every tenth description is ten times as long as the others."""
    return [ToolDefinition(f"tool_{n:05}", "word " * (100 if n % 10 == 0 else 10)) for n in range(count)]


def exact(definitions: list[ToolDefinition]) -> int:
    return sum(definition_tokens(each, HeuristicTokenCounter()) for each in definitions)


@pytest.mark.parametrize("count", [0, 1, 1_000, 1_999])
def test_up_to_two_thousand_tools_are_all_looked_at(count: int) -> None:
    definitions = catalog_of(count)
    with ToolSearch(Catalog(definitions), encoder=None) as engine:
        assert engine.view(Reach()).estimated_tokens == exact(definitions)


def test_of_more_tools_some_are_looked_at_all_over_the_names(monkeypatch: pytest.MonkeyPatch) -> None:
    definitions = catalog_of(7_000)
    looked_at: set[str] = set()
    with ToolSearch(Catalog(definitions), encoder=None) as engine:
        find = engine.catalog.find

        def noted(name: str) -> object:
            looked_at.add(name)
            return find(name)

        monkeypatch.setattr(engine.catalog, "find", noted)
        estimated = engine.view(Reach()).estimated_tokens
    assert looked_at == {f"tool_{n:05}" for n in range(0, 7_000, 7)}
    assert estimated == pytest.approx(exact(definitions), rel=0.01)
