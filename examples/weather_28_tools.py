"""A question needs three of 28 tools: count the tokens with all of them, and with a search.

The setting of a comparison that Spring AI has published. With OPENAI_API_KEY or ANTHROPIC_API_KEY a real model is asked
(OPENAI_MODEL and ANTHROPIC_MODEL say which), otherwise a script plays one, and tokens are counted with o200k.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator

from toolsearch import (
    JsonObject,
    Tool,
    ToolCall,
    ToolDefinition,
    default_counter,
    tool,
    tool_from_function,
)
from toolsearch.chat import (
    AssistantMessage,
    ChatChunk,
    ChatClient,
    ChatModel,
    ChatResponse,
    Message,
    Prompt,
    ToolCallingAdvisor,
    ToolChangeMessage,
    ToolMessage,
    ToolSearchAdvisor,
    Usage,
)
from toolsearch.wire import Endpoint

QUESTION = "What should I wear in Amsterdam right now? Name clothing shops there that are open at this hour."


def current_time(location: str) -> str:
    """Get the current date and time of a location.

    Args:
        location: A city, such as Amsterdam.
    """
    return f"Saturday 13:20 in {location}"


def weather(location: str) -> str:
    """Get the current weather of a location: temperature, wind and rain.

    Args:
        location: A city, such as Amsterdam.
    """
    return f"{location}: 9 degrees Celsius, light rain, wind 30 km/h"


@tool(name="clothing_shops")
def open_shops(location: str, time: str) -> list[str]:
    """Find clothing shops of a location that are open at a given time.

    Args:
        location: A city, such as Amsterdam.
        time: A day and an hour, such as Saturday 13:20.
    """
    return [f"Raincoats of {location}", "The Warm Sock"] if time else []


# The others: name, description, and what each takes.
_DUMMIES = """
send_email|Send an email message to one or several recipients|to: The recipients; subject: The subject; body: The text
read_inbox|Read the newest email messages of the inbox|limit: How many; unread_only: Whether to skip what was read
create_event|Create an event in the calendar and invite people|title: What it is; start: When; attendees: Who comes
list_events|List the events of the calendar between two days|start: The first day; end: The last day
book_flight|Book a flight between two airports|origin: Airport code; destination: Airport code; date: The day
book_hotel|Book a hotel room for some nights|city: Where; check_in: The first night; nights: How many
track_parcel|Track where a parcel is and when it arrives|tracking_number: The number on the label
convert_currency|Convert an amount of money between currencies|amount: How much; source: From; target: To
stock_price|Get the latest price of a stock|symbol: The ticker symbol
transfer_money|Transfer money between bank accounts|source: From account; target: To account; amount: How much
list_transactions|List the transactions of a bank account|account: The account; month: The month
query_database|Run a read-only SQL query against the database|sql: The query; timeout: Seconds
create_ticket|Create a ticket in the issue tracker|title: The title; body: The description; labels: The labels
search_tickets|Search the tickets of the issue tracker|text: What to look for; state: Open or closed
merge_branch|Merge a git branch into another|source: The branch; target: Into which
list_commits|List the commits of a git branch|branch: The branch; limit: How many
restart_server|Restart a server of the data center|host: Its name; reason: Why
read_logs|Read the logs of a service between two moments|service: Its name; start: From; end: To
translate_text|Translate a text into another language|text: The text; language: Into which
summarize_document|Summarize a document in a few sentences|document_id: The document; sentences: How many
upload_file|Upload a file to the shared drive|path: The file; folder: Where to
resize_image|Resize an image to a width and height|path: The image; width: Pixels; height: Pixels
play_music|Play a song, an album or a playlist|title: Its name; device: Where
set_thermostat|Set the temperature of a room at home|room: The room; degrees: Celsius
order_food|Order a meal from a restaurant|restaurant: Its name; dishes: What; address: Where to
"""


def _dummy(line: str) -> Tool:
    name, description, parameters = line.split("|")
    properties = {
        key: {"type": "string", "description": meaning}
        for key, meaning in (parameter.split(": ") for parameter in parameters.split("; "))
    }
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return Tool(ToolDefinition(name, f"{description}.", schema))


TOOLS = (
    *(tool_from_function(function) for function in (current_time, weather, open_shops)),
    *map(_dummy, _DUMMIES.strip().splitlines()),
)


class ScriptedModel:
    """Plays a model that knows what it needs: it searches if it has to, asks for time and weather, then for shops."""

    provider = "scripted"
    endpoint = Endpoint("scripted")
    native_tool_search = False

    async def call(self, prompt: Prompt) -> ChatResponse:
        reply = _reply(prompt)
        shown = sum(_definition_tokens(tool.definition) for tool in prompt.options.tools)
        return ChatResponse(reply, usage=Usage(shown + _tokens(*prompt.messages), _tokens(reply)))

    async def stream(self, prompt: Prompt) -> AsyncIterator[ChatChunk]:
        response = await self.call(prompt)
        yield ChatChunk(text=response.text, message=response.message, usage=response.usage)


def _reply(prompt: Prompt) -> AssistantMessage:
    done = {
        result.name
        for message in prompt.messages
        if isinstance(message, ToolMessage)
        for result in message.results
    }  # fmt: skip
    needs_search = "current_time" not in {tool.name for tool in prompt.options.tools}
    if needs_search and not done:
        queries = ("current time of a city", "current weather", "clothing shops that are open")
        return _calling(*(("toolSearchTool", {"query": query, "limit": 1}) for query in queries))
    if "weather" not in done:
        return _calling(("current_time", {"location": "Amsterdam"}), ("weather", {"location": "Amsterdam"}))
    if "clothing_shops" not in done:
        return _calling(("clothing_shops", {"location": "Amsterdam", "time": "Saturday 13:20"}))
    return AssistantMessage("It is 9 degrees and raining: wear a raincoat. Raincoats of Amsterdam is open now.")


def _calling(*calls: tuple[str, JsonObject]) -> AssistantMessage:
    asked = (
        ToolCall(f"{name}-{number}", name, json.dumps(arguments)) for number, (name, arguments) in enumerate(calls)
    )
    return AssistantMessage(tool_calls=tuple(asked))


def _tokens(*messages: Message) -> int:
    counter = default_counter()
    total = 0
    for message in messages:
        if isinstance(message, ToolMessage):
            total += sum(counter.count(result.text) for result in message.results)
            continue
        if isinstance(message, ToolChangeMessage):
            total += sum(_definition_tokens(definition) for definition in message.added)
            continue
        total += counter.count(message.text)
        if isinstance(message, AssistantMessage):
            total += sum(_json_tokens([call.name, call.arguments]) for call in message.tool_calls)
    return total


def _definition_tokens(tool: ToolDefinition) -> int:
    return _json_tokens({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema})


def _json_tokens(value: object) -> int:
    return default_counter().count(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def model_of(environment: dict[str, str]) -> ChatModel:
    if environment.get("OPENAI_API_KEY"):
        from toolsearch.chat import OpenAIResponsesModel

        return OpenAIResponsesModel(environment.get("OPENAI_MODEL", "gpt-5-mini"))
    if environment.get("ANTHROPIC_API_KEY"):
        from toolsearch.chat import AnthropicModel

        return AnthropicModel(environment.get("ANTHROPIC_MODEL", "claude-sonnet-4-6"), cache_prompt=True)
    return ScriptedModel()


async def main() -> None:
    model = model_of(dict(os.environ))
    prompt = ChatClient(model, tools=TOOLS, system="Be brief.").prompt(QUESTION).context(conversation_id="amsterdam")
    totals: list[int] = []
    print(f"{len(TOOLS)} tools, {model.provider} model\n")
    print(f"{'':20}{'requests':>9}{'prompt':>9}{'written':>9}{'total':>9}")
    for name, advisor in (("all tools shown", ToolCallingAdvisor()), ("with tool search", ToolSearchAdvisor())):
        response = await prompt.advisors(advisor).call()
        usage, requests = response.usage, len(response.steps) // 2 + 1
        totals.append(usage.input_tokens + usage.output_tokens)
        print(f"{name:20}{requests:9}{usage.input_tokens:9,}{usage.output_tokens:9,}{totals[-1]:9,}")
    print(f"\n{1 - totals[1] / totals[0]:.0%} of the tokens saved\n\n{response.text}")


if __name__ == "__main__":
    asyncio.run(main())
