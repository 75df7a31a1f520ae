"""What a retriever gives where LlamaIndex asks by what the user said, and by the name of a tool that is called."""

import json

from story import engine_of_500, session_of

from toolsearch.adapters.llama_index import ToolSearchRetriever

session = session_of(engine_of_500(), "a")
looked_up: list[str] = []
resolve = session.resolve
session.resolve = lambda name: (looked_up.append(name), resolve(name))[1]
retriever = ToolSearchRetriever(session, search_first=1)
asked = ["send an email message", "send an email message", "send_mail", "book_room", "pay_bill", "convert money"]
print(json.dumps([[tool.metadata.name for tool in retriever.retrieve(each)] for each in asked]))
print(json.dumps(looked_up))
print(json.dumps(session.savings().requests))
