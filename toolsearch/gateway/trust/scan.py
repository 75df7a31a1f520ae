"""Scans definitions and results for text that is not about the tool. A finding is a reason to look.

Findings about definitions are kept on disk, so that a start does not scan every definition again. Suspicious results
are only marked, since withholding one would break the call.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import sys
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, TypeAlias

import re2 as untyped_re2  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

from toolsearch import scanning
from toolsearch.gateway import trust
from toolsearch.gateway.trust.verdicts import FOUND, Entry, Kind
from toolsearch.scanning.rules import findings_in, steering_in
from toolsearch.scanning.texts import Finding, Text, evidence, fold, printable, texts_of
from toolsearch.storage.files import write_private
from toolsearch.tools.definition import SafetyClass
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import READ_SKILL, TOOL_NAME
from toolsearch.tools.results import BLOB, DATA
from toolsearch.wire.mcp.requests import META, RESULT_WORDS, meta_of, with_meta

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Said:
    """The findings in one definition, and its words that would become findings if another server had a tool of that
    name.
    """

    findings: tuple[Finding, ...]
    coined: frozenset[str]


Scanned: TypeAlias = dict[str, Said]  # pin -> what the scan found


class ScanCache:
    """One file for each server. A file that cannot be read, or that was made with other rules, counts as missing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, server: str) -> Scanned:
        try:
            kept = json.loads(self._path(server).read_bytes())
            if kept["rules"] != rules_version():
                return {}
            return {
                pin: Said(tuple(Finding(*map(str, each)) for each in findings), frozenset(map(str, coined)))
                for pin, (findings, coined) in kept["said"].items()
            }
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            logger.warning("the stored findings about %s cannot be read: %r", server, error)
            return {}

    def save(self, server: str, scanned: Mapping[str, Said]) -> None:
        said = {pin: [[astuple(each) for each in of.findings], sorted(of.coined)] for pin, of in scanned.items()}
        kept = {"rules": rules_version(), "said": said}
        try:
            write_private(self._path(server), json.dumps(kept, separators=(",", ":")).encode())
        except OSError as error:
            logger.warning("the findings about %s cannot be stored: %s", server, error)

    def _path(self, server: str) -> Path:
        return self._folder / f"{hashlib.sha256(server.encode('utf-8', 'surrogatepass')).hexdigest()}.json"


@cache
def rules_version() -> str:
    """A version that changes with every file of the rules and of this package, and with Unicode's tables."""
    digest = hashlib.sha256(unicodedata.unidata_version.encode())
    for package in (scanning, trust):
        for file in sorted(files(package).iterdir(), key=lambda each: each.name):
            if file.name.endswith((".py", ".toml", ".npz")):
                digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


_re2: Any = untyped_re2
_WORDS = _re2.compile(rb"[A-Za-z][A-Za-z0-9_-]{4,127}")

_OURS = frozenset(  # callTool and its variants are defined in a higher layer, so their names are repeated here
    fold(name) for name in (TOOL_NAME, READ_SKILL, "callTool", *(f"callTool{each.value}" for each in SafetyClass))
)


@dataclass(frozen=True)
class Neighbours:
    """The names in use around one server: *own* are its own entries, *others* the tools and skills of other servers,
    each with its server.
    """

    own: frozenset[str]
    others: Mapping[str, str]
    folded: Mapping[str, str]  # folded look of a name -> the name, for those of other servers

    @classmethod
    def of(cls, own: Collection[Entry], others: Collection[Entry]) -> Neighbours:
        names = {name: tool.server for tool in others for name in (tool.remote_name, tool.name)}
        mine = frozenset(name for tool in own for name in (tool.remote_name, tool.name))
        return cls(mine, names, {fold(tool.own_name): tool.own_name for tool in others})


def borrowed_name(name: str, neighbours: Neighbours) -> Iterator[Finding]:
    """A name that looks like one of the gateway's own, or like another server's but in other letters.

    The same name in the same letters is allowed: many servers have a ``search``, and the server's name tells them
    apart.
    """
    looks = fold(name)
    if looks in _OURS:
        yield Finding("borrowed-name", "name", f"{printable(name)} is what the gateway's own tools are called")
    elif not name.isascii() and (other := neighbours.folded.get(looks)) not in (None, name):
        yield Finding("borrowed-name", "name", f"{printable(name)} looks like {printable(other or '')}")


def coined_words(text: Text) -> Iterator[str]:
    """The words that could be names of tools, if such tools exist."""
    for match in _WORDS.finditer(text.value.encode(errors="replace")):
        word = match.group().decode()
        if _is_coined(word):
            yield word


def speaks_of_others(text: Text, neighbours: Neighbours) -> Iterator[Finding]:
    """The name of another server's tool in a text, unless it is an ordinary word or this server has a tool of that
    name.
    """
    as_bytes = text.value.encode(errors="replace")
    for match in _WORDS.finditer(as_bytes):
        word = match.group().decode()
        if word in neighbours.others and word not in neighbours.own and _is_coined(word):
            start = len(as_bytes[: match.start()].decode(errors="ignore"))
            words = f"{printable(word)} of {neighbours.others[word]!r}: {evidence(text.value, start, start + 48)}"
            yield Finding("speaks-of-others", text.place, words)
            return


def _is_coined(word: str) -> bool:
    """Whether the word would only be written as the name of a tool, such as ``read_file`` or ``getUser``."""
    return "_" in word.strip("_") or any(character.isupper() for character in word[1:])


_MAX_FINDINGS = 8  # findings reported for one definition; a single one holds it
_FILES: Final = "resources["  # beginning of the place of a skill's file
_RUN: Final = (  # endings of files that systems or interpreters run
    ".app", ".applescript", ".bash", ".bat", ".bin", ".cjs", ".cmd", ".com", ".command", ".dll", ".dylib", ".exe",
    ".fish", ".jar", ".js", ".jsx", ".ksh", ".lua", ".mjs", ".msi", ".php", ".pl", ".ps1", ".psm1", ".py", ".pyw", ".r",
    ".rb", ".scpt", ".sh", ".so", ".ts", ".tsx", ".vbs", ".wasm", ".zsh",
)  # fmt: skip
_RUN_FOLDERS: Final = ("/bin", "/scripts")


class Scanner:
    """Scans definitions. Findings in a definition itself are remembered by its pin; findings about other servers' names
    are not.
    """

    def __init__(self, cache: ScanCache | None = None) -> None:
        self._cache = cache
        self._known: dict[str, Scanned] = {}

    def scan(self, server: str, entries: Sequence[Entry], others: Sequence[Entry]) -> list[list[Finding]]:
        """The findings in each of *entries*, in the order of its texts; *server* lists exactly these."""
        neighbours = Neighbours.of(entries, others)
        before = self._before(server)
        now: Scanned = {}
        findings: list[list[Finding]] = []
        for entry in entries:
            pin = entry.pin()
            said = now[pin] = before[pin] if pin in before else _said(entry)
            name_findings = scan_names(entry, said.coined, neighbours)
            findings.append([*said.findings, *name_findings][:_MAX_FINDINGS])
        if self._cache is not None and now.keys() != before.keys():
            self._cache.save(server, now)
        self._known[server] = now
        return findings

    def _before(self, server: str) -> Scanned:
        if server not in self._known and self._cache is not None:
            return self._cache.load(server)
        return self._known.get(server, {})


def scan_entry(entry: JsonObject) -> list[Finding]:
    """The findings in the definition alone."""
    return _reported(findings_in(texts_of(entry)))


def scan_names(entry: Entry, coined: frozenset[str], neighbours: Neighbours) -> list[Finding]:
    """The findings about other servers' names; *coined* are words of the definition that could be such names."""
    borrowed = borrowed_name(entry.own_name, neighbours) if entry.kind in FOUND else ()
    texts = texts_of(entry.texts) if any(word in neighbours.others for word in coined) else ()
    return _reported(chain(borrowed, (finding for text in texts for finding in speaks_of_others(text, neighbours))))


def scripts_in(entry: Entry) -> Iterator[Finding]:
    """The files of a skill that could be run. A model that reads the skill may run them, so a person decides."""
    for text in texts_of(entry.texts) if entry.kind is Kind.SKILL else ():
        folder, _, file = text.value.rpartition("/")
        if text.place.startswith(_FILES) and (file.lower().endswith(_RUN) or folder.endswith(_RUN_FOLDERS)):
            yield Finding("ships-scripts", text.place, printable(file))


def _said(entry: Entry) -> Said:
    coined = frozenset(word for text in texts_of(entry.texts) for word in coined_words(text))
    return Said((*scan_entry(entry.texts), *_reported(scripts_in(entry))), coined)


def _reported(findings: Iterable[Finding]) -> list[Finding]:
    """The first findings, with printable places: the names of properties are texts of the server, too."""
    return [replace(finding, place=printable(finding.place)) for finding in islice(findings, _MAX_FINDINGS)]


# Key in a result's ``_meta``; the value names the rules that found something.
SUSPICIOUS: Final = "toolsearch/suspicious"
MOST_CHARACTERS = 65_536  # most characters scanned of one result
_MOST_OF_SKILL: Final = 4 * MOST_CHARACTERS  # of one file, each time that a part of it is read
_UNSCANNED: Final = "longer-than-scanned"  # marks a file of a skill whose end nobody has looked at
_MOST_AT_ONCE = 4_096  # texts up to this length are scanned without a thread
_NO_TEXTS = (f".{DATA}", f".{BLOB}")  # fields that hold pictures, sounds and files


async def marked(server: str, method: str, result: Mapping[str, Any], *, is_whole: bool = False) -> Mapping[str, Any]:
    """*result* with the scan's findings in its ``_meta``, in place of any that the server claims. The same object if
    there are neither. *is_whole*: all of it is scanned, however long it is.

    A skill that is read (*method* is ``readSkill``) is scanned further than a result of a tool, since models follow it.
    If it is longer still, that is marked.
    """
    is_skill = method == READ_SKILL
    result = _unmarked(result)
    most = sys.maxsize if is_whole else _MOST_OF_SKILL if is_skill else MOST_CHARACTERS
    texts = [text for text in texts_of(result) if text.value not in RESULT_WORDS and not text.place.endswith(_NO_TEXTS)]
    is_cut = sum(len(text.value) for text in texts) > most
    texts = list(_first(texts, most))
    if sum(len(text.value) for text in texts) > _MOST_AT_ONCE:
        rules = await asyncio.to_thread(_rules, texts)
    else:
        rules = _rules(texts)
    rules += [_UNSCANNED] if is_skill and is_cut else []
    if not rules:
        return result
    logger.warning("%s: a result of %s is suspicious: %s", server, method, ", ".join(rules))
    return with_meta(result, {SUSPICIOUS: rules})


def _unmarked(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """*result* without findings that its server claims: models are told of ours."""
    meta = meta_of(result)
    return (
        {**result, META: {key: value for key, value in meta.items() if key != SUSPICIOUS}}
        if SUSPICIOUS in meta
        else result
    )


def _rules(texts: list[Text]) -> list[str]:
    return sorted({finding.rule for found in steering_in(texts) for finding in found})


def _first(texts: Iterable[Text], most: int) -> Iterator[Text]:
    """The first *most* characters of *texts*."""
    for text in texts:
        if most <= 0:
            return
        yield Text(text.place, text.value[:most])
        most -= len(text.value)
