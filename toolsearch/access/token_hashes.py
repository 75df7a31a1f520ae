"""Bearer tokens are read from the environment once, with the configuration; after that only their hashes are kept."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from toolsearch.documents.json_values import is_object
from toolsearch.errors import BadSettingError
from toolsearch.tools.json_types import Json, JsonObject

_FEWEST_CHARACTERS = 16  # shorter ones can be guessed


def token_sha256(token: str) -> str:
    """Return the hash that is kept of a token: SHA-256 in hex. A token is random, so a slow hash is not needed."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def with_hashed_tokens(section: object, environment: Mapping[str, str]) -> object:
    """Return *section* with each principal's ``token`` replaced by its ``tokenSha256``.

    Raises BadSettingError if a token is written into the configuration, or its variable is not set.
    """
    principals = section.get("principals") if is_object(section) else None
    if not is_object(section) or not is_object(principals):
        return section  # its reader reports what is wrong with it
    return {**section, "principals": {name: _hashed(name, each, environment) for name, each in principals.items()}}


def _hashed(name: str, principal: Json, environment: Mapping[str, str]) -> Json:
    if not is_object(principal) or principal.get("token") is None:
        return principal
    place = f"toolsearch.principals.{name}.token"
    if "tokenSha256" in principal:
        raise BadSettingError(f"the setting {place} cannot stand beside tokenSha256; leave one of them out")
    others: JsonObject = {key: value for key, value in principal.items() if key != "token"}
    return {**others, "tokenSha256": token_sha256(_token(place, principal["token"], environment))}


def _token(place: str, value: Json, environment: Mapping[str, str]) -> str:
    variable = variable_of(value)
    if variable is None:
        raise BadSettingError(
            f"the setting {place} must not hold the token itself: put that into an environment variable and write "
            "${NAME} here, or write its SHA-256 in hex as tokenSha256"
        )
    token = environment.get(variable, "")
    if len(token) < _FEWEST_CHARACTERS:
        state = "is too short for a token" if token else "is not set"
        raise BadSettingError(
            f"the setting {place} cannot be used: the environment variable {variable} {state}; "
            f"it needs {_FEWEST_CHARACTERS} random characters or more"
        )
    return token


def variable_of(value: Json) -> str | None:
    """NAME out of ``${NAME}`` or ``${env:NAME}``; None for anything else."""
    if not isinstance(value, str) or not (value.startswith("${") and value.endswith("}")):
        return None
    name = value[2:-1].removeprefix("env:")
    return name if name.isidentifier() else None
