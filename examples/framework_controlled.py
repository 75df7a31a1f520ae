"""The tool loop, run for you: bound it, choose its calls, and ask a person to approve them."""

from __future__ import annotations

from model import model_or, show

from toolsearch import Allow, CallLimits, Deny, Edit, Tool, ToolCall, ToolCallingManager, ToolContext, tool
from toolsearch.chat import ChatClient, ChatResponse, ToolCallingAdvisor, scripted_calls


@tool(annotations={"readOnlyHint": True})
def search_files(pattern: str, limit: int = 1_000) -> str:
    """Search for files."""
    return f"{limit} files like {pattern}"


@tool
def delete_file(name: str) -> str:
    """Delete a file."""
    return f"{name} is gone"


def approve(call: ToolCall, wanted: Tool, context: ToolContext) -> Allow | Deny | Edit:
    """Stands for a person who is asked; an async function may wait for one as long as it takes."""
    if call.name == "search_files":
        return Edit({**call.parsed_arguments, "limit": 10})
    return (
        Allow()
        if wanted.definition.annotations.get("readOnlyHint")
        else Deny(f"{context['user']} wants to keep the file")
    )


def only_reading(response: ChatResponse) -> bool:
    return all(call.name.startswith("search") for call in response.message.tool_calls)


def main() -> None:
    search, delete = ("search_files", {"pattern": "*.tmp"}), ("delete_file", {"name": "a.tmp"})
    limits = CallLimits(per_tool_overrides={"search_files": 1})
    model = model_or(
        scripted_calls(search, delete),
        "I found 10 files and left a.tmp where it is.",
        scripted_calls(search),
        scripted_calls(search),
        "I may not search any more.",
        scripted_calls(delete),
    )
    client = ChatClient(model, tools=[search_files, delete_file], tool_context={"user": "Ada"})
    request = client.prompt("Clean up.")

    show(request.advisors(ToolCallingAdvisor(ToolCallingManager(before=[approve]))).call_sync())
    show(request.advisors(ToolCallingAdvisor(ToolCallingManager(limits=limits))).call_sync())

    # Calls that are not eligible are left to the caller.
    response = request.advisors(ToolCallingAdvisor(eligibility=only_reading)).call_sync()
    print(f"{response.finish_reason}: {[call.name for call in response.message.tool_calls]}")


if __name__ == "__main__":
    main()
