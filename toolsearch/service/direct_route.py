"""A route whose body goes from bytes to its model in one step, for what agents ask for all the time.

FastAPI reads the JSON into objects, and these into the model, and looks at each request how its dependencies are to be
called, which is known when the route is made.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias, get_type_hints

from fastapi import Request, Response
from fastapi.params import Depends
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

from toolsearch.service.middleware.bodies import media_type

_Handler: TypeAlias = Callable[[Request], Coroutine[Any, Any, Response]]
_OfRequest: TypeAlias = Callable[[Request], Awaitable[Any]]


class DirectRoute(APIRoute):
    """For an endpoint that takes one body and what dependencies make of the request alone, and returns a `Response`.

    A body that does not fit is left to FastAPI, which says what is wrong with it, so answers are those of any route.
    """

    def get_route_handler(self) -> _Handler:
        """Raises TypeError for an endpoint that takes anything else."""
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
    """None for what is no JSON, or does not fit."""
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
