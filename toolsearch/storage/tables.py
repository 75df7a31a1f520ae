"""The tables of every database, written once: SQL with a placeholder wherever databases write something differently."""

from __future__ import annotations

from typing import Final, TypedDict


class SqlDialect(TypedDict):
    """How a database writes the kinds of columns, and the end of a table.

    name       a text that is compared and sorted by its bytes
    number     a whole number of 64 bits
    real       a number of 64 bits with a fraction
    flag       true or false
    serial     the key of a table, a number that grows with each row
    clustered  the end of a table whose small rows stand in the index of its key
    """

    name: str
    number: str
    real: str
    flag: str
    serial: str
    clustered: str


def first_tables(dialect: SqlDialect) -> tuple[str, ...]:
    """The statements that make the tables of version 1."""
    return tuple(_FIRST.format(**dialect).strip().split(";\n"))


# Every row belongs to a tenant, which is the first column of each key; "" has what the library and the gateway keep.
# Tables of rows with a document are not clustered, so that rows can be counted and found without reading the documents.
# At most one definition of a tool waits for approval: a server that changes it with every listing fills no disk.
_FIRST: Final = """
CREATE TABLE counters (  -- each tenant has its own, so that none can tell from its numbers what others do
    tenant {name}, name {name},
    last {number} NOT NULL,
    PRIMARY KEY (tenant, name)
){clustered};
CREATE TABLE audit (
    position {serial},
    at_us {number} NOT NULL,  -- microseconds since 1970
    who TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,  -- the thing that the action changed
    outcome TEXT NOT NULL,
    tenant {name} NOT NULL,
    server TEXT NOT NULL, session TEXT NOT NULL,
    took_us {number} NOT NULL,  -- how long it took, in microseconds
    request_id TEXT NOT NULL,
    digest TEXT NOT NULL  -- of this record and the digest of the one before it
);
CREATE INDEX audit_of_tenant ON audit (tenant, position);
CREATE TABLE audit_chains (
    tenant {name} PRIMARY KEY,
    anchor TEXT NOT NULL,  -- the digest of the last record that was pruned
    head TEXT NOT NULL,  -- the digest of the newest record
    kept {number} NOT NULL,  -- how many records there are
    pruned {number} NOT NULL,  -- how many more there were
    oldest_us {number} NOT NULL  -- a time that is not after the first record that is to be pruned
){clustered};
CREATE INDEX audit_chains_by_age ON audit_chains (oldest_us);
CREATE TABLE pins (
    tenant {name} NOT NULL,
    server {name} NOT NULL,  -- its identity, with the kind of anything that is no tool
    tool {name} NOT NULL,  -- the name that the server gives it
    is_approved {flag} NOT NULL,  -- false: it waits for approval
    pin TEXT NOT NULL,
    entry TEXT NOT NULL,  -- the definition as JSON
    seen_s {real} NOT NULL,  -- when this definition was first seen, since 1970
    by TEXT NOT NULL,  -- who approved it, or withdrew the approval
    decided_us {number} NOT NULL,  -- when a person decided, in microseconds since 1970, or 0
    refused_by TEXT NOT NULL,  -- who refused this definition while it waits
    PRIMARY KEY (tenant, server, tool, is_approved)
){clustered};
CREATE TABLE sessions (
    tenant {name}, id {name},
    text TEXT NOT NULL,
    version {number} NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE TABLE records (
    tenant {name}, kind {name}, id {name},
    document TEXT NOT NULL,
    version {number} NOT NULL,
    changed_s {real} NOT NULL,
    expires_s {real},
    PRIMARY KEY (tenant, kind, id)
);
CREATE INDEX records_to_count ON records (tenant, kind, expires_s);
CREATE INDEX records_expiring ON records (expires_s) WHERE expires_s IS NOT NULL;
CREATE TABLE api_keys (
    id {name} PRIMARY KEY,
    tenant {name} NOT NULL,
    name TEXT NOT NULL,
    prefix TEXT NOT NULL,
    sha256 {name} UNIQUE NOT NULL,
    scopes TEXT NOT NULL, allow TEXT NOT NULL, deny TEXT NOT NULL,  -- JSON lists
    is_operator {flag} NOT NULL,
    created_s {real} NOT NULL, expires_s {real}, revoked_s {real}, used_s {real}
){clustered};
CREATE INDEX api_keys_of_tenant ON api_keys (tenant, id);
CREATE TABLE contents (
    tenant {name}, catalog {name}, name {name},
    fingerprint TEXT NOT NULL,
    document TEXT NOT NULL,
    source {name} NOT NULL,
    kind TEXT NOT NULL,
    revision {number} NOT NULL,  -- the revision of the catalog that wrote it last
    PRIMARY KEY (tenant, catalog, name)
);
CREATE INDEX contents_since ON contents (tenant, catalog, revision);
CREATE TABLE revisions (
    tenant {name}, catalog {name},
    revision {number} NOT NULL,
    removed {number} NOT NULL DEFAULT 0,  -- the last revision by which a tool was removed
    PRIMARY KEY (tenant, catalog)
){clustered};
CREATE TABLE receipts (
    tenant {name}, id {name},
    at_s {real} NOT NULL,
    key {name} NOT NULL, session {name} NOT NULL, corpus TEXT NOT NULL,
    tool {name} NOT NULL, kind TEXT NOT NULL, fingerprint TEXT NOT NULL,
    decision TEXT NOT NULL, outcome TEXT NOT NULL, code TEXT NOT NULL,
    latency_ms {real} NOT NULL,
    request_id TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
){clustered};
CREATE INDEX receipts_by_time ON receipts (at_s);
CREATE INDEX receipts_of_session ON receipts (tenant, session, id);
CREATE TABLE figures (
    tenant {name}, hour_s {number}, key {name}, session {name}, name {name},
    amount {real} NOT NULL,
    PRIMARY KEY (tenant, hour_s, key, session, name)
){clustered};
CREATE INDEX figures_by_time ON figures (hour_s);
CREATE TABLE misses (
    tenant {name}, corpus {name}, folded {name},  -- the query without differences of case and white space
    query TEXT NOT NULL,
    kind TEXT NOT NULL,
    count {number} NOT NULL,
    first_s {real} NOT NULL, last_s {real} NOT NULL,
    best TEXT NOT NULL, best_score {real} NOT NULL,
    PRIMARY KEY (tenant, corpus, folded)
);
CREATE INDEX misses_by_time ON misses (last_s);
CREATE TABLE conversations (id {name} PRIMARY KEY, messages TEXT NOT NULL){clustered};
CREATE TABLE usage (
    principal {name}, term {name}, tool {name},
    weight {real} NOT NULL,
    at_s {real} NOT NULL,
    PRIMARY KEY (principal, term, tool)
){clustered}
"""
