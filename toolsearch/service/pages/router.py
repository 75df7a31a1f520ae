"""All pages, and the files that they load."""

from __future__ import annotations

from fastapi import FastAPI

from toolsearch.service.pages import frame, playground, sign_in

_ROUTERS = (sign_in.router, playground.router)


def add_pages(app: FastAPI) -> None:
    for router in _ROUTERS:
        app.include_router(router)
    app.mount(frame.STATIC_PATH, frame.KeptFiles())
