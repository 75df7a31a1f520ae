"""Skills as tests need them: as folders, as a server lists and gives them, and as entries of a catalog."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolsearch.documents.skills import SKILL_FILE, Skill, digest_of
from toolsearch.tools.definition import READ_ONLY, EntryKind, Tool, ToolCallback, ToolContext, ToolDefinition
from toolsearch.tools.json_types import Json
from toolsearch.tools.results import ToolOutput

REFUND = "skill://refunds/SKILL.md"
RULES = "skill://refunds/rules.md"
ABOUT_REFUND = "Refund a customer's order."


def skill_text(name: str, description: str = "Does a thing", *, more: str = "", body: str = "Do it.") -> str:
    """A SKILL.md. *more* are further lines of its frontmatter."""
    return f"---\nname: {name}\ndescription: {description}\n{more}---\n{body}\n"


def refund_text(description: str = ABOUT_REFUND, body: str = "Ask for it.") -> str:
    """The text of the skill at REFUND."""
    return skill_text("refunds", description, body=body)


def write_skill(
    folder: Path, name: str, description: str = "Does a thing", *, files: Mapping[str, str | bytes] | None = None
) -> Path:
    """Write a skill into a new folder of its name in *folder*, with further *files*; return its folder."""
    own = folder / name
    own.mkdir(parents=True)
    for path, content in {SKILL_FILE: skill_text(name, description), **(files or {})}.items():
        place = own / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
    return own


def skill_entry(
    name: str, files: Mapping[str, bytes] | None = None, *, prefix: str = "", description: str = "Does a thing"
) -> dict[str, Json]:
    """A skill with a SKILL.md and further *files* as a server lists it."""
    everything = {SKILL_FILE: skill_text(name, description), **(files or {})}
    return entry_of({f"skill://{prefix}{name}/{path}": data for path, data in everything.items()}, description)


def entry_of(texts: Mapping[str, str | bytes], description: str = ABOUT_REFUND, **more: Any) -> dict[str, Any]:
    """The skill with these *texts*, by URI, as a server lists it; the first is its SKILL.md. *more* are further fields
    of its frontmatter.
    """
    uri = next(iter(texts))
    files = {each: text.encode() if isinstance(text, str) else text for each, text in texts.items()}
    return {
        "uri": uri,
        "frontmatter": {"name": uri.split("/")[-2], "description": description, **more},
        "resources": [{"uri": each, "digest": digest_of(data), "size": len(data)} for each, data in files.items()],
    }


def contents(uri: str, text: str) -> dict[str, Any]:
    """The answer to ``resources/read``."""
    return {"contents": [{"uri": uri, "mimeType": "text/markdown", "text": text}]}


def given(texts: dict[str, str]) -> dict[str, dict[str, Any]]:
    """The answers for all of *texts*, by URI."""
    return {uri: contents(uri, text) for uri, text in texts.items()}


def content(
    name: str,
    description: str = "Does a thing",
    *,
    kind: EntryKind = "skill",
    server: str = "",
    source: str = "",
    callback: ToolCallback | None = None,
) -> Tool:
    """An entry of a catalog that is no tool. Without a *callback* nothing can read it."""
    definition = ToolDefinition(name, description, server=server, annotations={READ_ONLY: True}, kind=kind)
    return Tool(definition, callback, source=source)


def read(entry: Tool, **arguments: Json) -> ToolOutput:
    """What the callback of *entry* gives, which is a plain one."""
    assert entry.callback is not None
    output = entry.callback.call(arguments, ToolContext())
    assert isinstance(output, ToolOutput)
    return output


def text_of(output: ToolOutput) -> str:
    """The text of the file that was read."""
    return str(output.content[-1]["text"])


def skill(name: str, files: Mapping[str, bytes] | None = None) -> Skill:
    return Skill.from_entry(skill_entry(name, files))
