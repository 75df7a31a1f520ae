"""Makes entries of a catalog from the skills, prompts, resources and resource templates that a server lists."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import unquote

from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate, Variable

from toolsearch.documents.json_values import is_list, is_object
from toolsearch.documents.skills import MOST_INSTRUCTIONS, SKILL_FILE, Skill
from toolsearch.errors import BadToolError, shown_name
from toolsearch.tools.definition import NO_PARAMETERS, READ_ONLY, EntryKind, Refusal, Tool, ToolDefinition, ToolOrigin
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import MAX_NAME_LENGTH, all_namespaced, distinct, title_with_name
from toolsearch.upstreams.interface import Listing
from toolsearch.wire.mcp.lists import PROMPTS, RESOURCES, SKILLS, TEMPLATES, ListOf, is_directory

_CAN_BE_LEFT_OUT: Final = frozenset({"?", "&", ";"})  # operators of a URI template, before the names of variables


def read_contents(listing: Listing) -> tuple[list[Tool], list[Refusal]]:
    """Return the skills, prompts, resources and templates of *listing* as entries, and a refusal for each unusable one.

    An entry is named ``server__name``. If a tool or an entry of an earlier kind has that name, ``_skill``, ``_prompt``
    or ``_resource`` is added. Skills or resources that share a name are named by their paths. The `remote_name` of an
    origin is the name of a prompt, the URI of a skill or a resource, or the template. Resources that are files of a
    listed skill are left out, since they are read as parts of it.
    """
    reading = _Reading(listing)
    reading.add(SKILLS, "skill", listing.skills, _skill)
    reading.add(PROMPTS, "prompt", listing.prompts, _prompt)
    reading.add(RESOURCES, "resource", reading.without_files_of_skills(listing.resources), _resource)
    reading.add(TEMPLATES, "resource", listing.resource_templates, _template)
    return reading.entries, reading.refused


# Makes a definition from an entry and its server; the name is the server's own. Raises BadToolError.
_Define = Callable[[JsonObject, str], ToolDefinition]


class _Reading:
    """The entries of one listing, as far as they have been read."""

    def __init__(self, listing: Listing) -> None:
        self.entries: list[Tool] = []
        self.refused: list[Refusal] = []
        self._listing = listing
        self._taken = {tool.name for tool in listing.tools}

    def add(self, listed: ListOf, kind: EntryKind, raws: Collection[JsonObject], define: _Define) -> None:
        server = self._listing.server
        sound: dict[str, tuple[JsonObject, ToolDefinition]] = {}
        for raw in raws:
            key = listed.name_of(raw) or ""
            try:
                self._require_readable(raw)
                sound[key] = raw, define(raw, server)
            except BadToolError as reason:
                self.refused.append(Refusal(f"{server}: {kind} {shown_name(key)}", server, str(reason)))
        names = self._names(kind, {key: definition.name for key, (_, definition) in sound.items()})
        for key, (raw, own) in sound.items():
            # A skill's name is always legal, and its title is that name.
            title = own.title if kind == "skill" else title_with_name(own.title, own.name, server)
            definition = replace(own, name=names[key], title=title)
            self.entries.append(Tool(definition, source=server, origin=ToolOrigin(server, key, raw)))

    def _names(self, kind: EntryKind, own: Mapping[str, str]) -> dict[str, str]:
        """The names of entries in the catalog, by their key, from the server's own names for them."""
        shared = Counter(own.values())
        labels = {key: name if shared[name] == 1 else _path_of(key) for key, name in own.items()}
        legal = all_namespaced(self._listing.server, labels.values())
        names: dict[str, str] = {}
        for key, label in labels.items():
            name = legal[label]
            if name in self._taken:
                name = f"{name[: MAX_NAME_LENGTH - len(kind) - 1]}_{kind}"
            names[key] = distinct(name, key) if name in self._taken else name
            self._taken.add(names[key])
        return names

    def without_files_of_skills(self, raws: Collection[JsonObject]) -> list[JsonObject]:
        folders = SkillFolders(self._listing.skills)
        return [raw for raw in raws if not folders.holds(RESOURCES.name_of(raw) or "")]

    def _require_readable(self, raw: JsonObject) -> None:
        if is_directory(raw) and not self._listing.reads_directories:
            raise BadToolError("it is a directory, and the server cannot list directories")


class SkillFolders:
    """The folders of the raw entries *skills*, whether the entries are usable or not."""

    def __init__(self, skills: Iterable[JsonObject]) -> None:
        uris = (SKILLS.name_of(raw) for raw in skills)
        folders = [_prefixes(uri.removesuffix(f"/{SKILL_FILE}")) for uri in uris if uri]
        self._folders = {prefixes[-1] for prefixes in folders}
        self._schemes = {prefixes[0] for prefixes in folders}

    def holds(self, uri: str) -> bool:
        """Whether *uri* is one of the folders or something below one, for any server and however it is written.

        A spelling that servers read in different ways is held, too, if a skill has its scheme.
        """
        prefixes = _prefixes(uri)
        return not self._folders.isdisjoint(prefixes) or (len(prefixes) == 1 and prefixes[0] in self._schemes)


_LONGEST_URI: Final = 8_192
_MOST_DECODED: Final = 3  # times that a URI is decoded
_IGNORED: Final = dict.fromkeys([*range(0x21), 0x7F])  # blanks and controls, which many readers leave out
_BETWEEN_PARTS: Final = re.compile(r"[/\\?#;]+")
_PLAIN_HOST: Final = re.compile(r"[a-z0-9._~!$&'()*+,=-]+")
_OF_WEB: Final = frozenset({"http", "https", "ws", "wss", "ftp"})  # whose hosts have many spellings


def _prefixes(uri: str) -> list[int]:
    """A hash of the scheme of *uri*, and of each beginning that ends with a part of its path, the shortest first.

    Spellings that a browser's or Python's reading makes equal are equal. Of what could be read in several ways, only
    the scheme is left. Takes linear time.
    """
    cut = uri.translate(_IGNORED)[: _LONGEST_URI + 1]
    text = cut
    for _ in range(_MOST_DECODED):
        text = unquote(text)
    text = text.translate(_IGNORED).casefold()
    scheme, colon, path = text.partition(":")
    if not colon or _BETWEEN_PARTS.search(scheme):
        scheme, path = "", text
    hashes = [hash(scheme)]
    parts = [part.rstrip(".") for part in _BETWEEN_PARTS.split(path) if part]
    is_plain = len(cut) <= _LONGEST_URI and "@" not in text and unquote(text) == text and all(parts)
    if not is_plain or not (host := _host(scheme, parts)):
        return hashes
    for part in [host, *parts[1:]]:
        hashes.append(hash((hashes[-1], part)))
    return hashes


def _host(scheme: str, parts: list[str]) -> str:
    """The first of *parts* without a port; empty if it has several spellings."""
    if scheme in _OF_WEB:
        return "any"
    if scheme == "file" and parts[:1] == ["localhost"]:
        del parts[0]
    host = parts[0].partition(":")[0] if parts else ""
    return host if _PLAIN_HOST.fullmatch(host) else ""


def _path_of(key: str) -> str:
    """The path in a URI: ``skill://acme/refunds/SKILL.md`` gives ``acme/refunds``."""
    return key.partition("://")[2].removesuffix(f"/{SKILL_FILE}") or key


def _skill(raw: JsonObject, server: str) -> ToolDefinition:
    skill = Skill.from_entry(raw)
    if skill.is_dynamic:
        raise BadToolError(f"the skill {skill.name!r} is dynamic: its files cannot be compared with the approved ones")
    if (size := skill.files[SKILL_FILE].size) > MOST_INSTRUCTIONS:
        raise BadToolError(f"its {SKILL_FILE} has {size:,} bytes; at most {MOST_INSTRUCTIONS:,} are allowed")
    return skill.definition(skill.name, server)


def _prompt(raw: JsonObject, server: str) -> ToolDefinition:
    arguments = raw.get("arguments")
    if arguments is not None and not is_list(arguments):
        raise BadToolError("its arguments are not a list")
    fields: dict[str, Json] = {}
    required: list[Json] = []
    for argument in arguments or ():
        name = argument.get("name") if is_object(argument) else None
        if not is_object(argument) or not isinstance(name, str) or name in fields:
            raise BadToolError("its arguments must be objects with distinct names")
        fields[name] = _text_field(_text(argument, "description"))
        if argument.get("required") is True:
            required.append(name)
    return _definition(raw, server, "prompt", _text(raw, "name"), _schema(fields, required))


def _resource(raw: JsonObject, server: str) -> ToolDefinition:
    _require_no_other(raw, TEMPLATES)
    return _definition(raw, server, "resource", _text(raw, "name") or _text(raw, "uri"), NO_PARAMETERS)


def _template(raw: JsonObject, server: str) -> ToolDefinition:
    _require_no_other(raw, RESOURCES)
    template = parsed_template(TEMPLATES.name_of(raw) or "")
    fields = {each.name: _variable_field(each) for each in template.variables}
    required: list[Json] = [each.name for each in template.variables if each.operator not in _CAN_BE_LEFT_OUT]
    return _definition(raw, server, "resource", _text(raw, "name") or template.template, _schema(fields, required))


def _require_no_other(raw: JsonObject, other: ListOf) -> None:
    """Raise BadToolError if *raw* could be an entry of the list *other*, too: its field is what tells them apart."""
    if other.name_of(raw) is not None:
        raise BadToolError(f"it has a {other.known_by!r}, as only entries of {other.key!r} may have")


def parsed_template(template: str) -> UriTemplate:
    """Raises BadToolError if *template* is no URI template of RFC 6570 that can be expanded."""
    try:
        return UriTemplate.parse(template)
    except InvalidUriTemplate as error:
        raise BadToolError(f"its template cannot be expanded: {error}") from error


def _definition(raw: JsonObject, server: str, kind: EntryKind, name: str, schema: JsonObject) -> ToolDefinition:
    return ToolDefinition(
        name,
        _text(raw, "description"),
        schema,
        title=_text(raw, "title"),
        annotations={READ_ONLY: True},
        server=server,
        kind=kind,
    )


def _schema(fields: Mapping[str, Json], required: list[Json]) -> JsonObject:
    more: JsonObject = {"required": required} if required else {}
    return {"type": "object", "properties": fields, **more, "additionalProperties": False}


def _text_field(description: str) -> JsonObject:
    return {"type": "string", "description": description} if description else {"type": "string"}


def _variable_field(variable: Variable) -> JsonObject:
    return {"type": "array", "items": {"type": "string"}} if variable.explode else {"type": "string"}


def _text(fields: JsonObject, key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""
