"""One tool: its definition, what it costs, and a form to call it by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request, Response

from toolsearch.access.reach import Reach
from toolsearch.service.corpora.corpus import Corpus
from toolsearch.service.pages import frame
from toolsearch.service.pages.corpus_choice import opened
from toolsearch.service.pages.parameters import Parameter, parameters_of
from toolsearch.service.pages.routing import PageRoute, visit_with
from toolsearch.service.service import Service, the_service
from toolsearch.service.visits import Visit
from toolsearch.threads import search_threads
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.tools.safety import SafetyClass, safety_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_Service = Annotated[Service, Depends(the_service)]
_Searcher = Annotated[Visit, Depends(visit_with("search"))]

TOOL_PATH: Final = "/tools/{kind}/{name}/{tool}"


@dataclass(frozen=True, slots=True)
class ToolPage:
    """What the page of a tool shows."""

    tool: Tool
    tokens: int

    @property
    def definition(self) -> ToolDefinition:
        return self.tool.definition

    @property
    def parameters(self) -> list[Parameter]:
        return parameters_of(self.definition.input_schema)

    @property
    def safety(self) -> SafetyClass:
        return safety_of(self.definition.annotations)


@router.get(TOOL_PATH)
async def show(request: Request, service: _Service, visit: _Searcher, kind: str, name: str, tool: str) -> Response:
    found = await find(service, visit, f"{kind}/{name}", tool)
    return frame.page(request, "tool.html", visit=visit, corpus=f"{kind}/{name}", shown=found)


async def find(service: Service, visit: Visit, corpus: str, tool: str) -> ToolPage:
    """Raises UnknownRecordError, or UnknownToolError also for a tool out of reach."""
    async with opened(service, visit, corpus) as used:
        return await search_threads.run(_found, used, visit.caller.principal.reach, tool)


def _found(corpus: Corpus, reach: Reach, name: str) -> ToolPage:
    view = corpus.engine.view(reach)
    tool = view.get(name)
    return ToolPage(tool, view.tokens_of(tool.definition))
