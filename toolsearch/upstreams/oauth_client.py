"""The gateway as a client of authorization servers: what it is there, what a login asks for, and how tokens end."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import httpx2
from mcp.client.auth.oauth2 import OAuthContext
from mcp.client.auth.utils import issuers_match, union_scopes
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthMetadata
from pydantic import AnyUrl, Field

from toolsearch.upstreams.settings import OAuthClient, OpenTransport

logger = logging.getLogger(__name__)
_REVOKE_S = 10.0
_IN_HEADER, _IN_BODY = "client_secret_basic", "client_secret_post"  # the secret goes into a header or into the body


class ClientMetadata(OAuthClientMetadata):
    """What a login asks for: *configured_scope*, or else the scope that the SDK chooses, and *wanted_scope*."""

    configured_scope: str = Field(default="", exclude=True)
    wanted_scope: str | None = Field(default=None, exclude=True)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "scope":
            value = union_scopes(self.configured_scope or value, self.wanted_scope)
        super().__setattr__(name, value)


def client_metadata(client: OAuthClient, redirect_uri: str, wanted_scope: str | None) -> ClientMetadata:
    return ClientMetadata(
        configured_scope=" ".join(client.scopes),
        wanted_scope=wanted_scope,
        client_name="toolsearch gateway",
        redirect_uris=[AnyUrl(redirect_uri)],
        grant_types=["authorization_code", "refresh_token"],
        token_endpoint_auth_method="none",  # noqa: S106  a program on a user's machine can keep no secret
    )


def client_information(client: OAuthClient, authorization_server: OAuthMetadata | None) -> OAuthClientInformationFull:
    """*client* in the SDK's form. A secret is sent in the way that *authorization_server* accepts."""
    taken = authorization_server.token_endpoint_auth_methods_supported if authorization_server else None
    in_body = taken is not None and _IN_HEADER not in taken and _IN_BODY in taken
    return OAuthClientInformationFull(
        client_id=client.client_id,
        client_secret=client.secret,
        token_endpoint_auth_method="none" if client.secret is None else _IN_BODY if in_body else _IN_HEADER,
        issuer=client.issuer,
    )


def is_of(registration: OAuthClientInformationFull, issuer: str | None) -> bool:
    """Whether *registration* is one at *issuer*; None: at any."""
    return issuer is None or (registration.issuer is not None and issuers_match(registration.issuer, issuer))


def revocation(context: OAuthContext) -> list[httpx2.Request]:
    """The requests by which the authorization server revokes the tokens of *context* (RFC 7009); none if it does not
    do that.
    """
    metadata, tokens, client = context.oauth_metadata, context.current_tokens, context.client_info
    if metadata is None or metadata.revocation_endpoint is None or tokens is None or client is None:
        return []
    given = {"refresh_token": tokens.refresh_token, "access_token": tokens.access_token}
    requests: list[httpx2.Request] = []
    for hint, token in given.items():
        if token is not None:
            form = {"token": token, "token_type_hint": hint, "client_id": client.client_id}
            form, headers = context.prepare_token_auth(form, {})
            requests.append(httpx2.Request("POST", str(metadata.revocation_endpoint), data=form, headers=headers))
    return requests


async def revoke(requests: Sequence[httpx2.Request], name: str, open_transport: OpenTransport | None) -> None:
    """Send the *requests* of `revocation`. The tokens are forgotten here in any case, so a failure is only logged."""
    opened = open_transport() if open_transport else None
    async with httpx2.AsyncClient(transport=opened, timeout=_REVOKE_S, follow_redirects=False) as client:
        for request in requests:
            try:
                (await client.send(request)).raise_for_status()
            except httpx2.HTTPError as error:
                logger.warning("%s: a token of it could not be revoked: %s", name, type(error).__name__)
