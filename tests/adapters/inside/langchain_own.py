"""An agent with a tool of its own beside ours, once without a thread, and once in one."""

import json

from langchain.agents import create_agent
from models.langchain import scripted
from story import engine_of_500

from toolsearch.adapters.langchain import ToolSearchMiddleware
from toolsearch.errors import BadSettingError


def now() -> str:
    """Say what time it is."""
    return "noon"


model = scripted([("now", {}), ("send_mail", {"to": "Ada", "text": "hello"}), ("no_such_tool", {})], "Done.")
agent = create_agent(model, tools=[now], middleware=[ToolSearchMiddleware(engine_of_500())])
said = {"messages": [{"role": "user", "content": "Go on."}]}
try:
    agent.invoke(said)
except BadSettingError as error:
    print(error)
run = agent.invoke(said, {"configurable": {"thread_id": "a"}})
print(json.dumps([[each.text, each.status] for each in run["messages"][2:5]]))
