"""One-line summaries of tools and servers, from descriptions that others wrote.

A description may begin with notices; the sentence about the tool's purpose comes after them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from toolsearch.tools.definition import Tool, ToolDefinition, ToolReference
from toolsearch_indexes.documents import Confidence

_READ_CHARACTERS = 4_000
_PARAGRAPHS = re.compile(r"\n\s*\n")
_SENTENCE_END = re.compile(r"(?<=[.!?])[*_)\]]*(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\betc\.)(?<!\bvs\.)\s+(?=[^\sa-z])")

_BADGES = re.compile(
    r"\[?!\[[^\]\n]{0,200}\]\([^)\n]{0,400}\)(?:\]\([^)\n]{0,400}\))?|</?(?:img|p|div|center)\b[^>\n]{0,400}>"
)


# Marks of headings, lists and emphasis, and emoji.
_DECORATION = re.compile(r"(?:[\s#=*_~>|-]|[^\w\s\x00-\xff\u2018-\u201f])+")
_HEADING = re.compile(r"#{1,6} [^\n]*|[^\n]*\n[=-]{3,}")

_STATUS = (
    r"(?:deprecat(?:ed|ion)|obsolete|decommissioned|discontinued|legacy|experimental|opt-in only|internal(?: use)? only"
    r"|(?:(?:developer|public|private|closed) )?(?:alpha|beta|preview))"
)

_LABEL = re.compile(
    rf"[(\[]{_STATUS}[)\]](?:\([^)\n]{{0,400}}\))?[*_\s:.-]*|{_STATUS}(?:[*_]*[:.!-]+[*_]*\s*|[*_]*\s*\Z)"
    r"|(?:tool |function )?description:\s*",
    re.IGNORECASE,
)

_TOOL = r"(?:\w+ )?(?:api|operation|action|method|command|endpoint|function|tool)s?"
_IS = r"(?:is|isn't|are|was|has been|have been|being|be) (?:now |only |an? )?"
_GONE = r"(?:deprecated|obsolete|discontinued|superseded|no longer (?:available|open|supported|maintained))\b"
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? \d"
_SUBJECT = r"(?:[^\s.]+ ){1,12}"

_NOTICES = (
    # Example: End of support notice: ...
    r"(?:[\w-]+ ){0,3}(?:note|notice|warning|caution|important|attention)[*_]*\s?[:!]",
    rf"{_SUBJECT}{_IS}{_GONE}",
    rf"{_SUBJECT}will (?:no longer be|end support|discontinue)\b",
    rf"(?:this|the) {_TOOL} (?:\w+,? ){{0,4}}?{_IS}(?:{_GONE}|no longer|replaced|(?:not )?(?:intended|supported))\b",
    rf"this {_TOOL} belongs to ",
    r"this is (?:[^\s.]+ ){0,5}documentation\b|this documentation is ",
    r"you can no longer |existing customers can |if you (?:would like|want) to use ",
    r"for (?:more|additional|further|complete|the latest) |for information about the current ",
    r"to learn more |learn more |see also |see [^.]{1,200} for (?:more|details|information)\b",
    r"for capabilities similar |with the latest version ",
    r"(?:we|\w+) (?:strongly |no longer )?(?:recommends?|encourages?) |we are in the process of ",
    r"(?:please |instead, )?use [^.]{1,200} instead\b|instead, use ",
    rf"(?:on|after|as of|until|starting|effective|beginning|from) {_MONTH}",
)

_NOTICE = re.compile("|".join(_NOTICES), re.IGNORECASE)

_SELF_REFERENCE = re.compile(  # examples: This action lists keys. This tool lets you list keys.
    rf"this {_TOOL}(?: (?:is used|can be used|allows you|enables you) to| lets you)? "
    r"(?=(?<=to )|(?<=you )"
    r"|(?!(?:is|has|was|does|works|uses|needs|requires|supports|applies|exists|takes)\b)\w+s\b)",
    re.IGNORECASE,
)


# Examples: Creates a key. Permanently deletes it. List the keys. Use this operation to rotate it.
_VERB_PHRASE = re.compile(
    r"(?:[A-Z][a-z]+ly )?(?!(?:This|These|Its|Is|Has|Was|As|Unless|Always|Previous|Access|Across|Besides|Perhaps)\b)"
    r"[A-Za-z][a-z]+s\b(?: or [a-z]+s\b|, [a-z]+s\b)* (?!(?:is|are|can|may|must|will|have|that)\b)"
    rf"|(?:Get|List|Create|Add|Set|Put|Update|Change|Delete|Remove|Find|Search|Fetch|Read|Write|Send|Start|Stop) "
    rf"|Use this {_TOOL} "
)


class Opening(NamedTuple):
    """*telling* is the part of a paragraph that says what the tool does; *skipped* is the text before it."""

    skipped: str
    telling: str


def opening_of(description: str) -> Opening:
    """Find the opening. After a notice, a sentence that begins with a verb is preferred, since notices have any number
    of sentences. If there are only badges and notices, the first paragraph counts as telling.
    """
    paragraphs = [each.strip() for each in _PARAGRAPHS.split(_BADGES.sub(" ", _beginning(description)).strip())]
    first: Opening | None = None
    notices = ""
    for paragraph in paragraphs:
        if _HEADING.fullmatch(paragraph):
            continue
        for start, begin, is_doing in _telling_places(paragraph):
            opening = Opening(notices + paragraph[:begin], _as_sentence(paragraph, begin))
            if is_doing or not notices + paragraph[:start]:
                return opening
            first = first or opening
        notices += f"{paragraph}\n"
    begin = _behind_labels(paragraphs[0])
    return first or Opening(paragraphs[0][:begin], _as_sentence(paragraphs[0], begin))


def _beginning(description: str) -> str:
    """The whole sentences of *description* that are read."""
    text = description[:_READ_CHARACTERS]
    return text if len(text) == len(description) else text.rpartition(". ")[0] or text


def first_sentence(text: str) -> str:
    return _SENTENCE_END.split(text, maxsplit=1)[0]


def _telling_places(paragraph: str) -> Iterator[tuple[int, int, bool]]:
    """For each sentence that is no notice: its start, the place where the telling part begins, and whether it begins
    with a verb.
    """
    ends = [match.end() for match in _SENTENCE_END.finditer(paragraph)]
    for start, end in pairwise([0, *ends, len(paragraph)]):
        begin = _behind_labels(paragraph, start, end)
        # Example: Lists the users who are no longer supported.
        is_doing = _VERB_PHRASE.match(paragraph, begin, end) is not None
        if begin < end and (is_doing or not _NOTICE.match(paragraph, begin, end)):
            itself = _SELF_REFERENCE.match(paragraph, begin, end)
            yield start, itself.end() if itself else begin, is_doing or itself is not None


def _behind_labels(text: str, begin: int = 0, end: int = _READ_CHARACTERS) -> int:
    while match := _DECORATION.match(text, begin, end) or _LABEL.match(text, begin, end):
        begin = match.end()
    return begin


def _as_sentence(text: str, begin: int) -> str:
    return text[begin : begin + 1].upper() + text[begin + 1 :] if begin else text


SUMMARY_CHARACTERS: Final = 300
PURPOSE_CHARACTERS: Final = 100
_CACHED_SUMMARIES: Final = 20_000  # summaries kept; each search needs those of all its hits
_OUT_OF_USE = re.compile(r"(?<!may be )(?<!will be )deprecat|obsolete|decommission|no longer supported", re.IGNORECASE)


def summary_of(definition: ToolDefinition) -> str:
    """The purpose of the tool: its description from the telling part to the end of that paragraph, or the title; cut at
    a word to 300 characters. It begins with "(deprecated)" if the skipped part says so.
    """
    return _summary(definition.description, definition.title)


@lru_cache(maxsize=_CACHED_SUMMARIES)
def _summary(description: str, title: str) -> str:
    skipped, telling = opening_of(description)
    mark = "(deprecated) " if _OUT_OF_USE.search(skipped) else ""
    return one_line(f"{mark}{telling or title}", SUMMARY_CHARACTERS)


def reference_to(tool: Tool, score: float = 1.0, confidence: Confidence = "high") -> ToolReference:
    """Show a tool as a search result."""
    definition = tool.definition
    return ToolReference(definition.name, score, summary_of(definition), confidence, tool.is_callable, definition.kind)


def purpose_of(text: str) -> str:
    """A server's purpose in its own words: the first sentence of *text* that states it, cut at a word to 100
    characters.
    """
    return one_line(first_sentence(opening_of(text).telling), PURPOSE_CHARACTERS)


def one_line(text: str, width: int) -> str:
    """*text* as one printable line, cut at a word to at most *width* characters.

    So no text from strangers can look like the next line of the text around it.
    """
    if not text.isprintable():  # most texts are printable, and this check is fast
        text = "".join(c if c.isprintable() else " " for c in text)
    line = " ".join(text.split())
    if len(line) <= width:
        return line
    head = line[: max(width - 1, 0)]
    return f"{head.rpartition(' ')[0] or head}…" if head else ""
