"""LangChain agents whose model says in each provider's words how its reply with a call ended.

``langchain_cut_off.py MESSAGE...``: fields of the message, as JSON. Prints what each call came to.
"""

import json
import sys
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from models.langchain import Bindable
from story import engine_of_500

from toolsearch.adapters.langchain import ToolSearchMiddleware


def outcome(fields: dict[str, Any]) -> str:
    engine = engine_of_500()
    call = {"name": "send_mail", "args": {"to": "Ada", "text": "hello"}, "id": "call_1"}
    model = Bindable(messages=iter([AIMessage("", tool_calls=[call], **fields), AIMessage("Done.")]))
    run = create_agent(model, middleware=[ToolSearchMiddleware(engine)]).invoke(
        {"messages": [HumanMessage("Write.")]}, {"configurable": {"thread_id": "ada"}}
    )
    return str(run["messages"][-2].text)


print(json.dumps([outcome(json.loads(fields)) for fields in sys.argv[1:]]))
