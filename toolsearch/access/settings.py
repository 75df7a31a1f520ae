"""Who may ask, and how tokens of an issuer are verified, as a configuration says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, Protocol, TypeAlias

from pydantic import AfterValidator, Field

from toolsearch.access.reach import EVERY_TOOL, Rule
from toolsearch.setting_sections import SettingsSection

EVERYBODY_ELSE: Final = "*"  # the principal that all are whom no other entry names
SignatureAlgorithm: TypeAlias = Literal[  # none of them with a key that the verifier knows, too
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]


def _readable(rules: tuple[str, ...]) -> tuple[str, ...]:
    for rule in rules:
        Rule.parse(rule)
    return rules


_Rules: TypeAlias = Annotated[tuple[str, ...], AfterValidator(_readable)]
AllowRules: TypeAlias = Annotated[
    _Rules, Field(description="Rules of which a tool must fit one; an empty list: no tool.")
]
DenyRules: TypeAlias = Annotated[_Rules, Field(description="Rules of which a tool must fit none.")]


class PrincipalSettings(SettingsSection):
    """One who may search and call, known by a bearer token, of which the hash is kept, or by the ``sub`` of a JWT.

    In the document ``token`` stands for the hash, as ``${NAME}`` of the environment. The entry ``*`` has neither token
    nor subject: it says what every subject may do that no other entry names.
    """

    token_sha256: str | None = Field(
        default=None,
        pattern="^[0-9a-f]{64}$",
        repr=False,
        description="The SHA-256 of the bearer token, in hex. Or write token, as ${NAME} of the environment.",
    )
    subject: str | None = Field(default=None, min_length=1, description="The sub of the caller's JWT.")
    allow: AllowRules = EVERY_TOOL
    deny: DenyRules = ()
    operator: bool = Field(default=False, description="May see the status page, which shows what everybody does.")


class JwtSettings(SettingsSection):
    """How JWTs are verified, as an OAuth resource server does.

    Where there are principals, a subject that none of them names is refused, unless there is one for everybody else;
    where there are none, whoever the issuer vouches for may do what the rules for everybody allow.
    """

    issuer: str = Field(pattern="^https?://", description="The URL of who issues the tokens, as in their iss.")
    audience: str = Field(min_length=1, description="The aud that a token must be issued for.")
    jwks_url: str | None = Field(
        default=None, description="Where the issuer's keys are; none: as its own configuration says."
    )
    algorithms: tuple[SignatureAlgorithm, ...] = Field(
        default=("RS256", "ES256"), min_length=1, description="Algorithms that a token may be signed with."
    )
    leeway_s: float = Field(
        default=0.0, ge=0, le=300, description="Seconds by which the issuer's clock and this one may differ."
    )
    required_scopes: tuple[str, ...] = Field(default=(), description="Scopes that a token must have.")
    resource: str | None = Field(default=None, description="The URL that clients reach us by; none: the audience.")


class AccessSettings(Protocol):
    """What says who may ask: principals by name, and the issuer whose word counts as well."""

    @property
    def principals(self) -> Mapping[str, PrincipalSettings]: ...

    @property
    def jwt(self) -> JwtSettings | None: ...
