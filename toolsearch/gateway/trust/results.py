"""How the results of each server are treated, as the settings say: passed on, marked, masked or held."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from mcp import MCPError

from toolsearch.documents.json_values import as_texts, is_list, is_object
from toolsearch.errors import ToolExecutionError
from toolsearch.gateway.settings import ResultTreatment
from toolsearch.gateway.trust.scan import SUSPICIOUS, marked
from toolsearch.scanning.masking import SECRET, is_secret_name, masked_text, may_hold_some
from toolsearch.tools.json_types import Json
from toolsearch.tools.naming import READ_SKILL
from toolsearch.wire.mcp.requests import META, NO_TEXTS, STRUCTURED, asks_for_input, meta_of

logger = logging.getLogger(__name__)
_MOST_AT_ONCE: Final = 65_536  # characters that are masked without a thread
_FEWEST_DIGITS: Final = 10**13  # a smaller number is none of a card
_DATA: Final = (STRUCTURED, META)  # fields of a result whose names are their server's


class Results:
    """Treats the results of each server as *treatment_of* says for its name."""

    def __init__(self, treatment_of: Callable[[str], ResultTreatment]) -> None:
        self._treatment_of = treatment_of

    async def inspected(self, server: str, method: str, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """*result*, which *method* has brought, masked and marked. Raises ToolExecutionError if it cannot be masked.

        A skill is not masked: a person has approved it, and its readers verify it byte by byte.
        """
        treatment = self._treatment_of(server)
        if treatment == "allow":
            return result
        if treatment == "mask" and method != READ_SKILL:
            result = await masked(result)
        return await marked(server, method, result, is_whole=treatment == "hold")

    def holds(self, server: str) -> bool:
        """Whether results of *server* wait for an operator if the scan finds something in them."""
        return self._treatment_of(server) == "hold"

    def reasons_to_hold(self, server: str, result: Mapping[str, Any]) -> list[str]:
        """The rules that found something in the inspected *result*, if it has to wait for an operator."""
        found = meta_of(result).get(SUSPICIOUS) if self.holds(server) else None
        return as_texts(found) or [str(found)] if found else []

    async def error(self, server: str, method: str, error: MCPError) -> tuple[MCPError, list[str]]:
        """*error*, by which *server* has refused a request, inspected as a result, and the reasons to hold it."""
        told = {"message": error.message, STRUCTURED: error.data}
        shown = await self.inspected(server, method, told)
        is_same = (shown["message"], shown[STRUCTURED]) == (error.message, error.data)
        shown_error = error if is_same else MCPError(error.code, shown["message"], shown[STRUCTURED])
        return shown_error, self.reasons_to_hold(server, shown)


async def masked(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """*result* with labels for secrets and for what is personal in its texts; the same object if there is none.

    Addresses of resources and binary contents stay as they are, and so do questions to the client, which are no result.
    Raises ToolExecutionError if it is nested too deeply.
    """
    if asks_for_input(result):
        return result
    try:
        texts = _texts_in(result)
        if sum(map(len, texts)) > _MOST_AT_ONCE:
            return await asyncio.to_thread(_masked_result, result, texts)
        return _masked_result(result, texts)
    except RecursionError:
        raise ToolExecutionError(
            "the gateway withholds the answer, because it is nested too deeply to be masked"
        ) from None


def _masked_result(result: Mapping[str, Any], texts: list[str]) -> Mapping[str, Any]:
    """Mostly there is nothing to mask."""
    if SECRET not in texts and not may_hold_some(texts):
        return result
    shown = {key: value if key in NO_TEXTS else _masked(value, is_data=key in _DATA) for key, value in result.items()}
    return result if shown == result else shown


def _texts_in(result: Mapping[str, Any]) -> list[str]:
    """All that is looked at. A value that is secret by its name counts as `SECRET`."""
    texts: list[str] = []

    def secret(_: Json) -> str:
        texts.append(SECRET)
        return SECRET

    def text(value: str) -> str:
        texts.append(value)
        return value

    for key, value in result.items():
        if key not in NO_TEXTS:
            _changed(value, text, secret, is_data=key in _DATA)
    return texts


def _masked(value: Json, *, is_data: bool = True) -> Json:
    return _changed(value, masked_text, lambda _: SECRET, is_data=is_data)


def _changed(value: Json, text: Callable[[str], str], secret: Callable[[Json], Json], *, is_data: bool) -> Json:
    """*value* with each text in it changed, and each text and number under a name that says that it is secret.

    In data, the keys are texts, too, and so are numbers of many digits. Outside of it, the fields are those of MCP.
    """
    change = partial(_changed, text=text, secret=secret, is_data=is_data)
    if isinstance(value, str):
        return text(value)
    if is_list(value):
        return [change(each) for each in value]
    if is_object(value):
        if is_data:
            return {
                text(key): _each_leaf(each, secret) if is_secret_name(key) else change(each)
                for key, each in value.items()
            }
        return {key: each if key in NO_TEXTS else change(each, is_data=key in _DATA) for key, each in value.items()}
    if is_data and isinstance(value, int | float) and abs(value) >= _FEWEST_DIGITS:
        digits = f"{abs(value):.0f}"
        changed = text(digits)
        return value if changed == digits else changed
    return value


def _each_leaf(value: Json, secret: Callable[[Json], Json]) -> Json:
    """*value* with each text and number in it changed; an empty text and a truth value say nothing."""
    if is_list(value):
        return [_each_leaf(each, secret) for each in value]
    if is_object(value):
        return {key: _each_leaf(each, secret) for key, each in value.items()}
    return value if value is None or value == "" or isinstance(value, bool) else secret(value)
