"""An MCP server over stdio whose tools become tasks, with the tools that the official conformance suite asks for.

It speaks of tasks as 2026 and as 2025-11-25 do. Its tasks end with it.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

from mcp import MCPError, types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

EXTENSION = "io.modelcontextprotocol/tasks"
MISSING = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
MADE = "made"
POLL_MS = 100
AT = "2026-07-28T12:00:00Z"
FORM = {"type": "object", "properties": {"confirm": {"type": "boolean"}}}

Work = Callable[["Job", dict[str, Any]], Awaitable[dict[str, Any]]]


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}], **more}


class Job:
    """One task, and the questions that wait for an answer."""

    def __init__(self, id_: str, work: Work, arguments: dict[str, Any]) -> None:
        self.id = id_
        self.questions: dict[str, tuple[dict[str, Any], asyncio.Future[dict[str, Any]]]] = {}
        self.asked = asyncio.Event()
        self.is_cancelled = False
        self.keys = count(1)
        self.run = asyncio.create_task(work(self, arguments))

    @property
    def status(self) -> str:
        if self.is_cancelled:
            return "cancelled"
        if self.run.done():
            return "failed" if self.run.exception() else "completed"
        return "input_required" if self.questions else "working"

    async def ask(self, message: str) -> dict[str, Any]:
        params = {"mode": "form", "message": message, "requestedSchema": FORM}
        key, answer = f"q{next(self.keys)}", asyncio.get_running_loop().create_future()
        self.questions[key] = (params, answer)
        self.asked.set()
        return await answer

    def answer(self, key: str, given: dict[str, Any]) -> None:
        if question := self.questions.pop(key, None):
            question[1].set_result(given)

    def cancel(self) -> None:
        if not self.run.done():
            self.is_cancelled = True
            self.run.cancel()

    def written(self, *, is_modern: bool) -> dict[str, Any]:
        ttl, poll = ("ttlMs", "pollIntervalMs") if is_modern else ("ttl", "pollInterval")
        times = {"createdAt": AT, "lastUpdatedAt": AT}
        return {"taskId": self.id, "status": self.status, **times, ttl: 60_000, poll: POLL_MS}

    def detailed(self) -> dict[str, Any]:
        written = self.written(is_modern=True)
        match self.status:
            case "completed":
                return {**written, "result": self.run.result()}
            case "failed":
                return {**written, "error": {"code": -32603, "message": str(self.run.exception())}}
            case "input_required":
                wanted = {key: {"method": "elicitation/create", "params": p} for key, (p, _) in self.questions.items()}
                return {**written, "inputRequests": wanted}
            case _:
                return written


async def slow_compute(_: Job, arguments: dict[str, Any]) -> dict[str, Any]:
    await asyncio.sleep(arguments.get("seconds", 0))
    return text(f"computed {arguments.get('label')}")


async def failing_job(*_: Any) -> dict[str, Any]:
    return text("it failed", isError=True)


async def protocol_error_job(*_: Any) -> dict[str, Any]:
    raise MCPError(-32603, "the server broke")


async def confirm_delete(job: Job, _: dict[str, Any]) -> dict[str, Any]:
    answer = await job.ask("Delete it?")
    return text(f"deleted: {answer['action']}")


async def multi_input(job: Job, _: dict[str, Any]) -> dict[str, Any]:
    answers = await asyncio.gather(job.ask("First?"), job.ask("Second?"))
    return text(", ".join(each["action"] for each in answers))


async def forever(*_: Any) -> dict[str, Any]:
    await asyncio.Event().wait()
    return {}


async def crash(*_: Any) -> dict[str, Any]:
    await asyncio.sleep(0.2)
    sys.exit("crashed")


async def with_name(_: Job, arguments: dict[str, Any]) -> dict[str, Any]:
    return text(f"Hello, {arguments['name']}")


OPTIONAL: dict[str, Work] = {
    "slow_compute": slow_compute,
    "protocol_error_job": protocol_error_job,
    "confirm_delete": confirm_delete,
    "multi_input": multi_input,
}
REQUIRED: dict[str, Work] = {"failing_job": failing_job, "forever": forever, "crash": crash, "greet_later": with_name}
JOBS: dict[str, Job] = {}
numbers = count(1)


def entry(name: str, support: str | None) -> dict[str, Any]:
    more = {"execution": {"taskSupport": support}} if support else {}
    return {"name": name, "description": f"{name}.", "inputSchema": {"type": "object"}, **more}


async def list_tools(ctx: Any, _: Any) -> dict[str, Any]:
    tools = [entry("greet", None), entry("test_tool_with_task", None)]
    tools += [entry(name, "optional") for name in OPTIONAL] + [entry(name, "required") for name in REQUIRED]
    if is_modern(ctx):
        tools = [{key: value for key, value in tool.items() if key != "execution"} for tool in tools]
    return {"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"}


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> dict[str, Any]:
    name, arguments = params.name, params.arguments or {}
    if name == "greet":
        return {"resultType": "complete", **text(f"Hello, {arguments.get('name')}!")}
    if name == "test_tool_with_task":
        if not params.input_responses:
            asked = {"mode": "form", "message": "Your name?", "requestedSchema": FORM}
            questions = {"user_name": {"method": "elicitation/create", "params": asked}}
            return {"resultType": "input_required", "inputRequests": questions, "requestState": "named"}
        answer = params.input_responses["user_name"]
        return made(ctx, "greet_later", {"name": str(answer)})
    if not takes_task(ctx, params):
        if name in REQUIRED:
            raise (
                MCPError(-32021, "Missing required client capability", MISSING)
                if is_modern(ctx)
                else MCPError(-32601, "it is only run as a task")
            )
        job = Job("", OPTIONAL[name], arguments)
        return {"resultType": "complete", **await job.run}
    return made(ctx, name, arguments)


def made(ctx: Any, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    job = Job(f"job-{next(numbers)}", {**OPTIONAL, **REQUIRED}[name], arguments)
    JOBS[job.id] = job
    written = job.written(is_modern=is_modern(ctx))
    return {"resultType": "task", **written} if is_modern(ctx) else {"content": [], "_meta": {MADE: written}}


async def unpack_made(ctx: Any, call_next: Any) -> Any:
    """The SDK takes no task for a result of 2025, so one is put in its place afterwards."""
    result = await call_next(ctx)
    made = result.get("_meta", {}).get(MADE) if isinstance(result, dict) else None
    return result if made is None else {"task": made}


def is_modern(ctx: Any) -> bool:
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def takes_task(ctx: Any, params: Any) -> bool:
    if not is_modern(ctx):
        return params.task is not None
    return EXTENSION in (ctx.session.client_capabilities.extensions or {})


class TaskParams(types.RequestParams):
    task_id: str
    input_responses: dict[str, Any] | None = None


def found(params: TaskParams) -> Job:
    if params.task_id not in JOBS:
        raise MCPError(-32602, "Task not found")
    return JOBS[params.task_id]


async def get_task(ctx: Any, params: TaskParams) -> dict[str, Any]:
    job = found(params)
    return job.detailed() if is_modern(ctx) else job.written(is_modern=False)


async def update_task(_: Any, params: TaskParams) -> dict[str, Any]:
    job = found(params)
    for key, given in (params.input_responses or {}).items():
        job.answer(key, given)
    return {}


async def cancel_task(ctx: Any, params: TaskParams) -> dict[str, Any]:
    job = found(params)
    job.cancel()
    return {} if is_modern(ctx) else job.written(is_modern=False)


async def task_result(ctx: Any, params: TaskParams) -> dict[str, Any]:
    """Of 2025: it asks the questions of the task, and waits for its end."""
    job = found(params)
    while not job.run.done():
        for key, (asked, _) in list(job.questions.items()):
            answer = await ctx.session.elicit_form(
                asked["message"], asked["requestedSchema"], related_request_id=ctx.request_id
            )
            job.answer(key, answer.model_dump(mode="json", exclude_none=True))
        asked_now = asyncio.create_task(job.asked.wait())
        await asyncio.wait({job.run, asked_now}, return_when=asyncio.FIRST_COMPLETED)
        asked_now.cancel()
        job.asked.clear()
    if job.is_cancelled:
        raise MCPError(-32603, "Task cancelled")
    return {**job.run.result(), "_meta": {"io.modelcontextprotocol/related-task": {"taskId": job.id}}}


class TaskServer(Server[Any]):
    """Declares tasks to clients of 2025-11-25 as well."""

    def get_capabilities(self, *args: Any, **options: Any) -> types.ServerCapabilities:
        capabilities = super().get_capabilities(*args, **options)
        if options.get("protocol_version") not in MODERN_PROTOCOL_VERSIONS:
            calls = types.ServerTasksRequestsCapability(
                tools=types.TasksToolsCapability(call=types.TasksCallCapability())
            )
            capabilities.tasks = types.ServerTasksCapability(requests=calls)
        return capabilities


async def main() -> None:
    server = TaskServer("tasks", on_list_tools=list_tools, on_call_tool=call_tool)
    server.extensions |= {EXTENSION: {}}
    server.middleware.append(unpack_made)
    for method, handler in {
        "tasks/get": get_task,
        "tasks/update": update_task,
        "tasks/cancel": cancel_task,
        "tasks/result": task_result,
    }.items():
        server.add_request_handler(method, TaskParams, handler)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
