"""Rules of --allow and --deny that match nothing: legal, since tools come and go, and mostly a slip of the pen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolsearch.cli.output import warn

if TYPE_CHECKING:
    from toolsearch.access.reach import Reach, Rule
    from toolsearch.engine import ToolSearch


def warn_of_idle_rules(engine: ToolSearch, reach: Reach) -> None:
    """Warn of each rule of *reach* that matches no tool of the catalog, with what may have been meant."""
    from toolsearch.access.reach import Reach

    definitions = [tool.definition for tool in engine.catalog]
    for option, rules in (("--allow", reach.allow), ("--deny", reach.deny)):
        for rule in rules:
            alone = Reach((rule,))
            if definitions and not any(map(alone.allows, definitions)):
                warn(f"no tool matches {option} {rule}{_hint(engine, rule)}")


def _hint(engine: ToolSearch, rule: Rule) -> str:
    from toolsearch.access.reach import RuleKind
    from toolsearch.tools.naming import did_you_mean

    definitions = [tool.definition for tool in engine.catalog]
    known = {
        RuleKind.NAME: [each.name for each in definitions],
        RuleKind.SHOWN: [each.name for each in definitions],
        RuleKind.SERVER: sorted({each.server for each in definitions if each.server}),
        RuleKind.TAG: sorted({tag for each in definitions for tag in each.tags}),
    }.get(rule.kind, [])
    near = did_you_mean(rule.pattern, known)
    if near or rule.kind not in (RuleKind.SERVER, RuleKind.TAG):
        return near
    return f"; there are: {', '.join(known)}" if known else f"; no tool has a {rule.kind.value}"
