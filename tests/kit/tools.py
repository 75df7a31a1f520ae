"""Tools that are run as they are, past any manager."""

from typing import Any

from toolsearch.catalog.source import LoadReport
from toolsearch.tools.definition import Tool, ToolContext
from toolsearch.tools.results import ToolOutput

ADA = ToolContext(user="ada")


async def run(made: Tool, context: ToolContext = ADA, **arguments: Any) -> Any:
    assert made.callback is not None
    return await made.callback.call(arguments, context)


async def call(report: LoadReport, name: str, **arguments: Any) -> ToolOutput:
    """Run the tool of that name that a source has loaded."""
    (tool,) = (tool for tool in report.tools if tool.name == name)
    output = await run(tool, ToolContext(), **arguments)
    assert isinstance(output, ToolOutput)
    return output


async def text_of(report: LoadReport, name: str, **arguments: Any) -> str:
    return str((await call(report, name, **arguments)).content[0]["text"])
