"""Who may ask, and how tokens are verified, as a configuration says it.

Bearer tokens are read once, with the configuration. After that only their hashes are kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Final, Literal, Protocol, TypeAlias

from pydantic import AfterValidator, Field

from toolsearch.access.reach import EVERY_TOOL, Rule
from toolsearch.documents.json_values import is_object
from toolsearch.documents.references import References
from toolsearch.errors import BadSettingError
from toolsearch.setting_sections import SettingsSection
from toolsearch.tools.json_types import Json, JsonObject

EVERYBODY_ELSE: Final = "*"  # stands for all principals that no other entry names


# Only asymmetric algorithms: a verifier that knows the signing key could sign, too.
SignatureAlgorithm: TypeAlias = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]


def _readable(rules: tuple[str, ...]) -> tuple[str, ...]:
    for rule in rules:
        Rule.parse(rule)
    return rules


_Rules: TypeAlias = Annotated[tuple[str, ...], AfterValidator(_readable)]

AllowRules: TypeAlias = Annotated[
    _Rules, Field(description="Callers may use only tools that match one of these rules; an empty list: no tool.")
]

DenyRules: TypeAlias = Annotated[_Rules, Field(description="Callers may use no tool that matches one of these rules.")]


class PrincipalSettings(SettingsSection):
    """A principal is a caller with a bearer token or a JWT. Only the hash of a bearer token is kept.

    In the document ``token`` stands for the hash, as what `References` can fill in. The entry ``*`` has neither token
    nor subject: it says what every subject may do that no other entry names.
    """

    token_sha256: str | None = Field(
        default=None,
        pattern="^[0-9a-f]{64}$",
        repr=False,
        description="The SHA-256 of the bearer token, in hex. Instead, set `token` to `${NAME}` or `${file:PATH}`.",
    )
    subject: str | None = Field(default=None, min_length=1, description="The `sub` of the caller's JWT.")
    allow: AllowRules = EVERY_TOOL
    deny: DenyRules = ()
    operator: bool = Field(
        default=False,
        description="true: the principal sees everybody's activity on the status page, and decides about tools, held "
        "results and servers.",
    )


class IssuerSettings(SettingsSection):
    """Who issues JWTs, and how they are verified."""

    issuer: str = Field(pattern="^https?://", description="The issuer's URL, as in `iss` of its tokens.")
    audience: str = Field(min_length=1, description="The value that a token must have in `aud`.")
    jwks_url: str | None = Field(
        default=None, description="The URL of the issuer's keys; none: the URL in the issuer's OpenID configuration."
    )
    algorithms: tuple[SignatureAlgorithm, ...] = Field(
        default=("RS256", "ES256"), min_length=1, description="Algorithms that a token may be signed with."
    )
    leeway_s: float = Field(
        default=0.0, ge=0, le=300, description="Seconds by which the issuer's clock and the local clock may differ."
    )


class JwtSettings(IssuerSettings):
    """The gateway is an OAuth resource server. These settings say how it verifies JWTs.

    Where there are principals, a subject that none of them names is refused, unless there is one for everybody else;
    where there are none, whoever the issuer vouches for may do what the rules for everybody allow.
    """

    required_scopes: tuple[str, ...] = Field(default=(), description="Scopes that a token must have.")
    resource: str | None = Field(
        default=None, description="The URL at which clients reach the gateway; none: the audience."
    )


class AccessSettings(Protocol):
    """The settings of access: principals by name, and the issuer of JWTs."""

    @property
    def principals(self) -> Mapping[str, PrincipalSettings]: ...

    @property
    def jwt(self) -> JwtSettings | None: ...


_FEWEST_CHARACTERS = 16  # shorter tokens can be guessed


def token_sha256(token: str) -> str:
    """Return the hash of a token that is kept: SHA-256 in hex. A token is random, so a slow hash is not needed."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def with_hashed_tokens(section: object, references: References) -> object:
    """Return *section* with each principal's ``token`` replaced by its ``tokenSha256``.

    Raises BadSettingError if a token is written into the configuration, or cannot be read.
    """
    principals = section.get("principals") if is_object(section) else None
    if not is_object(section) or not is_object(principals):
        return section  # the section's reader reports the fault
    return {**section, "principals": {name: _hashed(name, each, references) for name, each in principals.items()}}


def _hashed(name: str, principal: Json, references: References) -> Json:
    if not is_object(principal) or principal.get("token") is None:
        return principal
    place = f"toolsearch.principals.{name}.token"
    if "tokenSha256" in principal:
        raise BadSettingError(f"the setting {place} cannot stand beside tokenSha256; leave one of them out")
    others: JsonObject = {key: value for key, value in principal.items() if key != "token"}
    return {**others, "tokenSha256": token_sha256(_token(place, principal["token"], references))}


def _token(place: str, value: Json, references: References) -> str:
    try:
        token = references.secret(value)
    except BadSettingError as error:
        raise BadSettingError(
            f"the setting {place} cannot be used: {error}; or write the SHA-256 of the token in hex as tokenSha256"
        ) from error
    if len(token) < _FEWEST_CHARACTERS:
        raise BadSettingError(
            f"the setting {place} cannot be used: {value} is too short for a token; it needs {_FEWEST_CHARACTERS} "
            "random characters or more"
        )
    return token
