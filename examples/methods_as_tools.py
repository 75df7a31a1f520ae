"""Methods as tools: marked in their class, or wrapped if the class is not yours to change."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated

from model import model_or, show

from toolsearch import ToolCallbacks, ToolParam, tool, tool_from_function
from toolsearch.chat import ChatClient, scripted_calls


class Thermostat:
    def __init__(self, celsius: float) -> None:
        self.celsius = celsius

    @tool
    def read(self) -> float:
        """Get the temperature that is set, in degrees Celsius."""
        return self.celsius

    @tool(name="set_temperature", annotations={"idempotentHint": True})
    async def change(
        self, celsius: Annotated[float, ToolParam(description="Degrees Celsius, from 5 to 30.")], *, eco: bool = False
    ) -> str:
        """Set the temperature.

        Args:
            eco: Whether to heat slowly.
        """
        self.celsius = celsius
        return f"set to {celsius}, {'slowly' if eco else 'at once'}"

    def forget(self) -> None:
        """Not marked, so no model can call it."""


def main() -> None:
    marked = ToolCallbacks.from_object(Thermostat(celsius=18))
    name = PurePosixPath("/etc/hosts")
    programmatic = tool_from_function(name.with_suffix, name="rename", description="Give the file another suffix.")
    for each in (*marked, programmatic):
        schema = each.definition.input_schema
        print(f"{each.name}: {each.definition.description} {list(schema['properties'])}, {schema.get('required', [])}")

    model = model_or(
        scripted_calls(("set_temperature", {"celsius": 21}), ("rename", {"suffix": ".bak"})),
        "It will be 21 degrees, and the file is hosts.bak.",
    )
    show(ChatClient(model, tools=[marked, programmatic]).prompt("Make it 21, and back the file up.").call_sync())


if __name__ == "__main__":
    main()
