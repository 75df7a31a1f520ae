"""The list of tools that the model is shown from the start: it is the same in all requests of a conversation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

from toolsearch.access.reach import Reach
from toolsearch.discovery.call_tools import CALL_TOOLS, READ_SKILL_TOOL
from toolsearch.discovery.view import View
from toolsearch.proxy.body import Body
from toolsearch.proxy.known_replies import Continued
from toolsearch.proxy.tools import ToolList
from toolsearch.proxy.unchanged import PassUnchangedError
from toolsearch.tokens import HeuristicTokenCounter, definition_tokens
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import CALL_TOOL
from toolsearch.wire.capabilities import Capabilities, Cloud, Endpoint, RevealMode, capabilities_of
from toolsearch.wire.formats import (
    CHOICE,
    WireFormat,
    chosen_names,
    has_cache_mark,
    render_tool_list,
    said_in,
    text_in,
    with_cache_mark,
)
from toolsearch.wire.proxied import ProxiedWire
from toolsearch.wire.proxied_parts import compact

_EVERYTHING: Final = Reach()
_OWN_TOOLS: Final = 2  # the search tool and the call tool; readSkill is there only for skills
_FEWEST_REQUESTS: Final = 2  # of a conversation that calls a tool: for the call, and after it


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes, and how it is written."""

    wire_format: WireFormat
    wire: ProxiedWire
    cloud: Cloud = ""


@dataclass(eq=False)
class Listing:
    """What of *tools* the model is shown, and what it is not.

    opening    the entries of the conversation before the model's first answer, until the names are known
    continued  the stored reply that the request continues, whose list goes on
    """

    target: Target
    body: Body
    tools: ToolList
    opening: Sequence[JsonObject]
    continued: Continued | None = None

    @cached_property
    def api(self) -> Capabilities:
        """What the model API can do."""
        target = self.target
        return capabilities_of(Endpoint(target.wire_format, str(self.body.get("model") or ""), target.cloud))

    @cached_property
    def mode(self) -> RevealMode:
        """How found tools reach the model: the best way that its API takes beside the client's own tools."""
        tools, most = self.tools, self.api.max_deferred
        is_room = most is None or len(tools.others) + len(tools.named) + len(tools.operator) + _OWN_TOOLS <= most
        refused = set[RevealMode]({"append"}) if is_room and not tools.has_search else {"append", "deferred"}
        return next(mode for mode in self.api.modes if mode not in refused)

    # Names

    @cached_property
    def names(self) -> Sequence[str]:
        """The tools in the list, in its order, but for the proxy's own."""
        more = self._unkept.names if self.is_whole else self.asked
        before = () if self.continued is None else self.continued.listed
        known = [name for name in before if name in self.tools.named or name in self.tools.operator]
        listed = list(dict.fromkeys([*known, *self._kept, *sorted(set(more).difference(self._kept))]))
        return listed if self.is_whole else listed[: self._room]

    @cached_property
    def held_back(self) -> Collection[str]:
        """The tools that the model is not shown at first."""
        return set(self._unkept.names).difference(self.names)

    @cached_property
    def asked(self) -> Sequence[str]:
        """The tools that are listed since the client asks for them before the model's first answer."""
        if self.continued is not None or self.is_whole or self.mode == "messages":
            return ()
        asked = (name for fields in self.opening for name in self.asked_in(fields, self._beside_kept))
        return list(dict.fromkeys(asked))

    def asked_in(self, fields: JsonObject, reach: Reach) -> Sequence[str]:
        """The tools in *reach* that the client surely asks for in an entry of the conversation."""
        said = said_in(fields)
        return self.tools.remembered.surely_asked(reach, said) if said else ()

    @cached_property
    def reach(self) -> Reach:
        """The tools that are searched. The operator's run here, listed or not."""
        return self._beside_kept if self.is_whole else self._beside(self.names)

    @cached_property
    def is_whole(self) -> bool:
        """Whether all tools are listed: they are few, or a search costs more than it saves."""
        if self.continued is not None:
            return False
        rule, most, view = self.tools.engine.options.pass_through, self.api.max_tools, self._unkept
        if most is not None and len(self.tools.others) + len(self._kept) + len(view.names) > most:
            return False
        return view.is_shown_whole(rule) or (rule.max_tools > 0 and self._is_search_dearer)

    @cached_property
    def _kept(self) -> Sequence[str]:
        """The tools that are always in the list, by name: the chosen ones first if there is no room for all."""
        chosen = self.tools.chosen(chosen_names({CHOICE: self.body.get(CHOICE)}))
        kept = sorted(self.tools.kept(self._words(("system", "developer"))).difference(chosen))
        if self._room is not None and len(chosen) > self._room:
            raise PassUnchangedError("the request chooses more tools than the model API takes")
        return sorted([*chosen, *kept][: self._room])

    @cached_property
    def _room(self) -> int | None:
        """How many tools the list can hold beside those that are in it anyway."""
        most = self.api.max_tools
        return None if most is None else max(0, most - _OWN_TOOLS - self.tools.has_skills - len(self.tools.others))

    @cached_property
    def _beside_kept(self) -> Reach:
        return self._beside(self._kept)

    def _beside(self, names: Iterable[str]) -> Reach:
        return _without(tuple(name for name in names if name in self.tools.named))

    @property
    def _unkept(self) -> View:
        return self.tools.engine.view(self._beside_kept)

    def _words(self, roles: Collection[str] = ()) -> str:
        """The words of the application before the first answer, and of those in *roles*, or of everybody."""
        said = (fields.get("content") for fields in self.opening if not roles or fields.get("role") in roles)
        return "\n".join(map(text_in, [self.body.get("system"), self.body.get("instructions"), *said]))

    # Texts

    @cached_property
    def texts(self) -> list[str]:
        """The entries of the list. The client's have its bytes."""
        named, operator = self.tools.named, self.tools.operator
        own = [operator[name].definition for name in self.names if name not in named and name in operator]
        rendered: list[Any] = [*self.tools.rendered.of(own), *self._rendered_own]
        kept = [name for name in self.names if name in named]
        if not has_cache_mark(named[name].entry for name in kept):
            rendered = with_cache_mark(rendered, self.tools.marked)
        every: Mapping[str, str] = self.tools.deferred if self.mode == "deferred" else {}
        deferred = [text for name, text in every.items() if name in self.held_back]
        return [*self.tools.others, *self.tools.written(kept), *map(compact, rendered), *deferred]

    @cached_property
    def own(self) -> Sequence[ToolDefinition]:
        """The proxy's own tools. Beside tools that are all listed, only skills need any."""
        return self._own_beside(is_whole=self.is_whole)

    def _own_beside(self, *, is_whole: bool) -> Sequence[ToolDefinition]:
        skills = [READ_SKILL_TOOL] if self.tools.has_skills else []
        if is_whole and not skills:
            return []
        calls = [CALL_TOOLS[CALL_TOOL]] if self.mode == "fixed" and not is_whole else []
        return [self.tools.search_definition, *skills, *calls]

    @property
    def _rendered_own(self) -> Sequence[JsonObject]:
        """The entries of the proxy's own tools. Beside deferred tools, the search may be the API's own."""
        if self.mode != "deferred":
            return self.tools.rendered.of(self.own)
        return [render_tool_list([each], [each], self.target.wire_format)[0] for each in self.own]

    # Tokens: estimates

    @property
    def all_tokens(self) -> int:
        """Those of all tools that can be searched."""
        return self.tools.engine.view(_EVERYTHING).estimated_tokens

    @cached_property
    def saved_tokens(self) -> int:
        """Those of the tools that are not in the list."""
        return 0 if self.is_whole else self.tools.engine.view(_without(tuple(self.names))).estimated_tokens

    def sent_tokens(self, revealed: Iterable[str]) -> int:
        """Those of the tools that the model is sent, in the list and as *revealed* since."""
        found = sum(map(self.tools.remembered.tokens, set(revealed).difference(self.names)))
        return self.all_tokens - self.saved_tokens + found + (0 if self.is_whole else self._own_tokens)

    @cached_property
    def _own_tokens(self) -> int:
        own = self._own_beside(is_whole=False)
        return sum(definition_tokens(definition, HeuristicTokenCounter()) for definition in own)

    @property
    def _is_search_dearer(self) -> bool:
        """Whether a conversation with one call costs more with a search, which is one request more.

        It counts the first request, so that the answer is the same in all requests of a conversation.
        """
        listed = self.tools.written(name for name in self._kept if name in self.tools.named)
        rest = HeuristicTokenCounter().count("\n".join([self._words(), *self.tools.others, *listed]))
        whole = _FEWEST_REQUESTS * (rest + self._unkept.estimated_tokens)
        return whole < (_FEWEST_REQUESTS + 1) * (rest + self._own_tokens)


@lru_cache(256)
def _without(names: tuple[str, ...]) -> Reach:
    """All tools but these."""
    return Reach.parse(deny=sorted(names))
