"""Restricts the tools that a caller may see: rules allow or deny by name, server, tag, class or kind, before ranking.

The patterns of rules are shell globs, which RE2 matches in linear time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from typing import Any, cast

import re2 as untyped_re2  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

from toolsearch.errors import BadSettingError
from toolsearch.option_values import name_list
from toolsearch.tools.definition import DESTRUCTIVE, KINDS, READ_ONLY, SafetyClass, Tool, ToolDefinition, safety_of
from toolsearch.tools.naming import MAX_NAME_LENGTH, NAME_CHARACTERS, namespaced

_re2: Any = untyped_re2

_OPTIONS = _re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.never_capture = True


class GlobSet:
    """Matches any of some globs; without globs it matches nothing.

    ``*`` stands for any characters, ``?`` for one, ``[abc]``, ``[a-z]`` and ``[!abc]`` for one of a set. Raises
    BadSettingError for a glob that cannot be read.
    """

    __slots__ = ("_beginnings", "_ends", "_expression", "_parts")

    def __init__(self, globs: Collection[str]) -> None:
        others: list[str] = []
        beginnings: list[str] = []
        ends: list[str] = []
        self._parts: list[str] = []
        for glob in globs:  # most globs are of three kinds that need no regular expression
            literal = glob.strip("*")
            kinds = {f"{literal}*": beginnings, f"*{literal}": ends, f"*{literal}*": self._parts}
            if glob in kinds and not is_glob(literal):
                kinds[glob].append(literal)
            else:
                others.append(glob)
        self._beginnings, self._ends = tuple(beginnings), tuple(ends)
        self._expression = _compile(others) if others else None

    def match(self, text: str) -> bool:
        if text.startswith(self._beginnings) or text.endswith(self._ends) or any(part in text for part in self._parts):
            return True
        if self._expression is None:
            return False
        # RE2's binding is several times slower on str and fails on a lone surrogate.
        return self._expression.fullmatch(text.encode(errors="replace")) is not None


def is_glob(text: str) -> bool:
    """Whether *text* holds a character with a special meaning in globs."""
    return any(special in text for special in "*?[")


def _compile(globs: Collection[str]) -> Any:
    try:
        return _re2.compile("|".join("".join(_translate(glob)) for glob in globs), _OPTIONS)
    except _re2.error as error:
        reason = str(error.args[0], "utf-8", "replace")  # the binding's messages are bytes
        raise BadSettingError(f"cannot use the globs {', '.join(globs)}: {reason}") from error


@lru_cache(1_024)
def _beginnings(glob: str) -> Any:
    """The expression for the beginnings of everything that *glob* matches."""
    parts = _translate(glob)
    return _re2.compile("(?:".join(parts) + ")?" * (len(parts) - 1), _OPTIONS)


def _translate(glob: str) -> list[str]:
    """The expressions for the parts of *glob*."""
    parts: list[str] = []
    at = 0
    while at < len(glob):
        character = glob[at]
        if character == "[":
            members, at = _translate_set(glob, at)
            parts.append(members)
            continue
        parts.append({"*": "(?s:.*)", "?": "(?s:.)"}.get(character) or _re2.escape(character))
        at += 1
    return parts


def _translate_set(glob: str, opening: int) -> tuple[str, int]:
    """Return the expression for the set that opens at *opening*, and the place after its end."""
    negated = glob[opening + 1 : opening + 2] == "!"
    start = opening + 1 + negated
    closing = glob.find("]", start + 1)  # a "]" right after the opening belongs to the set, as in a shell
    if closing < 0:
        raise BadSettingError(f"the glob {glob!r} has a '[' without its ']'; write '[[]' for a literal '['")
    members = "".join(c if c == "-" else _re2.escape(c) for c in glob[start:closing])
    return f"[{'^' if negated else ''}{members}]", closing + 1


EVERY_TOOL = ("*",)  # the allow rules of a caller without any of its own
_REMEMBERED_TEXTS = 1_024  # servers and tags whose match a reach remembers
_MAX_RULE_CHARACTERS = 512
_IN_NAME_RULES = NAME_CHARACTERS | set("*?[]!")


class RuleKind(Enum):
    """The property of a tool that a rule tests."""

    NAME = "name"
    SERVER = "server"
    TAG = "tag"
    CLASS = "class"
    KIND = "kind"
    SHOWN = "as"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, as text: ``git__git_log`` or ``name:git__git_log``, ``server:git``, ``tag:read``,
    ``class:destructive``, where the class is one of `SafetyClass`, or ``kind:skill``, where the kind is one of `KINDS`.
    All but the last apply to every kind.

    The part after the colon may be a glob (``git__*``, ``server:aws-*``), which has to match the whole name, server or
    tag; `GlobSet` describes globs. ``[*]`` is a literal star. Upper and lower case differ. A rule that matches no tool
    now is legal, because tools come and go. A rule that can never match, such as ``"a, b"`` for two names, is an error.

    A tool that is shown by another name than it has in its catalog is matched under its catalog name. A rule that
    denies a name denies both. ``as:history`` matches the shown name.
    """

    kind: RuleKind
    pattern: str

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Raises BadSettingError if the rule is empty, too long, of an unknown kind, not a valid glob, or could never
        match.
        """
        kind, colon, pattern = text.strip().partition(":")
        if not colon:
            kind, pattern = RuleKind.NAME.value, kind
        pattern = pattern.strip()
        if not pattern or kind not in _KINDS:
            raise BadSettingError(
                f"cannot use the reach rule {text[:_MAX_RULE_CHARACTERS]!r}: write a tool's name or a glob such as "
                "'git__*', 'server:<server>', 'tag:<tag>', 'as:<shown name>' or 'class:read', 'class:write', "
                "'class:destructive' and 'kind:tool', 'kind:skill', 'kind:prompt', 'kind:resource'"
            )
        if len(pattern) > _MAX_RULE_CHARACTERS:
            raise BadSettingError(
                f"a reach rule has {len(pattern)} characters, at most {_MAX_RULE_CHARACTERS} are taken; "
                "write several rules, or a shorter glob"
            )
        if _KINDS[kind] in (RuleKind.NAME, RuleKind.SHOWN):
            _require_possible_name(pattern)
        if _KINDS[kind] is RuleKind.CLASS and pattern not in _CLASSES:
            raise BadSettingError(f"there is no class {pattern!r} of tools; there are {', '.join(_CLASSES)}")
        if _KINDS[kind] is RuleKind.KIND and pattern not in KINDS:
            raise BadSettingError(f"there is no kind {pattern!r}; there are {', '.join(KINDS)}")
        if is_glob(pattern):
            GlobSet([pattern])  # raises here, so that the message names only this glob
        return cls(_KINDS[kind], pattern)

    def __str__(self) -> str:
        return f"{self.kind.value}:{self.pattern}"


def _require_possible_name(pattern: str) -> None:
    """Raise BadSettingError for an impossible name. Otherwise a deny rule for two names at once, or for a server's own
    spelling of a name, would deny nothing.
    """
    is_too_long = len(pattern) > MAX_NAME_LENGTH and not is_glob(pattern)
    if is_too_long or not _IN_NAME_RULES.issuperset(pattern):
        raise BadSettingError(
            f"the reach rule {pattern!r} can match no tool: names have at most {MAX_NAME_LENGTH} characters of "
            "A-Z a-z 0-9 _ -; write one rule for each name, and each name as the catalog has it"
        )


_CLASSES = tuple(each.value for each in SafetyClass)
_KINDS = {kind.value: kind for kind in RuleKind}
_EVERY_NAME = Rule(RuleKind.NAME, "*")


@dataclass(frozen=True, slots=True)
class Reach:
    """The tools that a caller may see: those that an allow rule matches and no deny rule. Empty *allow*: none.

    *also* holds further lists of allow rules, which ``&`` makes; a tool has to match a rule of each list. *only* holds
    servers of which nothing is allowed except the entries with the names beside them.
    """

    allow: tuple[Rule, ...] = (_EVERY_NAME,)
    deny: tuple[Rule, ...] = ()
    also: tuple[tuple[Rule, ...], ...] = ()
    only: tuple[tuple[str, frozenset[str]], ...] = ()
    _allowed: tuple[_AnyRule, ...] = field(init=False, repr=False, compare=False)
    _denied: _AnyRule = field(init=False, repr=False, compare=False)
    _names: Mapping[str, frozenset[str]] = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "allow", _rules(self.allow, "allow"))
        object.__setattr__(self, "deny", _rules(self.deny, "deny"))
        object.__setattr__(self, "also", tuple(_rules(each, "also") for each in self.also))
        object.__setattr__(self, "_allowed", tuple(map(_AnyRule, (self.allow, *self.also))))
        object.__setattr__(self, "_denied", _AnyRule(self.deny))
        object.__setattr__(self, "_names", dict(self.only))
        object.__setattr__(self, "_hash", hash((self.allow, self.deny, self.also, self.only)))

    def __hash__(self) -> int:
        return self._hash  # computed once, because each search looks up the view of its reach

    @classmethod
    def parse(cls, allow: Iterable[str] = EVERY_TOOL, deny: Iterable[str] = ()) -> Reach:
        """Read each rule as `Rule.parse` does. Raises BadSettingError, too, for a bare text in place of a list."""
        return cls(tuple(map(Rule.parse, name_list(allow, "allow"))), tuple(map(Rule.parse, name_list(deny, "deny"))))

    @property
    def is_everything(self) -> bool:
        """Whether no tool is left out, so that a search needs no filter."""
        return all(_EVERY_NAME in allow for allow in (self.allow, *self.also)) and not self.deny and not self.only

    def allows(self, definition: ToolDefinition, original: ToolDefinition | None = None) -> bool:
        """Whether *definition* is allowed. *original* is its definition in the catalog, if it is shown under another
        name.
        """
        known, shown = (definition, "") if original is None else (original, definition.name)
        return (
            not self._is_left_out(known)
            and all(rules.matches(known, shown) for rules in self._allowed)
            and not self._denied.matches(known, shown)
            and (original is None or not self._denied.matches(definition))
        )

    def admits(self, tool: Tool) -> bool:
        """Whether *tool* is allowed. If the settings give it another name, an allow rule may match either name, and no
        deny rule may match any.
        """
        definition, original = tool.definition, tool.original
        if tool.listed_name == tool.name:
            return self.allows(definition, original)
        known, shown = original or definition, definition.name
        listed = replace(definition, name=tool.listed_name)
        return (
            not self._is_left_out(known)
            and all(rules.matches(known, shown) or rules.matches(listed, shown) for rules in self._allowed)
            and not any(self._denied.matches(each, shown) for each in (known, definition, listed))
        )

    def denies(self, definition: ToolDefinition) -> bool:
        """Whether a deny rule matches *definition*, whatever is allowed, or *only* leaves it out."""
        return self._is_left_out(definition) or self._denied.matches(definition)

    def _is_left_out(self, definition: ToolDefinition) -> bool:
        return definition.name not in self._names.get(definition.server, (definition.name,))

    def allows_server(self, server: str) -> bool:
        """Whether tools of *server* could be allowed, for as long as only the name of the server is known.

        They may have any tags, be of any class, and have any names that begin with that of the server.
        """
        return self._names.get(server) != frozenset() and any(
            all(rules.could_match(tool) for rules in self._allowed) and not self._denied.matches(tool)
            for tool in _some_of_each_class_and_kind(server)
        )

    def __str__(self) -> str:
        """The rules as JSON, which differs for reaches that differ."""
        rules: list[object] = [[*map(str, each)] for each in (self.deny, self.allow, *self.also)]
        return json.dumps([*rules, *({server: sorted(names)} for server, names in self.only)])

    def __reduce__(self) -> tuple[type[Reach], tuple[object, ...]]:
        """The rules are read again on unpickling, because neither RE2's expressions nor caches can be pickled."""
        return Reach, (self.allow, self.deny, self.also, self.only)

    def __and__(self, other: Reach) -> Reach:
        """Return the reach of what both allow, which is never more than either allows."""
        if self == other or other.is_everything:
            return self
        if self.is_everything:
            return other
        given = dict.fromkeys((self.allow, *self.also, other.allow, *other.also))
        allow, *also = [rules for rules in given if _EVERY_NAME not in rules] or [(_EVERY_NAME,)]
        return Reach(
            allow, tuple(dict.fromkeys((*self.deny, *other.deny))), tuple(also), _in_both(self._names, other._names)
        )


def _in_both(
    one: Mapping[str, frozenset[str]], other: Mapping[str, frozenset[str]]
) -> tuple[tuple[str, frozenset[str]], ...]:
    given = {**one, **other}
    return tuple((name, one.get(name, given[name]) & other.get(name, given[name])) for name in sorted(given))


_SOME_TOOL = "tool"


def _some_of_each_class_and_kind(server: str) -> Iterator[ToolDefinition]:
    name = namespaced(server, _SOME_TOOL)
    for hints in ({READ_ONLY: True}, {}, {DESTRUCTIVE: True}):
        yield ToolDefinition(name, server=server, annotations=hints)
    for kind in KINDS[1:]:
        yield ToolDefinition(name, server=server, annotations={READ_ONLY: True}, kind=kind)


def _rules(given: Iterable[Rule], option: str) -> tuple[Rule, ...]:
    """Read *given* once, because it may be an iterator; the rules are used several times later."""
    value = cast("object", given)
    rules = tuple(cast("Iterable[object]", value)) if isinstance(value, Iterable) else None
    if rules is None or not all(isinstance(rule, Rule) for rule in rules):
        raise BadSettingError(f"the {option} of a Reach are Rules; for rules that are texts use Reach.parse")
    return cast("tuple[Rule, ...]", rules)


class _AnyRule:
    """Whether any of some rules matches a tool, in time that hardly grows with the rules."""

    __slots__ = (
        "_is_any", "_kinds", "_match_class", "_match_name", "_match_server", "_match_shown", "_match_tag", "_names",
    )  # fmt: skip

    def __init__(self, rules: Iterable[Rule]) -> None:
        patterns: dict[RuleKind, set[str]] = {kind: set() for kind in RuleKind}
        for rule in rules:
            patterns[rule.kind].add(rule.pattern)
        self._is_any = "*" in patterns[RuleKind.NAME] or "*" in patterns[RuleKind.SHOWN]
        self._names = sorted(patterns[RuleKind.NAME] | patterns[RuleKind.SHOWN])
        # Kinds without rules are skipped. The 40,000 tools have few servers and tags, so their matches are remembered.
        self._match_name = _AnyText(patterns[RuleKind.NAME]).match if patterns[RuleKind.NAME] else None
        self._match_shown = _AnyText(patterns[RuleKind.SHOWN]).match if patterns[RuleKind.SHOWN] else None
        self._match_server = _remembering(patterns[RuleKind.SERVER])
        self._match_tag = _remembering(patterns[RuleKind.TAG])
        self._match_class = _remembering(patterns[RuleKind.CLASS])
        self._kinds = frozenset(patterns[RuleKind.KIND])

    def matches(self, definition: ToolDefinition, shown: str = "") -> bool:
        """*shown* is the shown name of the tool, if that differs."""
        if self._is_any:
            return True
        return bool(
            (self._match_name and self._match_name(definition.name))
            or (self._match_shown and self._match_shown(shown or definition.name))
            or (self._match_server and self._match_server(definition.server))
            or (self._match_tag and any(map(self._match_tag, definition.tags)))
            or (self._match_class and self._match_class(safety_of(definition.annotations).value))
            or definition.kind in self._kinds
        )

    def could_match(self, tool: ToolDefinition) -> bool:
        """Whether any rule matches *tool*, or could match another tool of its server and class."""
        beginning = tool.name.removesuffix(_SOME_TOOL).encode()
        return (
            self.matches(tool)
            or self._match_tag is not None
            or any(_beginnings(name).fullmatch(beginning) is not None for name in self._names)
        )


def _remembering(patterns: set[str]) -> Callable[[str], bool] | None:
    return lru_cache(_REMEMBERED_TEXTS)(_AnyText(patterns).match) if patterns else None


class _AnyText:
    __slots__ = ("_exact", "_globs", "_is_any")

    def __init__(self, patterns: set[str]) -> None:
        self._is_any = "*" in patterns
        globs = {pattern for pattern in patterns if is_glob(pattern)}
        self._exact = frozenset(patterns - globs)
        self._globs = GlobSet(sorted(globs))

    def match(self, text: str) -> bool:
        return self._is_any or text in self._exact or self._globs.match(text)
