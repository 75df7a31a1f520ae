"""A route that reads the body of the most frequent requests fast: validated once, without FastAPI's own steps."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias, get_type_hints

from fastapi import Request, Response
from fastapi.params import Depends
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

from toolsearch.service.web.bodies import media_type

_Handler: TypeAlias = Callable[[Request], Coroutine[Any, Any, Response]]
_OfRequest: TypeAlias = Callable[[Request], Awaitable[Any]]


class DirectRoute(APIRoute):
    """For an endpoint that takes one body and dependencies that need only the request, and returns a `Response`.

    A body that does not fit is left to FastAPI, which reports the fault as in any route.
    """

    def get_route_handler(self) -> _Handler:
        """Raises TypeError for an endpoint with other parameters."""
        usual, endpoint = super().get_route_handler(), self.endpoint
        hints = get_type_hints(endpoint, include_extras=True)
        taken = {name: hints[name] for name in inspect.signature(endpoint).parameters}
        made = {name: _of_request(hint) for name, hint in taken.items() if hasattr(hint, "__metadata__")}
        name, model = _body_of({name: hint for name, hint in taken.items() if name not in made})

        async def handler(request: Request) -> Response:
            body = await _read(request, model)
            if body is None:
                return await usual(request)
            arguments = {name: await make(request) for name, make in made.items()}
            answer: Response = await endpoint(**arguments, **{name: body})
            return answer

        return handler


async def _read(request: Request, model: type[BaseModel]) -> BaseModel | None:
    """Read the body; None if it is not JSON or does not fit."""
    if media_type(request.headers) != "application/json":
        return None
    try:
        return model.model_validate_json(await request.body())
    except ValidationError:
        return None


def _body_of(hints: dict[str, Any]) -> tuple[str, type[BaseModel]]:
    match list(hints.items()):
        case [(name, type() as model)] if issubclass(model, BaseModel):
            return name, model
        case _:
            raise TypeError(f"of {', '.join(hints)}, there is to be one body alone")


def _of_request(hint: Any) -> _OfRequest:
    """The dependency in ``Annotated[..., Depends(dependency)]``."""
    match hint.__metadata__:
        case [Depends(dependency=make)] if make is not None and list(inspect.signature(make).parameters) == ["request"]:
            return make
        case _:
            raise TypeError(f"{hint} is made of more than the request")
