"""The form for a new source: a URL, a file or a text, with headers and credentials. Secrets go into the store, sealed,
and are never given back: not even when the form is shown again.
"""

from __future__ import annotations

from typing import Any, Final

from starlette.datastructures import UploadFile

from toolsearch.errors import BadSettingError
from toolsearch.service.pages.routing import Sent
from toolsearch.service.routes.sources import document_text

PLAIN_FIELDS: Final = ("kind", "name", "url", "document", "prefix", "base_url")
CREDENTIAL_ROWS: Final = 3
_HEADERS: Final = ("headers", "document_headers")


async def new_source_fields(sent: Sent) -> dict[str, Any]:
    """What `NewSource` is validated from. Raises BadSettingError for what cannot be read."""
    fields: dict[str, Any] = {name: text for name in PLAIN_FIELDS if (text := sent.text(name))}
    file = await _file(sent)
    if file is not None:
        if "document" in fields:
            raise BadSettingError("give a file or a text, not both")
        fields["document"] = file
    fields |= {name: headers for name in _HEADERS if (headers := _headers(sent, name))}
    if credentials := _credentials(sent):
        fields["credentials"] = credentials
    return fields


def has_secrets(sent: Sent) -> bool:
    names = [*_HEADERS, *(f"secret-{row}" for row in range(CREDENTIAL_ROWS)), "file"]
    return any(sent.form.get(name) for name in names)


async def _file(sent: Sent) -> str | None:
    """The text of the file; None if none was chosen, for which browsers send one without a name."""
    file = sent.form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        return None
    return document_text(await file.read())


def _headers(sent: Sent, field: str) -> dict[str, str]:
    """A line for each. A line is never repeated in an error: it may hold a secret."""
    found: dict[str, str] = {}
    for number, line in enumerate(sent.text(field).splitlines(), 1):
        name, colon, value = line.partition(":")
        if not line.strip():
            continue
        if not colon:
            raise BadSettingError(f"line {number} of the headers has no colon; write Name: value")
        if name.strip() in found:
            raise BadSettingError(f"line {number} of the headers names a header once more")
        found[name.strip()] = value.strip()
    return found


def _credentials(sent: Sent) -> dict[str, Any]:
    """By the name of the security scheme: a key or token, or user and password where there is a user."""
    found: dict[str, Any] = {}
    for row in range(CREDENTIAL_ROWS):
        scheme, user, secret = (sent.text(f"{name}-{row}") for name in ("scheme", "user", "secret"))
        if not (scheme or user or secret):
            continue
        if not scheme or not secret:
            raise BadSettingError("a credential needs the name of its security scheme, and a key, token or password")
        if scheme in found:
            raise BadSettingError(f"the security scheme {scheme!r} has two credentials")
        found[scheme] = {"user": user, "password": secret} if user else secret
    return found
