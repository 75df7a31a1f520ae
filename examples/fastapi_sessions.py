"""A FastAPI application with a session for each user: reach, found tools and messages.

Needs `pip install '.[service,client]'`: FastAPI, and an HTTP client to try it out. Here requests reach the application
without a server. With a key for a real model, it can be served:

    uvicorn --app-dir examples --factory fastapi_sessions:create_app
"""

from __future__ import annotations

import asyncio
from typing import Annotated

import httpx2
from fastapi import Depends, FastAPI, Header, HTTPException, Request
from model import model_or
from pydantic import BaseModel

from toolsearch import Catalog, Principal, Reach, ToolSearch
from toolsearch.chat import ChatClient, MemoryAdvisor, MessageWindowMemory, ToolSearchAdvisor, scripted_calls

USERS = {  # by the key that a request brings
    "key-of-ada": Principal("ada"),
    "key-of-bob": Principal("bob", Reach.parse(deny=["statistics__*"])),
}


class Question(BaseModel):
    text: str


def user_of(x_api_key: Annotated[str, Header()]) -> Principal:
    if x_api_key not in USERS:
        raise HTTPException(401, "no such key")
    return USERS[x_api_key]


User = Annotated[Principal, Depends(user_of)]


async def ask(question: Question, user: User, request: Request) -> dict[str, str]:
    """One turn of the user's conversation. Who the user is comes from the key, and from nothing else that is sent."""
    client: ChatClient = request.app.state.client
    turn = client.prompt(question.text).context(conversation_id=user.id, principal=user)
    return {"answer": await turn.content()}


def found(user: User, request: Request) -> list[str]:
    """What the user's session has found so far. A plain function: FastAPI runs it in a thread."""
    engine: ToolSearch = request.app.state.engine
    return engine.session(user.id, principal=user).discovered


def create_app() -> FastAPI:
    """One engine serves all users: a session holds names of tools, not an index."""
    engine = ToolSearch(Catalog.from_module("statistics"))
    search = scripted_calls(("toolSearchTool", {"query": "median of numbers", "limit": 1}))
    median = scripted_calls(("statistics__median", {"data": [3, 1, 4]}))
    model = model_or(search, median, "It is 3.", search, median, "I have no tool for that.", "It was 3.")
    app = FastAPI()
    app.state.engine = engine
    app.state.client = ChatClient(model, advisors=[ToolSearchAdvisor(engine), MemoryAdvisor(MessageWindowMemory())])
    app.add_api_route("/ask", ask, methods=["POST"])
    app.add_api_route("/found", found, methods=["GET"])
    return app


async def main() -> None:
    transport = httpx2.ASGITransport(app=create_app())
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        for user, text in (
            ("ada", "The median of 3, 1 and 4?"),
            ("bob", "The median of 3, 1 and 4?"),
            ("ada", "Again?"),
        ):
            key = {"X-Api-Key": f"key-of-{user}"}
            answer = (await http.post("/ask", headers=key, json={"text": text})).json()["answer"]
            print(f"{user}: {text} {answer} {(await http.get('/found', headers=key)).json()}")
        print("eve:", (await http.post("/ask", headers={"X-Api-Key": "guessed"}, json={"text": "Hello"})).status_code)


if __name__ == "__main__":
    asyncio.run(main())
