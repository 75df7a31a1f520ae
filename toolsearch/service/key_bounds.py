"""Nobody makes a key that may do more than they may: not more scopes, not more tools, not for longer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from toolsearch.access.globs import GlobSet, is_glob
from toolsearch.access.reach import EVERY_TOOL, Reach, Rule, RuleKind
from toolsearch.access.scopes import includes
from toolsearch.errors import NotPermittedError
from toolsearch.service.callers import ServiceCaller
from toolsearch.service.refusals import HttpRefusal
from toolsearch.storage.keys import StoredKey

_EVERY_NAME = Rule.parse(EVERY_TOOL[0])


def require_scopes(caller: ServiceCaller, scopes: Sequence[str]) -> None:
    """Raises NotPermittedError for the first one that the caller lacks."""
    for scope in scopes:
        if not includes(caller.scopes, scope):
            raise NotPermittedError(scope)


def bounded_rules(
    own: Reach, allow: Sequence[str] | None, deny: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the rules of a new key that is made by a caller who reaches *own*; without *allow*, it reaches the same.

    Raises HttpRefusal for a rule that could allow more: each must be one of the caller's own, or the name of a tool
    that the caller's rules allow by name. Raises BadSettingError for one that cannot be used.
    """
    if allow is None and own.also:
        raise _more_than_own("name the tools that the key may use in allow")
    given = Reach.parse(EVERY_TOOL if allow is None else allow, deny)
    rules = own.allow if allow is None else given.allow
    for rule in rules:
        for bound in (own.allow, *own.also):
            if not _is_within(rule, bound):
                raise _more_than_own(f"the rule {rule_text(rule)!r} may allow tools that this credential may not use")
    denied = dict.fromkeys((*given.deny, *own.deny))
    return tuple(map(rule_text, rules)), tuple(map(rule_text, denied))


def rule_text(rule: Rule) -> str:
    """As people write it."""
    return rule.pattern if rule.kind is RuleKind.NAME else str(rule)


def bounded_end_s(own_end_s: float | None, end_s: float | None) -> float | None:
    """When a new key expires that is made with one that expires at *own_end_s*."""
    if own_end_s is None:
        return end_s
    return own_end_s if end_s is None else min(own_end_s, end_s)


def require_no_more(caller: ServiceCaller, own_end_s: float | None, key: StoredKey) -> None:
    """Before *caller* is shown a new key in place of *key*. Raises HttpRefusal or NotPermittedError."""
    if key.is_operator and not caller.is_operator:
        raise _more_than_own("it is the key of an operator")
    require_scopes(caller, key.scopes)
    if own_end_s is not None and (key.expires_s is None or key.expires_s > own_end_s):
        raise _more_than_own("it lasts longer than this credential")
    if not _has_no_more_reach(caller.principal.reach, key):
        raise _more_than_own("it reaches tools that this credential may not use")


def known_keys(caller: ServiceCaller, keys: Iterable[StoredKey]) -> list[StoredKey]:
    """Those of *keys* whose rules *caller* may know: they allow no tool that it may not use."""
    return [key for key in keys if _has_no_more_reach(caller.principal.reach, key)]


def _has_no_more_reach(own: Reach, key: StoredKey) -> bool:
    try:
        bounded_rules(own, key.allow, key.deny)
    except HttpRefusal:
        return False
    return set(own.deny) <= set(map(Rule.parse, key.deny))


def _is_within(rule: Rule, bound: Sequence[Rule]) -> bool:
    if _EVERY_NAME in bound or rule in bound:
        return True
    if rule.kind is not RuleKind.NAME or is_glob(rule.pattern):
        return False
    return GlobSet([each.pattern for each in bound if each.kind is RuleKind.NAME]).match(rule.pattern)


def _more_than_own(reason: str) -> HttpRefusal:
    return HttpRefusal(
        403, "more_than_own", f"a key cannot be made that may do more than the one it is made with: {reason}"
    )
