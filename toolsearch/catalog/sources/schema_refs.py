"""References within one document: followed, gathered under ``$defs``, never fetched."""

from __future__ import annotations

from collections import deque
from urllib.parse import unquote

from toolsearch.catalog.sources.schema_dialect import LEFT_OUT, MAX_NODES, Converted, convert_schema
from toolsearch.documents.json_values import is_list, is_object
from toolsearch.errors import BadToolError
from toolsearch.tools.definition import legal_name
from toolsearch.tools.json_types import Json, JsonObject

_MAX_CHAIN = 20  # references to references


class SchemaLibrary:
    """The schemas of one document. Each is converted once and shared by all tools that use it, also in memory.

    So a document costs time in its own size, and a cycle of references stays one: nothing is written out in place.
    """

    def __init__(self, document: JsonObject) -> None:
        self._document = document
        self._names: dict[str, str] = {}  # by reference
        self._taken: set[str] = set()
        self._converted: dict[str, Converted] = {}

    def convert(self, schema: Json) -> Converted:
        """Raises BadToolError if a reference leads out of the document or nowhere."""
        return convert_schema(schema, self._name)

    def definitions(self, *users: Converted) -> dict[str, Json]:
        """Return the ``$defs`` that *users* need, nearest first; beyond `MAX_NODES` schemas they admit any value."""
        budget = MAX_NODES - sum(user.nodes for user in users)
        waiting = deque(reference for user in users for reference in user.references)
        definitions: dict[str, Json] = {}
        while waiting:
            reference = waiting.popleft()
            name = self._name(reference)
            if name in definitions:
                continue
            converted = self._component(reference)
            if converted.nodes > budget:
                definitions[name] = LEFT_OUT
                continue
            budget -= converted.nodes
            definitions[name] = converted.schema
            waiting.extend(converted.references)
        return definitions

    def follow(self, value: Json) -> Json:
        """Return what *value* stands for: itself, unless it is a reference. Raises BadToolError as `convert` does."""
        for _ in range(_MAX_CHAIN):
            reference = value.get("$ref") if is_object(value) else None
            if not isinstance(reference, str):
                return value
            value = self._look_up(reference)
        raise BadToolError("its references go round in a circle")

    def _component(self, reference: str) -> Converted:
        if reference not in self._converted:
            self._converted[reference] = self.convert(self._look_up(reference))
        return self._converted[reference]

    def _name(self, reference: str) -> str:
        if reference not in self._names:
            self._look_up(reference)
            base = legal_name(unquote(reference.rpartition("/")[2])) or "schema"
            name, number = base, 2
            while name in self._taken:
                name, number = f"{base}_{number}", number + 1
            self._taken.add(name)
            self._names[reference] = name
        return self._names[reference]

    def _look_up(self, reference: str) -> Json:
        if not reference.startswith("#/"):
            raise BadToolError(f"it refers to {reference!r}, outside of this document, and nothing is fetched")
        found: Json = self._document
        for step in reference[2:].split("/"):
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            if is_object(found) and key in found:
                found = found[key]
            elif is_list(found) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            else:
                raise BadToolError(f"it refers to {reference!r}, which is not in the document")
        return found
