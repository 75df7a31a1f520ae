"""No model: what speaks to a server of FastMCP is a client."""

from typing import Any


def scripted(*_replies: Any) -> None: ...
