"""Server-sent events, and a text in the pieces in which a model would write it."""

import json
from typing import Any


def event(data: dict[str, Any] | str, name: str = "") -> str:
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {name}\n" if name else "") + f"data: {text}\n\n"


def pieces(text: str, size: int = 6) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]
