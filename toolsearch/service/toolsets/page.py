"""The pages of toolsets: their tools and missing tools, a form to make and change one, and earlier versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Final, TypeAlias

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import ValidationError

from toolsearch.api.catalogs import NewToolset, ToolsetMember, ToolsetRule
from toolsearch.errors import BadSettingError, ConflictError, TooManyError, UnknownRecordError
from toolsearch.gateway.trust.differences import Place, places_of
from toolsearch.service.catalogs.catalogs import Catalogs
from toolsearch.service.corpora.asked import opened
from toolsearch.service.corpora.toolset_specs import TOOLSET, ToolsetSpec
from toolsearch.service.pages import frame
from toolsearch.service.pages.filters import Exact
from toolsearch.service.pages.frame import PageRoute, SentForm, see_other, sent_with, visit_with, what_is_wrong
from toolsearch.service.toolsets.routes import spec_of
from toolsearch.service.toolsets.toolsets import KeptToolset, Preview, Toolsets
from toolsearch.service.web.callers import Visit
from toolsearch.service.web.parts import ServiceParts, the_service

MOST_TOOLS: Final = 400  # tools that have rows in one form
_SPARE_ROWS: Final = 2
FormRow: TypeAlias = Mapping[str, str]  # the texts of one row of the form, by its fields
_TOOL: Final = tuple(each.name for each in fields(ToolsetMember))  # their tags are separated by commas
_RULE: Final = tuple(each.name for each in fields(ToolsetRule))  # what they allow and deny, by white space


@dataclass(frozen=True, slots=True)
class Draft:
    """The texts of the form. *over* is the version of the record that it was made from; 0: it is a new toolset."""

    about: FormRow  # name and description
    tools: tuple[FormRow, ...] = ()
    rules: tuple[FormRow, ...] = ()
    over: int = 0

    @classmethod
    def of(cls, name: str, spec: ToolsetSpec, over: int) -> Draft:
        tools = ({**_texts(each), "tags": ", ".join(each.tags)} for each in spec.tools)
        rules = (
            {"catalog": each.catalog, "allow": " ".join(each.allow), "deny": " ".join(each.deny)} for each in spec.rules
        )
        return cls(_about(name, spec.description), tuple(tools), tuple(rules), over)

    @classmethod
    def sent(cls, form: SentForm, name: str = "") -> Draft:
        """Read a form. Rows without a tool, without an allowed name, or with a mark for deletion are left out."""
        tools = [
            {field: form.exact(f"tool.{row}.{field}") for field in _TOOL}
            for row in range(_count(form, "tools"))
            if form.text(f"tool.{row}.tool") and not form.text(f"tool.{row}.out")
        ]
        added = [str(each).partition("/") for each in form.form.getlist("add")]
        rules = [
            {field: form.exact(f"rule.{row}.{field}") for field in _RULE}
            for row in range(_count(form, "rules"))
            if form.text(f"rule.{row}.allow")
        ]
        return cls(
            _about(name or form.text("name"), form.exact("description")),
            (*tools, *({**_empty(_TOOL), "catalog": catalog, "tool": tool} for catalog, _, tool in added)),
            tuple(rules),
            _count(form, "over"),
        )

    @property
    def name(self) -> str:
        return self.about["name"]

    def body(self) -> NewToolset:
        """Raises ValidationError."""
        return NewToolset.model_validate(
            {**self.about, "tools": list(map(_member, self.tools)), "rules": list(map(_rule, self.rules))}
        )

    @property
    def exact(self) -> Draft:
        """The same for the fields of a form."""
        return replace(
            self,
            about=_exact(self.about),
            tools=tuple(map(_exact, self.tools)),
            rules=tuple(map(_exact, self.rules)),
        )

    def with_spare_rows(self) -> Draft:
        return replace(
            self,
            tools=(*self.tools, *[_empty(_TOOL)] * _SPARE_ROWS),
            rules=(*self.rules, _empty(_RULE)),
        )


def _about(name: str, description: str = "") -> FormRow:
    return {"name": name, "description": description}


def _empty(names: Iterable[str]) -> FormRow:
    return dict.fromkeys(names, "")


def _texts(member: ToolsetMember) -> FormRow:
    return {name: str(getattr(member, name) or "") for name in _TOOL}


def _exact(row: FormRow) -> FormRow:
    return {name: Exact(text) for name, text in row.items()}


def _member(row: FormRow) -> dict[str, Any]:
    """The body of a `ToolsetMember`; what is left empty is as in its catalog."""
    own = {name: row[name] for name in ("name", "title", "description") if row[name].strip()}
    tags = [tag.strip() for tag in row["tags"].split(",") if tag.strip()]
    return {"catalog": row["catalog"], "tool": row["tool"].strip(), **own, "tags": tags}


def _rule(row: FormRow) -> dict[str, Any]:
    return {"catalog": row["catalog"], "allow": row["allow"].split(), "deny": row["deny"].split()}


@dataclass(frozen=True, slots=True)
class ToolsToAdd:
    """The tools of a catalog that were searched for and can be added."""

    catalog: str = ""
    text: str = ""
    names: Sequence[str] = field(default_factory=tuple[str, ...])


def documents(spec: ToolsetSpec) -> dict[str, Any]:
    """*spec*, with its tools by their names in the toolset, so that a tool keeps its place when others go."""
    tools = {
        each.shown_name: {
            "from": f"{each.catalog}/{each.tool}",
            **{key: value for key in ("title", "description") if (value := getattr(each, key)) is not None},
            **({"tags": ", ".join(each.tags)} if each.tags else {}),
        }
        for each in spec.tools
    }
    rules = _by_catalog((each.catalog, f"allow {' '.join(each.allow)}", each.deny) for each in spec.rules)
    made_of = {"description": spec.description, "tools": tools, "rules": rules}
    return {name: part for name, part in made_of.items() if part}


def _by_catalog(rules: Iterable[tuple[str, str, Sequence[str]]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for catalog, allow, deny in rules:
        rule = f"{allow}, deny {' '.join(deny)}" if deny else allow
        found[catalog] = f"{found[catalog]}\n{rule}" if catalog in found else rule
    return found


def _count(form: SentForm, name: str) -> int:
    text = form.text(name)
    return int(text) if text.isdecimal() and len(text) < 10 else 0


router = APIRouter(route_class=PageRoute, include_in_schema=False)
_Service = Annotated[ServiceParts, Depends(the_service)]
_Writer = Annotated[Visit, Depends(visit_with("read-catalog", "write-catalog"))]
_Sent = Annotated[SentForm, Depends(sent_with("read-catalog", "write-catalog"))]
_MOST_CATALOGS: Final = 500  # catalogs that a list offers
_MOST_FOUND: Final = 30
_CHANGED: Final = "It was changed since this form was opened. Open it again, and make your changes once more."


@dataclass(frozen=True, slots=True)
class ToolsetChange:
    """The effects of a change on the tools that the toolset shows, and on each part of its definition."""

    preview: Preview
    places: tuple[Place, ...]
    is_new: bool

    @property
    def is_none(self) -> bool:
        return not self.places and not self.is_new


@router.get("/new-toolset")
async def new(request: Request, service: _Service, visit: _Writer) -> Response:
    return await _form(request, service, visit, Draft(_about("")))


@router.post("/new-toolset")
async def make(request: Request, service: _Service, sent: _Sent) -> Response:
    return await _sent_form(request, service, sent, None)


@router.get("/toolsets/{name}/edit")
async def edit(request: Request, service: _Service, visit: _Writer, name: str) -> Response:
    kept = await service[Toolsets].get(visit.caller.tenant, name)
    return await _form(request, service, visit, Draft.of(name, kept.spec, kept.version), kept)


@router.post("/toolsets/{name}/edit")
async def change(request: Request, service: _Service, sent: _Sent, name: str) -> Response:
    kept = await service[Toolsets].get(sent.visit.caller.tenant, name)
    return await _sent_form(request, service, sent, kept)


@router.get("/toolsets/{name}/versions/{number}")
async def version(request: Request, service: _Service, visit: _Writer, name: str, number: int) -> Response:
    """What going back to that version would change."""
    return await _version(request, service, visit, name, number)


@router.post("/toolsets/{name}/versions/{number}")
async def go_back(request: Request, service: _Service, sent: _Sent, name: str, number: int) -> Response:
    tenant, over = sent.visit.caller.tenant, sent.text("over")
    earlier = await service[Toolsets].version(tenant, name, number)
    try:
        await service[Toolsets].change(tenant, name, lambda _: earlier.spec, over=int(over) if over.isdecimal() else -1)
    except ConflictError:
        return await _version(request, service, sent.visit, name, number, refused=_CHANGED)
    except BadSettingError as error:
        return await _version(request, service, sent.visit, name, number, refused=str(error))
    return see_other(_path(name))


@router.post("/toolsets/{name}/delete")
async def delete(service: _Service, sent: _Sent, name: str) -> Response:
    await service[Toolsets].delete(sent.visit.caller.tenant, name)
    return see_other(f"{frame.ROOT}/toolsets")


async def _sent_form(request: Request, service: ServiceParts, sent: SentForm, kept: KeptToolset | None) -> Response:
    """Search for tools, add rows, preview the change, or apply it, depending on the button."""
    draft, visit = Draft.sent(sent, kept.name if kept else ""), sent.visit
    wanted = sent.text("do")
    if wanted != "apply":
        request.state.needed_scopes = ()  # nothing is written, so the audit needs no record
    if wanted not in ("preview", "apply"):
        found = await _found(service, visit, sent.text("find-catalog"), sent.text("find"))
        return await _form(request, service, visit, draft, kept, found=found)
    try:
        spec = spec_of(draft.body())
        if wanted == "apply":
            await _apply(service, visit, draft, spec, kept)
            return see_other(_path(draft.name))
        if kept is None:
            await _require_free(service, visit.caller.tenant, draft.name)
        change = await _change(service, visit.caller.tenant, spec, kept)
    except ValidationError as error:
        return await _form(request, service, visit, draft, kept, refused=what_is_wrong(error))
    except ConflictError:
        refused = _CHANGED if kept else f"There is a toolset {draft.name} already."
        return await _form(request, service, visit, draft, kept, refused=refused)
    except (BadSettingError, TooManyError) as error:
        return await _form(request, service, visit, draft, kept, refused=str(error))
    return frame.page(
        request, "toolset_change.html", visit=visit, draft=draft.exact, kept=kept, change=change, number=0, refused=""
    )


async def _apply(
    service: ServiceParts, visit: Visit, draft: Draft, spec: ToolsetSpec, kept: KeptToolset | None
) -> None:
    tenant = visit.caller.tenant
    if kept is None:
        await service[Toolsets].create(tenant, draft.name, spec)
    else:
        await service[Toolsets].change(tenant, kept.name, lambda _: spec, over=draft.over)


async def _require_free(service: ServiceParts, tenant: str, name: str) -> None:
    """Raises ConflictError."""
    with suppress(UnknownRecordError):
        await service[Toolsets].get(tenant, name)
        raise ConflictError(TOOLSET, name)


async def _change(service: ServiceParts, tenant: str, spec: ToolsetSpec, kept: KeptToolset | None) -> ToolsetChange:
    preview = await service[Toolsets].preview(tenant, spec, of=kept.name if kept else "")
    places = places_of(documents(kept.spec) if kept else None, documents(spec))
    return ToolsetChange(preview, tuple(place for place in places if place.is_changed), kept is None)


async def _version(
    request: Request, service: ServiceParts, visit: Visit, name: str, number: int, *, refused: str = ""
) -> Response:
    tenant = visit.caller.tenant
    kept = await service[Toolsets].get(tenant, name)
    earlier = await service[Toolsets].version(tenant, name, number)
    change = await _change(service, tenant, earlier.spec, kept)
    return frame.page(
        request,
        "toolset_change.html",
        visit=visit,
        status=422 if refused else 200,
        draft=Draft(_about(name), over=kept.version),
        kept=kept,
        change=change,
        number=number,
        refused=refused,
    )


async def _form(
    request: Request,
    service: ServiceParts,
    visit: Visit,
    draft: Draft,
    kept: KeptToolset | None = None,
    *,
    refused: str = "",
    found: ToolsToAdd | None = None,
) -> Response:
    records = await service[Catalogs].page(visit.caller.tenant, after="", limit=_MOST_CATALOGS)
    named = [row["catalog"] for row in (*draft.tools, *draft.rules)]
    return frame.page(
        request,
        "toolset_edit.html",
        visit=visit,
        status=422 if refused else 200,
        draft=draft.with_spare_rows().exact,
        kept=kept,
        catalogs=list(dict.fromkeys([*(record.id for record in records), *filter(None, named)])),
        refused=refused,
        found=found or ToolsToAdd(),
        is_too_large=len(draft.tools) > MOST_TOOLS,
    )


async def _found(service: ServiceParts, visit: Visit, catalog: str, text: str) -> ToolsToAdd:
    """The first tools, skills, prompts and resources of a catalog that hold *text* in their names."""
    names: list[str] = []
    if text:
        with suppress(UnknownRecordError):
            async with opened(service, visit, f"catalog/{catalog}") as used:
                view = used.view_of(visit.caller)
                names = sorted((*view.names, *view.contents))
    fitting = [name for name in names if text.lower() in name.lower()]
    return ToolsToAdd(catalog, text, fitting[:_MOST_FOUND])


def _path(name: str) -> str:
    return f"{frame.ROOT}/toolsets/{name}"


list_router = APIRouter(route_class=PageRoute, include_in_schema=False)
_Reader = Annotated[Visit, Depends(visit_with("read-catalog", within_reach=True))]
_TOOLSETS: Final = 100  # toolsets on a page
_VERSIONS: Final = 20


@list_router.get("/toolsets")
async def toolsets(
    request: Request, service: _Service, visit: _Reader, after: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    caller = visit.caller
    found = await service[Toolsets].page(caller.tenant, after=after, limit=_TOOLSETS)
    page = [await service[Toolsets].within_reach(each, caller) for each in found]
    return frame.page(
        request, "toolsets.html", visit=visit, toolsets=page, next=page[-1].name if len(page) == _TOOLSETS else ""
    )


@list_router.get("/toolsets/{name}")
async def toolset(request: Request, service: _Service, visit: _Reader, name: str) -> Response:
    caller = visit.caller
    newest = await service[Toolsets].get(caller.tenant, name)
    kept = await service[Toolsets].within_reach(newest, caller)
    tools, absent = await service[Toolsets].tools(name, caller)
    earlier = await service[Toolsets].versions(caller.tenant, name, before=None, limit=_VERSIONS)
    versions = [await service[Toolsets].within_reach(each, caller) for each in earlier]
    return frame.page(request, "toolset.html", visit=visit, toolset=kept, tools=tools, absent=absent, versions=versions)
