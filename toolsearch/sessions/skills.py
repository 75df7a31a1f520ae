"""Skills that the model of a conversation reads: their texts within its budget, and the tools that they ask for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from toolsearch.discovery.discovered_tools import Budget
from toolsearch.documents.json_values import as_list
from toolsearch.documents.skills import SKILL_FILE, split_frontmatter
from toolsearch.errors import BadArgumentsError, BadToolError, CallDeniedError, ToolExecutionError, shown_name
from toolsearch.sessions.conversation import Conversation
from toolsearch.sessions.tool_lists import new_that_fit
from toolsearch.tokens import TokenCounter
from toolsearch.tools.callbacks import run_callback
from toolsearch.tools.definition import Tool, ToolCallback, ToolContext
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import TOOL_NAME, near_names
from toolsearch.tools.results import ToolOutput, binary_data, block_text, text_block, with_text

_MOST_DIGITS: Final = 7  # of a line's number
_MOST_CHARACTERS_PER_TOKEN: Final = 16
_CHARACTERS_PER_TOKEN_OF_BYTES: Final = 4
_MOST_TOOLS: Final = 20  # that a skill may ask for
_REVEALING: Final = ("append", "messages")  # modes in which a tool can be shown without an answer to a search
_BETWEEN: Final = re.compile(r"[\s,]+")
_ELSEWHERE: Final = "mcp__"  # prefix that some clients give to the names of servers' tools


def as_read(conversation: Conversation, entry: Tool) -> Tool:
    """*entry*, a skill, as the model of *conversation* reads it."""
    return entry if entry.callback is None else replace(entry, callback=_SkillReading(conversation, entry))


@dataclass(frozen=True, slots=True)
class _SkillReading:
    conversation: Conversation
    entry: Tool

    async def call(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        conversation, (path, line) = self.conversation, place_of(arguments)
        require_room_for_skills(conversation)
        asked = arguments if path is None else {**arguments, "file": path}
        callback: ToolCallback | None = self.entry.callback
        value = None if callback is None else await run_callback(callback, asked, context)
        output = ToolOutput((text_block(value),)) if isinstance(value, str) else value
        if not isinstance(output, ToolOutput):
            raise ToolExecutionError(f"the skill {self.entry.name!r} has given no text")
        asked_for = [] if output.is_error or path not in (None, SKILL_FILE) else self._tools_of(output)
        output = skill_within_budget(conversation, output, path or SKILL_FILE, line)
        return replace(output, content=(*output.content, *self._revealed(asked_for)))

    def _tools_of(self, output: ToolOutput) -> list[Tool]:
        """The tools in reach that its frontmatter names. What a server names is ignored: it could name any tool."""
        if not self.entry.metadata.loads_tools or (text := block_text(output.content[-1])) is None:
            return []
        tools = map(self.conversation.shown_tool, allowed_tools(text)[:_MOST_TOOLS])
        return [tool for tool in tools if tool is not None]

    def _revealed(self, tools: Sequence[Tool]) -> list[JsonObject]:
        """Show *tools*, as far as there is room for them, or say how the model can have them."""
        conversation = self.conversation
        if not tools or not conversation.exposure.is_searched:
            return []
        if conversation.state.sent.now.mode not in _REVEALING:
            names = ",".join(tool.name for tool in tools)
            return [text_block(f"[For its tools, send {TOOL_NAME} the query select:{names}]")]
        for definition in new_that_fit(conversation, [tool.definition for tool in tools]):
            conversation.expand(definition.name)
        named = ", ".join(tool.name for tool in tools if tool.name in conversation.discovered)
        return [text_block(f"[In your tool list for it: {named}]")] if named else []


def require_room_for_skills(conversation: Conversation) -> None:
    """Raise CallDeniedError, written for the model, if no skill may be read any more."""
    most, read = conversation.options.budget.max_skill_tokens, conversation.state.counters.skill_tokens
    if most is not None and read >= most:
        raise CallDeniedError(
            f"the skills read so far have {read:,} tokens, and the limit is {most:,}: work with the texts above"
        )


def skill_within_budget(conversation: Conversation, output: ToolOutput, path: str, line: int = 1) -> ToolOutput:
    """*output*, the text of the file *path* of a skill, from *line* on, as far as the budget allows. It is counted.

    The last block is the text. It is cut at a line, and a further block says how to read on. Raises CallDeniedError,
    written for the model, if all skills together would exceed the budget, and BadArgumentsError if there is no such
    line.
    """
    budget, count = conversation.options.budget, conversation.host.counter.count
    output = paged_skill(output, path, line, budget, conversation.host.counter)
    tokens = sum(
        _tokens_of_bytes(block) if (text := block_text(block)) is None else count(text) for block in output.content
    )
    counters = conversation.state.counters
    most = budget.max_skill_tokens
    if most is not None and counters.skill_tokens + tokens > most:
        raise CallDeniedError(
            f"this text has {tokens:,} tokens, the skills read so far have {counters.skill_tokens:,}, and the limit "
            f"is {most:,}: read a shorter file, or work with the texts above"
        )
    counters.skill_tokens += tokens
    return output


def paged_skill(output: ToolOutput, path: str, line: int, budget: Budget, counter: TokenCounter) -> ToolOutput:
    """One page of *output*. No total is counted, since the caller has no session."""
    *head, last = output.content or (text_block(""),)
    text, room = block_text(last), budget.max_skill_page_tokens
    if room is not None and (tokens := _tokens_of_bytes(last)) > room:
        raise CallDeniedError(
            f"{shown_name(path)} is no text; its bytes would take {tokens:,} tokens; at most {room:,} are allowed"
        )
    if text is None or output.is_error:
        return output
    room = room or len(text) + 1
    if line == 1 and len(text) <= room * _MOST_CHARACTERS_PER_TOKEN and counter.count(text) <= room:
        return output
    lines = text.split("\n")
    if line > len(lines):
        raise BadArgumentsError(f"{shown_name(path)} has {len(lines):,} lines")
    page, after = _page(lines, line - 1, room, counter)
    rest = f'; read on with the file "{path}:{after + 1}"' if after < len(lines) else ""
    told = text_block(f"[These are the lines {line:,} to {after:,} of {len(lines):,}{rest}]")
    return replace(output, content=(*head, with_text(last, page), told))


def _tokens_of_bytes(block: JsonObject) -> int:
    """About what the base64 of *block* takes of a model's context; 0 if it has none."""
    return -(-len(binary_data(block) or "") // _CHARACTERS_PER_TOKEN_OF_BYTES)


def _page(lines: Sequence[str], begin: int, room: int, counter: TokenCounter) -> tuple[str, int]:
    """As many whole lines as fit into *room* tokens, and the index of the line after them. A line that would fill more
    than a page is cut.
    """
    longest, tokens = room * _MOST_CHARACTERS_PER_TOKEN, 0
    for at in range(begin, len(lines)):
        tokens += counter.count(f"{lines[at][:longest]}\n")
        if tokens > room or len(lines[at]) > longest:
            return ("\n".join(lines[begin:at]), at) if at > begin else (_cut(lines[at], room, counter), at + 1)
    return "\n".join(lines[begin:]), len(lines)


def _cut(line: str, room: int, counter: TokenCounter) -> str:
    kept = line[: room * _MOST_CHARACTERS_PER_TOKEN]
    while (tokens := counter.count(kept)) > room:
        kept = kept[: int(len(kept) * 0.95 * room / tokens)]
    return f"{kept} [the line of {len(line):,} characters is cut here]"


def place_of(arguments: JsonObject) -> tuple[str | None, int]:
    """The path that is asked for, None for the instructions, and the line to begin at: ``notes.md:120`` reads on."""
    file = arguments.get("file")
    if not isinstance(file, str):
        return None, 1
    path, colon, line = file.rpartition(":")
    if colon and line.isascii() and line.isdigit() and len(line) <= _MOST_DIGITS:
        return path or None, max(1, int(line))
    return file, 1


def allowed_tools(text: str) -> list[str]:
    """The names of tools in the field ``allowed-tools`` of a SKILL.md, each once."""
    try:
        asked = split_frontmatter(text)[0].get("allowed-tools")
    except BadToolError:
        return []
    named = as_list(asked) or (_BETWEEN.split(asked) if isinstance(asked, str) else [])
    return list(dict.fromkeys(name.removeprefix(_ELSEWHERE) for name in named if isinstance(name, str) and name))


@dataclass(frozen=True, slots=True)
class NoSkill:
    """Answers calls of ``readSkill`` that do not name a skill in reach of *conversation*."""

    conversation: Conversation

    async def call(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:  # noqa: ARG002
        view, name = self.conversation.view, str(arguments.get("name", ""))
        if view.allows(name):
            raise BadArgumentsError(f"{name!r} is a tool, not a skill; {TOOL_NAME} says how to run it")
        skills = [each.name for each in view.skills]
        near = near_names(name, skills)
        meant = f"; did you mean {', '.join(near)}?" if near else f"; {TOOL_NAME} finds skills"
        raise BadArgumentsError(f"there is no skill {shown_name(name)!r}{meant}")
