"""Names of tools: checks legal names, makes names legal, and finds names similar to a mistyped one."""

from __future__ import annotations

import hashlib
import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

from toolsearch.errors import BadToolError
from toolsearch.tools.definition import ToolDefinition, legal_name

MAX_NAME_LENGTH = 64
SEPARATOR = "__"
NAME_CHARACTERS = frozenset(string.ascii_letters + string.digits + "_-")
TOOL_NAME = "toolSearchTool"  # name of our search tool; no other tool may have it
CALL_TOOL = "callTool"  # name of the tool that runs found tools where the list must not change
READ_SKILL = "readSkill"  # name of the tool that reads found skills

_LETTERS_AND_REST = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^A-Za-z]+")  # splits a whole name into parts
_WORDS = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+[a-z]*")
_BEFORE_NAME = re.compile(r" \(")
_HASH_DIGITS = 8
_LONGEST_SHOWN_NAME = 2 * MAX_NAME_LENGTH  # longest name shown in a title
_MAX_SERVER_IN_CUT_NAME = 40  # leaves room to tell the tools of a server with a long name apart
_SHORTEST_CUT_WORD = 3
_MOST_READ = 1_000  # characters that are read of a name to cut
_SHORTEST_BEFORE_WHOLE = 4  # letters that other words keep before the last word is cut as well
_CANDIDATE = 60.0  # score of rapidfuzz from 0 to 100; it is fast, and also passes names that are only partly alike
_MOST_CANDIDATES = 100
_LETTERS_FOR_A_SLIP = 4  # a word may have one wrong letter, or one for every four letters
_SHORTEST_WITH_A_SLIP = 3  # shorter words must match exactly


def is_legal_name(name: str) -> bool:
    """Whether model APIs take *name*: 1 to 64 of A-Z a-z 0-9 _ and -."""
    return 0 < len(name) <= MAX_NAME_LENGTH and NAME_CHARACTERS.issuperset(name)


def require_legal_name(name: str) -> None:
    """Raise BadToolError, with a suggested legal name, unless *name* is legal."""
    if not is_legal_name(name):
        raise BadToolError(
            f"{name!r} is no legal tool name: up to {MAX_NAME_LENGTH} characters of A-Z a-z 0-9 _ - are; "
            f"call it {namespaced('', name)!r}"
        )


def namespaced(server: str, name: str) -> str:
    """Return the legal tool name for *name* of *server*: ``<server>__<name>``, or just the name without a server.

    In a name over 64 characters, the longest words keep only their beginnings:
    ``..._workflow-permissions-organization`` becomes ``..._workfl-permis-organi``. This depends on the name alone, so
    two long names may become one; `all_namespaced` keeps several names apart. A name without one legal character
    becomes ``tool_`` and a hash of 8 hex digits.
    """
    local = legal_name(name) or f"tool_{_digest(name)}"
    prefix = legal_name(server)
    front = f"{prefix}{SEPARATOR}" if prefix else ""
    if len(front) + len(local) <= MAX_NAME_LENGTH:
        return front + local
    if len(prefix) > _MAX_SERVER_IN_CUT_NAME:
        front = f"{prefix[: _MAX_SERVER_IN_CUT_NAME - _HASH_DIGITS - 1]}_{_digest(prefix)}{SEPARATOR}"
    return front + _shortened(local, MAX_NAME_LENGTH - len(front))


def _shortened(name: str, width: int) -> str:
    """Return *name* in *width* characters: its longest words are cut to one length, and the last one stays whole if
    possible.

    Numbers and the characters between words are kept. If words of three letters are still too long, the middle is
    dropped.
    """
    parts = _LETTERS_AND_REST.findall(name[:_MOST_READ])
    words = [place for place, part in enumerate(parts) if part.isalpha()]
    short = name
    for cut, shortest in ((set(words[:-1]), _SHORTEST_BEFORE_WHOLE), (set(words), _SHORTEST_CUT_WORD)):
        for letters in range(width, shortest - 1, -1):
            kept = [letters if place in cut else len(part) for place, part in enumerate(parts)]
            short = _beginnings(parts, kept)
            if len(short) <= width:
                longer = [place for place in sorted(cut) if len(parts[place]) > letters]
                for place in longer[: width - len(short)]:
                    kept[place] += 1
                return _beginnings(parts, kept)
    return short[: width - width // 2] + short[len(short) - width // 2 :]


def _beginnings(parts: Iterable[str], lengths: Iterable[int]) -> str:
    return "".join(part[:length] for part, length in zip(parts, lengths, strict=True))


def all_namespaced(server: str, names: Iterable[str]) -> dict[str, str]:
    """Return the legal name for each of *names* of *server*, under its own name.

    Where several names would become the same one, each gets a tail of hash digits, except for one that needs no change.
    The result does not depend on the order of *names*, and apart from such clashes a name does not depend on the
    others.
    """
    given = {name: namespaced(server, name) for name in names}
    shared = Counter(given.values())
    front = f"{legal_name(server)}{SEPARATOR}" if legal_name(server) else ""
    return {
        name: legal if shared[legal] == 1 or legal == f"{front}{name}" else distinct(legal, name)
        for name, legal in given.items()
    }


def distinct(name: str, key: str) -> str:
    """Return *name*, cut to fit, with a tail of 8 hex digits that depend on *key* alone."""
    return f"{name[: MAX_NAME_LENGTH - _HASH_DIGITS - 1]}_{_digest(key)}"


def title_with_name(title: str, name: str, server: str = "") -> str:
    """Return the title of a tool that its author calls *name*: it includes *name* if a legal name loses part of it.

    A legal name loses letters other than A-Z and parts of a long name. So the title holds the name as it is written:
    people and models read it, and a search finds the tool by it (see `given_name`). The legal name still comes from
    `namespaced`, since rules, sessions and stored calls use that.
    """
    if not _is_lost(name, server) or len(name) > _LONGEST_SHOWN_NAME or not name.isprintable():
        return title
    return f"{title} ({name})" if title and title != name else name


def given_name(definition: ToolDefinition) -> str:
    """Return the author's name for a tool, if `title_with_name` has put it into the title; else "".

    Other titles of that form are recognised by the legal name, which must follow from the given one.
    """
    title = definition.title
    if not title:  # most tools have no title
        return ""
    inner = [title[found.end() : -1] for found in _BEFORE_NAME.finditer(title)] if title.endswith(")") else []
    return next((name for name in (*inner, title) if _is_called(definition, name)), "")


def own_name(definition: ToolDefinition) -> str:
    """Return the legal name of a tool as it would be without a server. Requests are bound to it.

    For nearly all tools it is the part after the server's name. A long name is cut less than after a server's name, so
    that it does not depend on the name of the server.
    """
    given = given_name(definition)
    if not given:
        return definition.local_name
    legal = namespaced("", given)
    return legal if definition.name == namespaced(definition.server, given) else distinct(legal, given)


def _is_called(definition: ToolDefinition, name: str) -> bool:
    if not _is_lost(name, definition.server):
        return False
    legal = namespaced(definition.server, name)
    return definition.name in (legal, distinct(legal, name))


def _is_lost(name: str, server: str) -> bool:
    """Whether letters or digits of *name* are lost in the legal name of a tool of *server*."""
    if is_in_another_script(name):
        return True
    longest = MAX_NAME_LENGTH - len(legal_name(server)) - len(SEPARATOR)
    return len(name) > longest and not namespaced(server, name).endswith(legal_name(name))


def is_in_another_script(name: str) -> bool:
    """Whether *name* has letters or digits that a legal name may not hold."""
    return not name.isascii() and any(c.isalnum() and not c.isascii() for c in name)


def in_words(name: str) -> str:
    """Return the words of *name*, in lower case: ``getHTTPStatus_v2`` gives ``get http status v2``."""
    return " ".join(_WORDS.findall(name)).lower() or name


def near_names(name: str, candidates: Iterable[str], *, limit: int = 3) -> list[str]:
    """Return at most *limit* of *candidates* that *name* may have been meant for, nearest first, ties by name.

    No suggestion is better than a bad one: models and people use what is offered. Only the beginning of a long name
    counts, since comparing one of a hundred thousand characters takes seconds.
    """
    from rapidfuzz import fuzz, process, utils

    scored = process.extract(
        name[: 2 * MAX_NAME_LENGTH],
        list(candidates),
        scorer=fuzz.WRatio,
        processor=utils.default_process,
        score_cutoff=_CANDIDATE,
        limit=None,
    )
    suffix = f"{SEPARATOR}{name}"
    best = sorted(scored, key=lambda hit: (not hit[0].endswith(suffix), -hit[1], hit[0]))[:_MOST_CANDIDATES]
    return list(islice((candidate for candidate, _, _ in best if _is_near(name, candidate)), limit))


def _is_near(name: str, candidate: str) -> bool:
    """Whether one name has all words of the other, or few letters differ. Names that are alike only in the server's
    name are not near.

    *name* may be meant with its server in front or without.
    """
    server, _, local = candidate.rpartition(SEPARATOR)
    given = in_words(name[: 2 * MAX_NAME_LENGTH].removeprefix(f"{server}{SEPARATOR}")).split()
    readings = [local] if not server or name.startswith(f"{server}{SEPARATOR}") else [candidate, local]
    return any(
        _is_part(given, known) or _looks_alike(given, known) for known in map(str.split, map(in_words, readings))
    )


def _is_part(given: Sequence[str], known: Sequence[str]) -> bool:
    shared = len(set(given) & set(known))
    return shared > 0 and (shared == len(set(given)) or (shared == len(set(known)) and 2 * shared >= len(set(given))))


def _looks_alike(given: Sequence[str], known: Sequence[str]) -> bool:
    from rapidfuzz.distance import OSA

    def alike(one: Sequence[str], other: Sequence[str]) -> bool:
        written, meant = "".join(one), "".join(other)
        letters = max(len(written), len(meant))
        slips = max(letters // _LETTERS_FOR_A_SLIP, 1) if letters >= _SHORTEST_WITH_A_SLIP else 0
        return OSA.distance(written, meant) <= slips

    return alike(given, known) or alike(sorted(given), sorted(known))


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return "; did you mean ...?" for the end of a message about the unknown *name*; "" if no candidate is near."""
    near = near_names(name, candidates)
    return f"; did you mean {', '.join(near)}?" if near else ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]
