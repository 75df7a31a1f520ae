"""A person at a client, who answers what servers ask."""

from typing import Any

from mcp import types


class Person:
    """Answers a client's questions, and remembers them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked: list[str] = []

    async def elicit(self, _context: Any, params: Any) -> types.ElicitResult:
        self.asked.append(params.message)
        return types.ElicitResult(action="accept", content={"name": self.name})

    async def sample(self, _context: Any, params: Any) -> types.CreateMessageResult:
        self.asked.append(params.messages[0].content.text)
        content = types.TextContent(type="text", text="four")
        return types.CreateMessageResult(role="assistant", content=content, model="m")

    async def roots(self, _context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri="file:///home/ann")])

    @property
    def callbacks(self) -> dict[str, Any]:
        return {
            "elicitation_callback": self.elicit,
            "sampling_callback": self.sample,
            "list_roots_callback": self.roots,
        }
