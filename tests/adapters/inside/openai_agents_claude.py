"""What the server lists to an agent whose model is a Claude, and to another one."""

import asyncio
import json

from agents import Agent, RunContextWrapper
from story import engine_of_500

from toolsearch.adapters.openai_agents import ToolSearchServer

engine = engine_of_500()
server = ToolSearchServer(lambda run: engine.session(run.context))


async def listed(model: str) -> list[str]:
    run, agent = RunContextWrapper(f"user of {model}"), Agent("assistant", model=model)
    await server.list_tools(run, agent)
    engine.session(run.context).search("select:send_mail")
    return [tool.name for tool in await server.list_tools(run, agent)]


async def main() -> None:
    print(json.dumps([await listed(model) for model in ("litellm/anthropic/claude-sonnet-5", "gpt-5.1")]))


asyncio.run(main())
