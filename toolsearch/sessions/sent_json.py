"""What the model was sent, as it is stored: definitions word for word, so that a restart hands out the same ones.

Deferred tools that no answer refers to are left out: a catalog may have thousands, and has them again after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple
from typing import Any, get_args

from toolsearch.sessions.sent import Sent
from toolsearch.tools.definition import ToolDefinition
from toolsearch.wire.capabilities import Endpoint, RevealMode

_OPTIONAL = ("description", "title", "output_schema", "annotations", "server")
_FIGURES = (
    "begun_s", "requested_s", "request_tokens", "prompt_tokens", "revealed_tokens", "breaks", "break_tokens",
    "history_cuts",
)  # fmt: skip


def write_sent(sent: Sent) -> dict[str, Any]:
    return {
        "endpoint": list(astuple(sent.endpoint)) if sent.endpoint else None,
        "mode": sent.mode,
        "listed": _written(sent.listed.values()),
        "revealed": _written(sent.revealed.values()),
        "removed": sorted(sent.removed),
        "answered": sorted(sent.answered),
        "referred": {name: _write(known) for name, known in sent.referred.items()},
        "left": list(sent.left),
        **{name: getattr(sent, name) for name in _FIGURES},
    }


def read_sent(document: Mapping[str, Any]) -> Sent:
    """Read back `write_sent`. Raises LookupError, TypeError or ValueError for what that did not write."""
    mode: RevealMode = document["mode"]
    if mode not in get_args(RevealMode):
        raise ValueError(f"no such mode: {mode!r}")
    endpoint: list[Any] | None = document["endpoint"]
    requested_s = document["requested_s"]
    return Sent(
        endpoint=Endpoint(*endpoint) if endpoint is not None else None,
        mode=mode,
        begun_s=float(document["begun_s"]),
        listed=_by_name(document["listed"]),
        deferred=None if mode == "deferred" else (),
        revealed=_by_name(document["revealed"]),
        removed=frozenset(document["removed"]),
        answered=frozenset(document["answered"]),
        referred={name: _read(known) for name, known in document["referred"].items()},
        left=tuple(document["left"]),
        revealed_tokens=int(document["revealed_tokens"]),
        requested_s=None if requested_s is None else float(requested_s),
        request_tokens=int(document["request_tokens"]),
        prompt_tokens=int(document["prompt_tokens"]),
        breaks=int(document["breaks"]),
        break_tokens=int(document["break_tokens"]),
        history_cuts=int(document["history_cuts"]),
    )


def _written(definitions: Iterable[ToolDefinition]) -> list[dict[str, Any]]:
    return list(map(_write, definitions))


def _write(definition: ToolDefinition) -> dict[str, Any]:
    """All that is not as it is by default. A schema is written in any case: equal ones may have another order."""
    schema: dict[str, Any] = {"name": definition.name, "input_schema": definition.input_schema}
    others = {name: getattr(definition, name) for name in _OPTIONAL}
    tags = {"tags": list(definition.tags)} if definition.tags else {}
    return {**schema, **{name: value for name, value in others.items() if value}, **tags}


def _by_name(definitions: Iterable[Mapping[str, Any]]) -> dict[str, ToolDefinition]:
    return {definition.name: definition for definition in map(_read, definitions)}


def _read(fields: Mapping[str, Any]) -> ToolDefinition:
    return ToolDefinition(**fields)
