"""The model APIs of OpenAI and Anthropic on the loopback interface, as strict as the real ones, answering by a script.

    from tests.kit.loopback import Call, Failure, LoopbackApi, Reply

    async def test_it(api: LoopbackApi) -> None:  # api is a fixture of every test
        api.script(Reply(calls=[Call("add", {"a": 1, "b": 2}), Call("now")]), Reply("It is 3."))
        openai = AsyncOpenAI(api_key="k", base_url=api.openai_url)        # Chat Completions and Responses
        anthropic = AsyncAnthropic(api_key="k", base_url=api.url)         # Messages
        ...
        assert api.refusals == []
        assert api.tools == [["add", "now"], ["add", "now"]]             # names, request by request
        assert api.bodies[1]["messages"][-1]["content"] == "3"           # what stood on the wire

One script serves these three dialects, whole or streamed as the request asks. A request that the real API would refuse
is refused as it would be (400 and the reason, in `refusals` too) and uses up no reply: malformed tools, calls without
results, results without calls, unknown tool references, changed history, and what its model does not take (see
`models`). A conversation is known again by the ids of the calls in it, which are unique, and thinking by its signature,
which newer models of Anthropic bind to the tools, the system text and all messages before it; set
``api.remembers = False`` where history is meant to be cut.

- `Failure(429)` or `Failure(500)` in a script answers with that status.
- `Reply(ending="held")` streams half an answer and then waits until the client hangs up (`api.hung_up`, an Event);
  "cut" drops the connection there, "unfinished" ends the stream in good order but too early.
- `Reply(calls=[...], cut=9, stop="length")` ends after 9 characters of the last call's arguments, as each dialect does;
  ``ended="pause_turn"`` gives the reason word for word, ``ended=None`` none at all.
- `Raw(None)` answers with a body of null, or with any other JSON; its events are for streams.
- ``api.answer = lambda body: Reply(...)`` instead of a script decides by the request, for concurrent conversations.
- ``api.cache = PromptCache(clock)`` gives, in place of the replies' `usage`, what a prompt cache would read and write.
- `available_tools(request)` are the names that the model may call, whatever way they came to it.
- `LoopbackApi(is_strict=False)` is for real programs: it takes what they send, serves Gemini as well, and remembers
  nothing. ``api.play = lambda seen: Reply(...)`` is told what the model reads (`Seen`), whatever the dialect.
- In a Responses request with ``{"type": "tool_search"}``, a `Call("toolSearchTool", {...})` becomes a tool_search_call.
"""

from tests.kit.loopback.prompt_cache import PromptCache
from tests.kit.loopback.script import Call, Failure, Raw, Reply, TokenCounts
from tests.kit.loopback.seen import Seen, SeenTool
from tests.kit.loopback.server import LoopbackApi, Request, available_tools

__all__ = [
    "Call",
    "Failure",
    "LoopbackApi",
    "PromptCache",
    "Raw",
    "Reply",
    "Request",
    "Seen",
    "SeenTool",
    "TokenCounts",
    "available_tools",
]
