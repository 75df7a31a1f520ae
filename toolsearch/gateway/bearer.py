"""Finds the principal of an HTTP request by its credential, and keeps it where the SDK keeps who is authenticated."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from pydantic import Field, InstanceOf
from starlette.authentication import AuthCredentials, AuthenticationBackend
from starlette.requests import HTTPConnection

from toolsearch.access.principals import Grant, Principal, PrincipalDirectory


class PrincipalToken(AccessToken):
    """The token that the SDK binds a session to. It holds the principal and its id, never the credential."""

    principal: InstanceOf[Principal] = Field(repr=False)
    is_operator: bool = False
    session: str = ""  # that was made beforehand, and is the only one that it is good for
    key: str = ""  # the id of the credential

    @classmethod
    def of(cls, grant: Grant) -> PrincipalToken:
        """A session of the SDK can only be used with a token of the same client and subject."""
        who = grant.principal
        return cls(
            token="",
            client_id=grant.key_id or who.id,
            subject=f"{who.id} {grant.session}" if grant.session else who.id,
            scopes=list(grant.scopes),
            principal=who,
            is_operator=grant.is_operator,
            session=grant.session,
            key=grant.key_id,
        )


@dataclass(frozen=True, slots=True)
class CredentialBackend(AuthenticationBackend):
    """Reads a bearer token. Unless *bearer_only*, it also reads the password that a browser asks for; the password is
    the token.
    """

    directory: PrincipalDirectory
    bearer_only: str

    async def authenticate(self, conn: HTTPConnection) -> tuple[AuthCredentials, AuthenticatedUser] | None:
        scheme, _, credential = conn.headers.get("authorization", "").partition(" ")
        token = ""
        if scheme.lower() == "bearer":
            token = credential.strip()
        elif scheme.lower() == "basic" and conn.url.path != self.bearer_only:
            token = _password(credential)
        grant = await self.directory.of_token(token) if token else None
        if grant is None:
            return None
        return AuthCredentials(list(grant.scopes)), AuthenticatedUser(PrincipalToken.of(grant))


def _password(credential: str) -> str:
    try:
        return base64.b64decode(credential, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return ""
