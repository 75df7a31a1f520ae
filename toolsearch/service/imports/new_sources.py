"""A request for a new source as a record: what may hold a secret apart from what may be shown."""

from __future__ import annotations

from toolsearch.api.imports import NewListingSource, NewMcpSource, NewOpenApiSource, NewSource, UserAndPassword
from toolsearch.service.imports.servers import read_server
from toolsearch.service.imports.sources import CatalogSource, SourceSecrets
from toolsearch.upstreams.secrets import keys_in, redacted, secrets_of_url


def new_source(body: NewSource, tenant: str, catalog: str, now_s: float) -> tuple[CatalogSource, SourceSecrets]:
    match body:
        case NewOpenApiSource():
            return _openapi(body, tenant, catalog, now_s)
        case NewMcpSource():
            return _mcp(body, tenant, catalog, now_s)
        case NewListingSource():
            source = CatalogSource(
                tenant,
                catalog,
                body.name,
                body.kind,
                created_s=now_s,
                shown_url=shown_url(body.url),
                prefix=body.prefix or "",
                credential_names=tuple(sorted(body.document_headers)),
            )
            return source, SourceSecrets(url=body.url or "", document_headers=body.document_headers)


def shown_url(url: str | None) -> str:
    """*url* with ``***`` for what may be a secret."""
    if not url:
        return ""
    return redacted(url, [each for each in (*secrets_of_url(url), *keys_in(url)) if each])


def _openapi(body: NewOpenApiSource, tenant: str, catalog: str, now_s: float) -> tuple[CatalogSource, SourceSecrets]:
    source = CatalogSource(
        tenant,
        catalog,
        body.name,
        body.kind,
        created_s=now_s,
        shown_url=shown_url(body.url),
        prefix=body.prefix,
        base_url=body.base_url or "",
        credential_names=tuple(sorted({*body.headers, *body.document_headers, *body.credentials})),
    )
    credentials = {
        scheme: [given.user, given.password] if isinstance(given, UserAndPassword) else given
        for scheme, given in body.credentials.items()
    }
    secrets = SourceSecrets(
        url=body.url or "",
        document_headers=body.document_headers,
        headers=body.headers,
        credentials=credentials,
    )
    return source, secrets


def _mcp(body: NewMcpSource, tenant: str, catalog: str, now_s: float) -> tuple[CatalogSource, SourceSecrets]:
    """Raises BadSettingError for a server that cannot be used as it is written."""
    entry = body.model_dump(exclude={"kind", "name"}, exclude_defaults=True)
    read_server(body.name, entry)
    source = CatalogSource(
        tenant,
        catalog,
        body.name,
        body.kind,
        created_s=now_s,
        shown_url=shown_url(body.url),
        credential_names=tuple(sorted({*body.headers, *body.env})),
    )
    return source, SourceSecrets(server=entry)
