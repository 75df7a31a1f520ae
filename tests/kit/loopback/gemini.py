"""Gemini's generateContent, for real programs alone: it takes every request, and remembers none.

A request names its model and says whether it wants a stream in its path; each event of a stream is a whole answer.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from tests.kit.loopback.script import Reply
from tests.kit.loopback.sse import event

PATH = re.compile(r"/v1(?:beta)?/models/[^/:]+:(?:generateContent|(?P<streamed>streamGenerateContent))")


def render(reply: Reply, body: dict[str, Any], new_id: Callable[[str], str]) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": reply.text}] if reply.text else []
    parts += [
        {"functionCall": {"id": new_id("call"), "name": call.name, "args": call.arguments}} for call in reply.calls
    ]
    usage = reply.usage
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": usage.input,
            "cachedContentTokenCount": usage.cached,
            "candidatesTokenCount": usage.output,
            "totalTokenCount": usage.input + usage.output,
        },
        "modelVersion": "m",
    }


def events(message: dict[str, Any], body: dict[str, Any]) -> Iterator[str]:
    yield event(message)


def error(status: int, code: str, message: str) -> dict[str, Any]:
    return {"error": {"code": status, "status": code.upper(), "message": message}}


def error_event(code: str, message: str) -> str:
    return event(error(500, code, message))
