"""Finds who sent a bearer token: a principal of the configuration, or a subject that the issuer of JWTs vouches for."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from toolsearch.access.claims import Claims
from toolsearch.access.jwt import JwtVerifier
from toolsearch.access.principals import LOCAL, OF_ISSUER, Grant, Principal, PrincipalDirectory
from toolsearch.access.reach import Reach
from toolsearch.access.settings import EVERYBODY_ELSE, AccessSettings, PrincipalSettings, token_sha256
from toolsearch.errors import BadSettingError

logger = logging.getLogger(__name__)


def make_directory(settings: AccessSettings) -> PrincipalDirectory | None:
    """Return the directory of *settings*; None if there are no principals and no JWTs, so that no token is asked for.

    Raises BadSettingError for a principal without a token or subject, and for two with the same.
    """
    if not settings.principals and settings.jwt is None:
        return None
    named = {name: each for name, each in settings.principals.items() if name != EVERYBODY_ELSE}
    known = {name: _known(name, each, settings) for name, each in named.items()}
    _require_distinct("token", ((name, each.token_sha256) for name, each in named.items()))
    _require_distinct("subject", ((name, each.subject) for name, each in named.items()))
    return Directory(
        {each.token_sha256: known[name] for name, each in named.items() if each.token_sha256},
        {each.subject: known[name] for name, each in named.items() if each.subject},
        JwtVerifier(settings.jwt) if settings.jwt else None,
        settings.jwt.required_scopes if settings.jwt else (),
        _others(settings),
    )


@dataclass(frozen=True, slots=True)
class Directory:
    """A `PrincipalDirectory` of *tokens*, by their hashes, and of *subjects* of the JWTs that *verifier* accepts.

    *others* is the reach of every other subject; None: such a subject is refused.
    """

    tokens: Mapping[str, Grant]
    subjects: Mapping[str, Grant]
    verifier: JwtVerifier | None
    required_scopes: tuple[str, ...]
    others: Reach | None = None

    async def of_token(self, token: str) -> Grant | None:
        digest = token_sha256(token)
        found: Grant | None = None
        for known, grant in self.tokens.items():  # every token is compared, so that the time taken reveals nothing
            if hmac.compare_digest(known, digest):
                found = grant
        if found is not None or self.verifier is None:
            return found
        claims = await self.verifier.verify(token)
        return self._vouched_for(claims) if claims is not None else None

    def _vouched_for(self, claims: Claims) -> Grant | None:
        grant = self._of_subject(claims.subject)
        if grant is None:
            logger.info("a JWT was refused: its subject %r is none of the principals", claims.subject)
            return None
        return Grant(grant.principal, frozenset(claims.scopes), grant.is_operator, claims=claims)

    def _of_subject(self, subject: str) -> Grant | None:
        if subject in self.subjects or self.others is None:
            return self.subjects.get(subject)
        return Grant(Principal(f"{OF_ISSUER}{subject}", self.others))


def _others(settings: AccessSettings) -> Reach | None:
    """Return the reach of a subject that no principal names; None if it is refused."""
    rules = settings.principals.get(EVERYBODY_ELSE)
    if rules is None:
        return None if settings.principals else Reach()
    if settings.jwt is None:
        raise BadSettingError(f"nobody can be the principal {EVERYBODY_ELSE!r}; set toolsearch.jwt")
    if rules.token_sha256 or rules.subject or rules.operator:
        raise BadSettingError(
            f"the principal {EVERYBODY_ELSE!r} stands for all that no other entry names; give it allow and deny alone"
        )
    return Reach.parse(rules.allow, rules.deny)


def _known(name: str, principal: PrincipalSettings, settings: AccessSettings) -> Grant:
    place = f"the principal {name!r}"
    if name == LOCAL.id or name.startswith(OF_ISSUER) or not name.strip():
        raise BadSettingError(f"{place} has a reserved name; give it another")
    if principal.token_sha256 is None and principal.subject is None:
        raise BadSettingError(f"nobody can be {place}; give it a token, as ${{NAME}}, or the subject of its JWTs")
    if principal.subject is not None and settings.jwt is None:
        raise BadSettingError(f"{place} has a subject, but JWTs are not accepted; set toolsearch.jwt")
    reach = Reach.parse(principal.allow, principal.deny)
    scopes = settings.jwt.required_scopes if settings.jwt else ()
    return Grant(Principal(name, reach), frozenset(scopes), principal.operator)


def _require_distinct(what: str, owned: Iterable[tuple[str, str | None]]) -> None:
    owners: dict[str, str] = {}
    for name, value in owned:
        if value is None:
            continue
        if value in owners:
            raise BadSettingError(f"the principals {owners[value]!r} and {name!r} have the same {what}")
        owners[value] = name
