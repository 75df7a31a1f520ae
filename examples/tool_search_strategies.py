"""Tool search for a chat client: choose the ranking, the number of tools, the pins and the instructions."""

from __future__ import annotations

from model import model_or

from toolsearch import Catalog, Strategy, ToolSearch
from toolsearch.chat import ChatClient, ScriptedModel, ToolSearchAdvisor, scripted_calls

QUERIES: dict[Strategy, str] = {
    "keyword": "median of numbers",
    "regex": "/^median/",
    "semantic": "median of data",
    "hybrid": "median",
}


def main() -> None:
    catalog = Catalog()
    for module in ("statistics", "math", "calendar"):
        catalog.load(f"module:{module}")

    for strategy, query in QUERIES.items():
        engine = ToolSearch(catalog, strategy=strategy)
        advisor = ToolSearchAdvisor(
            engine, limit=2, pins=["calendar__isleap"], system_suffix="Search for tools before you say no."
        )
        model = model_or(
            scripted_calls(("toolSearchTool", {"query": query})),
            scripted_calls(("statistics__median", {"data": [3, 1, 4]})),
            "It is 3.",
        )
        client = ChatClient(model, advisors=[advisor], system="Be brief.")
        said = client.prompt("What is the median of 3, 1 and 4?").context(conversation_id="ada").content_sync()
        print(f"{strategy}: {said}")
        if isinstance(model, ScriptedModel):
            for prompt in model.prompts[:2]:
                print("   shown:", ", ".join(each.name for each in prompt.options.tools))
            print("   told: ", repr(getattr(model.prompts[0].messages[0], "text", "")))
        engine.close()


if __name__ == "__main__":
    main()
