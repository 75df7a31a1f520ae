"""``toolsearch search``: finds the tools and skills that fit a query, without those far below the best.

Rules of --allow and --deny that match nothing cause a warning, since most of them are typing errors.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from toolsearch.cli.command_line import ExitCode
from toolsearch.cli.opening import opened_engine
from toolsearch.cli.options import (
    AllowOption,
    DenyOption,
    EncoderOption,
    IndexOption,
    JsonOption,
    KindOption,
    ServerOption,
    SettingsOption,
    SourceOption,
    StrategyOption,
)
from toolsearch.cli.output import line, print_json, stdout, table, tell, warn
from toolsearch.tools.definition import FOUND_KINDS, EntryKind, ToolDefinition, ToolReference

if TYPE_CHECKING:
    from toolsearch.access.reach import Reach, Rule
    from toolsearch.engine import ToolSearch
    from toolsearch_indexes.documents import Explanation

# Measured on the labelled sets of `benchmarks.recall` except clinc: up to 300 test queries each, five hybrid hits,
# 1,881 answers in all. The first tool does not count. Below this share of the best score, one tool in 160 was right;
# above it, one in eight. At a half it is one in 70, and 1.3 % of the answers lose their only right tool, against 0.4 %.
_SHARE_OF_THE_BEST: Final = 0.4


def near_the_best(references: Sequence[ToolReference]) -> list[ToolReference]:
    """The tools near the best one. *references* are best first. Tools found by name or by pattern are always kept."""
    least = _SHARE_OF_THE_BEST * references[0].score if references else 0.0
    return [reference for reference in references if reference.score >= least]


def warn_of_idle_rules(engine: ToolSearch, reach: Reach) -> None:
    """Warn of each rule of *reach* that matches no tool of the catalog, and suggest similar names."""
    from toolsearch.access.reach import Reach

    definitions = _definitions(engine)
    for option, rules in (("--allow", reach.allow), ("--deny", reach.deny)):
        for rule in rules:
            alone = Reach((rule,))
            if definitions and not any(map(alone.allows, definitions)):
                warn(f"no tool matches {option} {rule}{_hint(engine, rule)}")


def _hint(engine: ToolSearch, rule: Rule) -> str:
    from toolsearch.access.reach import RuleKind
    from toolsearch.tools.naming import did_you_mean

    definitions = _definitions(engine)
    names: dict[RuleKind, list[str]] = {
        RuleKind.NAME: [each.name for each in definitions],
        RuleKind.SHOWN: [each.name for each in definitions],
        RuleKind.SERVER: sorted({each.server for each in definitions if each.server}),
        RuleKind.TAG: sorted({tag for each in definitions for tag in each.tags}),
        RuleKind.KIND: sorted({each.kind for each in definitions}),
    }
    known = names.get(rule.kind, [])
    near = did_you_mean(rule.pattern, known)
    if near or rule.kind not in (RuleKind.SERVER, RuleKind.TAG, RuleKind.KIND):
        return near
    return f"; there are: {', '.join(known)}" if known else f"; no tool has a {rule.kind.value}"


def _definitions(engine: ToolSearch) -> list[ToolDefinition]:
    return [each.definition for each in engine.catalog.entries()]


_MOST_MISSING = 5  # missing names that are reported, with similar names


def search(
    words: Annotated[list[str], typer.Argument(metavar="QUERY", help="A few words, select:NAME,NAME, or /PATTERN/.")],
    *,
    index: IndexOption = None,
    source: SourceOption = None,
    settings: SettingsOption = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Tools shown at most. Default: the setting search.limit, 5.")
    ] = None,
    show_all: Annotated[
        bool, typer.Option("--all", help="Also list tools with less than two fifths of the best score.")
    ] = False,
    strategy: StrategyOption = None,
    server: ServerOption = None,
    kind: KindOption = None,
    allow: AllowOption = None,
    deny: DenyOption = None,
    encoder: EncoderOption = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say how each score came about.")] = False,
    tool: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Explain this tool too, found or not. Repeatable.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Find tools and skills for a task. Exit code 1 if none fits, and 0 for a weak answer, too.

    An answer is weak if requests that no tool serves often get as good a one: the table marks such scores with "?", and
    --json says it as "is_weak", and as the "confidence" of each tool. Tools far below the best are left out.
    """
    from toolsearch.access.reach import EVERY_TOOL, Reach
    from toolsearch.discovery.shown import is_weak
    from toolsearch.errors import shown_name
    from toolsearch.tools.naming import did_you_mean
    from toolsearch_indexes.queries import Words, read_form, select_missing

    query = " ".join(words)
    reach = Reach.parse(allow or EVERY_TOOL, deny or ())
    options = {"index__strategy": strategy, "index__encoder": encoder, "search__limit": limit}
    with opened_engine(index, source, settings, **options) as engine:
        warn_of_idle_rules(engine, reach)
        kinds = cast("Collection[EntryKind]", kind or FOUND_KINDS)
        ask = partial(engine.search, reach=reach, server=server, kinds=kinds)
        every = ask(query, limit=engine.options.limit)
        is_ranked = isinstance(read_form(query), Words) and engine.strategies[0] != "regex"
        found = every if show_all or not is_ranked else near_the_best(every)
        names = dict.fromkeys([*(reference.name for reference in found if explain), *(tool or ())])
        missing = select_missing(query, lambda name: ask(name, limit=1))
        explained = [engine.explain(query, name, reach=reach, server=server) for name in names]
        if as_json:
            results = [asdict(reference) for reference in found]
            answer: dict[str, Any] = {
                "query": query,
                "strategy": engine.strategies[0],
                "is_weak": is_weak(found),
                "results": results,
                "left_out": len(every) - len(found),
            }
            if missing:
                answer["not_found"] = missing
            if names:
                answer["explained"] = [{"name": one.tool, **asdict(one)} for one in explained]
            print_json(answer | {"notes": engine.notes})
        elif found:
            _show_found(found)
            _tell_what_is_left_to_do(found, left_out=len(every) - len(found))
        else:
            tell("Nothing fits; try other words, one capability at a time, or a /pattern/.")
        if not as_json:
            for name in missing[:_MOST_MISSING]:
                view = engine.view(reach, server)
                tell(f"No tool is named {shown_name(name)}{did_you_mean(name, [*view.names, *view.contents])}.")
        if explained and not as_json:
            _show(explained)
    return ExitCode.OK if found else ExitCode.NOTHING


def _show_found(found: Sequence[ToolReference]) -> None:
    """Show the kinds as well, if there is something else than tools."""
    is_mixed = any(reference.kind != "tool" for reference in found)
    columns = ("name", "kind") if is_mixed else ("tool",)
    shown = table("", (*columns, "score", "what it does"), numbers=("score",), flexible="what it does")
    no_mark = " " if any(reference.confidence == "low" for reference in found) else ""
    for reference in found:
        score = f"{reference.score:.2f}{'?' if reference.confidence == 'low' else no_mark}"
        kind = [reference.kind] if is_mixed else []
        shown.add_row(line(reference.name, "cyan"), *kind, score, line(reference.summary))
    stdout().print(shown)


def _tell_what_is_left_to_do(found: Sequence[ToolReference], *, left_out: int) -> None:
    from toolsearch.discovery.shown import is_weak

    if is_weak(found):
        tell("Weak: requests that no tool serves often score as high (?); try other words, or one thing at a time.")
    if left_out:
        tell(f"{left_out:,} more far below the best; --all lists them too.")


def _show(explained: Sequence[Explanation]) -> None:
    shown = table("", ("tool", "outcome", "words", "meaning", "score"), numbers=("score",), flexible="words")
    for one in explained:
        words = [f"{match.word} {match.score:.1f} ({', '.join(match.fields)})" for match in one.words]
        words += [f"no {word}" for word in one.missing]
        meaning = f"cosine {one.cosine:.2f}: {one.weight:g} x {one.deviations:.1f}" if one.cosine is not None else ""
        if one.read is not None:
            meaning = f"{meaning}; read {one.read:+.1f}"
        place = f"place {one.place}" if one.place else ""
        outcome = ", ".join(filter(None, [place, "" if one.outcome == "found" else one.outcome]))
        shown.add_row(line(one.tool, "cyan"), outcome, line("; ".join(words)), meaning, f"{one.score:.2f}")
    stdout().print(shown)
