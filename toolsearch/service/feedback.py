"""Learning from what people say of searches, by the same rules as from what sessions call."""

from __future__ import annotations

from toolsearch.engine import ToolSearch
from toolsearch.service.callers import ServiceCaller


def learn(engine: ToolSearch, caller: ServiceCaller, query: str, tool: str, day: int) -> None:
    """Note that *tool* served *query*. What one key says in a day weighs as much as one session, so never much."""
    if engine.usage is None:
        return
    session = f"feedback {caller.key_id} {day}"
    engine.usage.discovered(caller.tenant, session, engine.vocabulary.terms_of(query), [tool])
    engine.usage.called(caller.tenant, session, tool)
