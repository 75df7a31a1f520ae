"""Rendering, and what surrounds every page: navigation, the switch between light and dark, the files they load."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fastapi import Request, Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.staticfiles import StaticFiles
from starlette.types import Scope as AsgiScope

from toolsearch.access.scopes import Scope
from toolsearch.errors import NotPermittedError
from toolsearch.service.callers import ServiceCaller
from toolsearch.service.pages import filters
from toolsearch.service.paths import PAGES
from toolsearch.service.refusals import HttpRefusal
from toolsearch.service.visits import Visit

_HERE: Final = Path(__file__).parent
_STATIC: Final = _HERE / "static"
ROOT: Final = PAGES
THEME_COOKIE: Final = "toolsearch_theme"
THEMES: Final = ("light", "dark")


def _version_of(files: Path) -> str:
    """Changes whenever one of *files* does, so that browsers may keep them."""
    parts = [file.read_bytes() for file in sorted(files.iterdir()) if file.is_file()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


STATIC_PATH: Final = f"{ROOT}/static/{_version_of(_STATIC)}"


@dataclass(frozen=True, slots=True)
class Section:
    """One entry of the navigation, for visitors whose key has *scope*."""

    path: str
    title: str
    icon: str
    scope: Scope
    is_about_all: bool = False  # and so not for keys with rules
    is_for_operators: bool = False

    def is_for(self, caller: ServiceCaller) -> bool:
        within_reach = not self.is_about_all
        try:
            caller.admit((self.scope,), within_reach=within_reach, is_for_operators=self.is_for_operators)
        except (NotPermittedError, HttpRefusal):
            return False
        return True


SECTIONS: Final = (
    Section(f"{ROOT}/playground", "Playground", "search", "search"),
    Section(f"{ROOT}/catalogs", "Catalogs", "catalog", "read-catalog"),
    Section(f"{ROOT}/toolsets", "Toolsets", "toolset", "read-catalog"),
    Section(f"{ROOT}/imports", "Imports", "import", "read-catalog", is_about_all=True),
    Section(f"{ROOT}/approvals", "Approvals", "shield", "read-catalog"),
    Section(f"{ROOT}/sessions", "Sessions", "session", "search"),
    Section(f"{ROOT}/usage", "Usage", "chart", "search"),
    Section(f"{ROOT}/misses", "Misses", "miss", "read-catalog", is_about_all=True),
    Section(f"{ROOT}/receipts", "Receipts", "receipt", "call"),
    Section(f"{ROOT}/audit", "Audit", "audit", "admin", is_about_all=True),
    Section(f"{ROOT}/keys", "Keys", "key", "admin"),
    Section(f"{ROOT}/tenants", "Tenants", "tenant", "admin", is_about_all=True, is_for_operators=True),
)


def sections_for(visit: Visit) -> list[Section]:
    return [each for each in SECTIONS if each.is_for(visit.caller)]


class KeptFiles(StaticFiles):
    """Static files under a path that changes with them."""

    def __init__(self) -> None:
        super().__init__(directory=_STATIC)

    async def get_response(self, path: str, scope: AsgiScope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["cache-control"] = "public, max-age=31536000, immutable"
        return response


def icon(name: str) -> Markup:
    """A sign out of ``static/icons.svg``, which says nothing that the text beside it does not."""
    return Markup('<svg class="icon" aria-hidden="true"><use href="{}/icons.svg#{}"></use></svg>').format(
        STATIC_PATH, name
    )


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        finalize=filters.shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(filters.FILTERS)
    return made


ENVIRONMENT: Final = _environment()  # of all templates
_GLOBALS: Final[dict[str, Any]] = {"static": STATIC_PATH, "icon": icon, "root": ROOT}


def page(
    request: Request, template: str, *, visit: Visit | None = None, status: int = 200, **values: object
) -> HTMLResponse:
    """Render *template*; it is given *values*, and what its frame needs."""
    theme = request.cookies.get(THEME_COOKIE, "")
    text = ENVIRONMENT.get_template(template, globals=_GLOBALS).render(
        visit=visit,
        sections=sections_for(visit) if visit else [],
        path=request.url.path,
        here=request.url.path + (f"?{request.url.query}" if request.url.query else ""),
        theme=theme if theme in THEMES else "",
        **values,
    )
    return HTMLResponse(text, status, headers={"cache-control": "no-store"})
