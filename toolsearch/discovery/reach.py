"""What a caller may see: rules that allow or deny tools by name, server, tag or class. Applied before ranking."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from toolsearch.discovery.globs import GlobSet, is_glob
from toolsearch.errors import BadSettingError
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.safety import SafetyClass, safety_of

_MAX_RULE_CHARACTERS = 512


class Subject(Enum):
    """What of a tool a rule looks at."""

    NAME = "name"
    SERVER = "server"
    TAG = "tag"
    CLASS = "class"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, as text: ``git__git_log`` or ``name:git__git_log``, ``server:git``, ``tag:read`` or
    ``class:destructive``, where the class is one of `SafetyClass`.

    What stands after the colon may be a glob (``git__*``, ``server:aws-*``), which has to match the whole name, server
    or tag; `GlobSet` says what globs there are. ``[*]`` is a literal star. Upper and lower case differ.
    """

    subject: Subject
    pattern: str

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Raise BadSettingError for a rule that is empty, too long, of another kind, or no valid glob."""
        kind, colon, pattern = text.strip().partition(":")
        if not colon:
            kind, pattern = Subject.NAME.value, kind
        if not pattern or kind not in _SUBJECTS:
            raise BadSettingError(
                f"cannot use the reach rule {text[:_MAX_RULE_CHARACTERS]!r}: write a tool's name or a glob such as "
                "'git__*', 'server:<server>', 'tag:<tag>' or 'class:read', 'class:write', 'class:destructive'"
            )
        if len(pattern) > _MAX_RULE_CHARACTERS:
            raise BadSettingError(
                f"a reach rule has {len(pattern)} characters, at most {_MAX_RULE_CHARACTERS} are taken; "
                "write several rules, or a shorter glob"
            )
        if _SUBJECTS[kind] is Subject.CLASS and pattern not in _CLASSES:
            raise BadSettingError(f"there is no class {pattern!r} of tools; there are {', '.join(_CLASSES)}")
        if is_glob(pattern):
            GlobSet([pattern])  # so that a bad glob is named alone, and here
        return cls(_SUBJECTS[kind], pattern)

    def __str__(self) -> str:
        return f"{self.subject.value}:{self.pattern}"


_CLASSES = tuple(each.value for each in SafetyClass)
_SUBJECTS = {subject.value: subject for subject in Subject}


@dataclass(frozen=True, slots=True)
class Reach:
    """The tools a caller may see. A deny rule beats every allow rule; no allow rule at all allows everything."""

    allow: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    _allowed: _AnyRule = field(init=False, repr=False, compare=False)
    _denied: _AnyRule = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_allowed", _AnyRule(self.allow))
        object.__setattr__(self, "_denied", _AnyRule(self.deny))

    @classmethod
    def parse(cls, allow: Iterable[str] = (), deny: Iterable[str] = ()) -> Reach:
        """Read each rule as `Rule.parse` does."""
        return cls(tuple(map(Rule.parse, allow)), tuple(map(Rule.parse, deny)))

    @property
    def is_everything(self) -> bool:
        """Whether no tool is left out, so that a search needs no filter."""
        return not self.allow and not self.deny

    def allows(self, definition: ToolDefinition) -> bool:
        return (not self.allow or self._allowed.matches(definition)) and not self._denied.matches(definition)


class _AnyRule:
    """Whether any of some rules matches a tool, in time that hardly grows with the rules."""

    __slots__ = ("_classes", "_names", "_servers", "_tags")

    def __init__(self, rules: Iterable[Rule]) -> None:
        patterns: dict[Subject, set[str]] = {subject: set() for subject in Subject}
        for rule in rules:
            patterns[rule.subject].add(rule.pattern)
        self._names = _AnyText(patterns[Subject.NAME])
        self._servers = _AnyText(patterns[Subject.SERVER])
        self._tags = _AnyText(patterns[Subject.TAG])
        self._classes = _AnyText(patterns[Subject.CLASS])

    def matches(self, definition: ToolDefinition) -> bool:
        return (
            self._names.match(definition.name)
            or self._servers.match(definition.server)
            or any(map(self._tags.match, definition.tags))
            or self._classes.match(safety_of(definition.annotations).value)
        )


class _AnyText:
    __slots__ = ("_exact", "_globs")

    def __init__(self, patterns: set[str]) -> None:
        globs = {pattern for pattern in patterns if is_glob(pattern)}
        self._exact = frozenset(patterns - globs)
        self._globs = GlobSet(sorted(globs))

    def match(self, text: str) -> bool:
        return text in self._exact or self._globs.match(text)
