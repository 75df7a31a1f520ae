"""Found tools of a conversation: kept from turn to turn or not, and gone with an evicted session."""

from __future__ import annotations

from model import model_or

from toolsearch import (
    Catalog,
    CompositeEvictionStrategy,
    LruEvictionStrategy,
    SessionOptions,
    SessionStore,
    TtlEvictionStrategy,
)
from toolsearch.chat import ChatClient, ChatResponse, ScriptedModel, ToolSearchAdvisor, scripted_calls


def search(query: str) -> ChatResponse:
    return scripted_calls(("toolSearchTool", {"query": query, "limit": 1}))


def main() -> None:
    catalog = Catalog()
    catalog.load("module:statistics")
    # Tools stay in a model's list as long as its provider may have the list in its cache. Here there is no such cache.
    options = SessionOptions(cache_ttl_s=0)
    for accumulate in (True, False):
        # Only one conversation is kept in memory, and that for half an hour without use.
        strategy = CompositeEvictionStrategy(LruEvictionStrategy(max_sessions=1), TtlEvictionStrategy(ttl_s=1_800))
        advisor = ToolSearchAdvisor(accumulate=accumulate, options=options, sessions=SessionStore(strategy))
        model = model_or(search("median"), search("harmonic mean"), "Found both.", "Still here.", "Who?", "Gone.")
        client = ChatClient(model, tools=[catalog], advisors=[advisor])
        print("accumulating" if accumulate else "only the last finds")
        for conversation in ("ada", "ada", "bob", "ada"):
            said = client.prompt("Go on.").context(conversation_id=conversation).content_sync()
            shown = model.prompts[-1].options.tools if isinstance(model, ScriptedModel) else ()
            print(f"   {conversation}: {said} {[each.name for each in shown]}")
        print("   evicted by hand:", advisor.evict_session("ada"))


if __name__ == "__main__":
    main()
