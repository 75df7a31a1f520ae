"""The tree of all errors. Errors of indexes are defined there and listed here, since an index works alone.

ToolSearchError
├── BadQueryError
│   └── BadPatternError
├── MissingExtraError
├── EncoderError
├── IndexStoreError
├── BadToolError            a tool cannot be defined: bad name, schema or signature
├── DuplicateToolError      two tools want one name
├── UnknownToolError        no tool of that name that this caller may use
│   └── ToolGoneError       the model was sent the tool, and it is not there any more
├── UnapprovedToolError     the tool exists, but a person has to approve its definition first
├── UndiscoveredToolError   the tool exists, but must be searched for first
├── SourceError             a source of tools cannot be read at all
├── ServerUnavailableError  an MCP server is down, hangs, or answers nonsense
│   ├── ServerBusyError     it has all the calls that it may have; this one was not sent
│   └── LoginRequiredError  it wants a person to log in first
├── UnknownSessionError     no such session: never made, or evicted
├── StorageError            what is kept cannot be read or written
│   ├── SessionStoreError   sessions cannot be kept, or read back
│   │   └── SessionConflictError  another writer was faster
│   ├── UsageStoreError     what was learnt from use cannot
│   ├── MessageStoreError   conversations cannot
│   ├── PinStoreError       what was approved cannot; nothing counts as approved then
│   ├── AuditStoreError     the record of decisions cannot
│   ├── RecordStoreError    the small documents of the service cannot
│   │   └── RecordConflictError  another writer was faster
│   ├── KeyStoreError       API keys cannot; no key is accepted then
│   ├── ContentsStoreError  the tools of catalogs cannot
│   │   └── ContentsConflictError  another writer was faster
│   ├── ReceiptStoreError   receipts of calls cannot
│   ├── FigureStoreError    figures of use cannot
│   ├── MissStoreError      requests without a good answer cannot
│   ├── VectorStoreError    vectors of texts that replicas share cannot; it is an IndexStoreError, too
│   └── SealError           what was encrypted cannot be opened with the secret keys that are there
├── BadArgumentsError       a tool call's arguments do not fit the tool's schema
├── UnfinishedCallError     the reply that made a call did not finish, so that it may be half a call
├── ToolExecutionError      a tool ran and failed
├── ToolTimeoutError        a tool did not answer in time
├── ToolStuckError          a tool was not run, since too many others hang
├── ToolNotHereError        a tool is a function that another replica of the service has, or in another version
├── CallLimitError          a turn used up its tool calls
├── RepeatedCallError       the same call was made several times in a row
├── CallDeniedError         a hook did not let a call through
├── NotCallableHereError    the application that has listed the tool runs it, nothing here does
├── ChatModelError          a model refused a request, cannot be reached, or answered nonsense
│   └── BadAnswerError      its answer is not of the type that was asked for
├── BadSettingError         an option has a value that cannot be used
├── RequestsFileError       a file of requests cannot be read as a whole
├── UnsafeUrlError          a URL of a tenant is not one that the service may reach
├── NotAuthenticatedError   a request to the service has no credential, or none that is accepted
├── NotPermittedError       the credential is not good for that
├── UnknownPriceError       what a model costs is not in the table of prices
├── UnknownRecordError      the service has no such catalog, toolset, key, source or job for this caller
├── StillRunningError       a job has to end first
├── TooManyError            a quota or a rate limit is used up
└── ServiceError            the service answers its client with an error, or cannot be reached
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolsearch_indexes.errors import (
    BadPatternError,
    BadQueryError,
    EncoderError,
    IndexStoreError,
    MissingExtraError,
    ToolSearchError,
)

__all__ = [
    "AuditStoreError",
    "BadAnswerError",
    "BadArgumentsError",
    "BadPatternError",
    "BadQueryError",
    "BadSettingError",
    "BadToolError",
    "CallDeniedError",
    "CallLimitError",
    "ChatModelError",
    "ContentsConflictError",
    "ContentsStoreError",
    "DuplicateToolError",
    "EncoderError",
    "FigureStoreError",
    "IndexStoreError",
    "KeyStoreError",
    "LoginRequiredError",
    "MessageStoreError",
    "MissStoreError",
    "MissingExtraError",
    "NotAuthenticatedError",
    "NotCallableHereError",
    "NotPermittedError",
    "PinStoreError",
    "ReceiptStoreError",
    "RecordConflictError",
    "RecordStoreError",
    "RepeatedCallError",
    "RequestsFileError",
    "SealError",
    "ServerBusyError",
    "ServerUnavailableError",
    "ServiceError",
    "SessionConflictError",
    "SessionStoreError",
    "SourceError",
    "StillRunningError",
    "StorageError",
    "TooManyError",
    "ToolExecutionError",
    "ToolGoneError",
    "ToolNotHereError",
    "ToolSearchError",
    "ToolStuckError",
    "ToolTimeoutError",
    "UnapprovedToolError",
    "UndiscoveredToolError",
    "UnfinishedCallError",
    "UnknownPriceError",
    "UnknownRecordError",
    "UnknownSessionError",
    "UnknownToolError",
    "UnsafeUrlError",
    "UsageStoreError",
    "VectorStoreError",
]

_MAX_SHOWN = 80  # characters of a name that a message shows; tools have names of at most 64


def shown_name(name: str) -> str:
    """Return *name* as messages, logs and spans show it: a model or a client may have made it up, at any length."""
    return name if len(name) <= _MAX_SHOWN else f"{name[:_MAX_SHOWN]}... ({len(name):,} characters)"


def text_for_model(error: Exception) -> str:
    """The text of *error* for a model, without anything that only a developer or an operator could act on."""
    return (error.model_text if isinstance(error, ToolSearchError) else "") or str(error)


class BadToolError(ToolSearchError, ValueError):
    """A tool cannot be defined in this way; the message says what is wrong."""

    code = "bad_tool"
    status = 422
    model_text = "the definition of this tool cannot be used; go on without it"


class DuplicateToolError(ToolSearchError, ValueError):
    """Two tools want one name; both owners are named, since either may be the one to rename."""

    code = "duplicate_tool"
    status = 409
    model_text = "two tools have one name, so that neither can be used; go on without it"

    def __init__(self, name: str, *, first: str, second: str) -> None:
        super().__init__(
            f"two tools are named {name!r}: one from {first}, one from {second}; rename one, or give its source "
            "a prefix"
        )
        self.name = name
        self.first = first
        self.second = second


class UnknownToolError(ToolSearchError, LookupError):
    """No tool of that name is in the caller's reach; *near* are names that are."""

    code = "unknown_tool"
    status = 404

    def __init__(self, name: str, *, near: Sequence[str] = ()) -> None:
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        super().__init__(f"no tool named {shown_name(name)!r}{hint}")
        self.name = name
        self.near = tuple(near)


class ToolGoneError(UnknownToolError):
    """The model was sent the tool before; since then it was removed, its server is away, or it is out of reach."""

    code = "tool_gone"
    status = 410

    def __init__(self, name: str) -> None:
        ToolSearchError.__init__(
            self, f"the tool {shown_name(name)!r} is not available any more; search for another one, or try again later"
        )
        self.name = name
        self.near = ()


class UnapprovedToolError(ToolSearchError):
    """The tool, prompt or resource is in reach, but its definition waits for a person's approval."""

    code = "unapproved_tool"
    status = 403

    def __init__(self, name: str, how: str = "") -> None:
        """*how* names the means of approval, such as ``with a command``."""
        super().__init__(
            f"{name} waits for a person to approve its definition{how and f' {how}'}; until then it can be neither "
            "found nor called"
        )
        self.name = name


class UndiscoveredToolError(ToolSearchError, LookupError):
    """The tool is in reach, but this session has to find it with a search before it may call it."""

    code = "undiscovered_tool"
    status = 409

    def __init__(self, name: str) -> None:
        super().__init__(f"the tool {name!r} is not loaded; call toolSearchTool with the query 'select:{name}' first")
        self.name = name


class SourceError(ToolSearchError, ValueError):
    """A source of tools cannot be read at all; one bad tool in a good source is skipped, not raised."""

    code = "source_error"
    status = 422
    model_text = "this tool's source cannot be read at the moment; go on without it, or try again later"


class ServerUnavailableError(ToolSearchError, ConnectionError):
    """An MCP server cannot be reached, or died during the call (which may then have run).

    *retry_after_s* is the time until another try may succeed; None if unknown.
    """

    code = "server_unavailable"
    status = 503

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ServerBusyError(ServerUnavailableError):
    """A server has as many calls as it may have, running and waiting; this one was not sent."""

    code = "server_busy"
    status = 429


class LoginRequiredError(ServerUnavailableError):
    """A server requires a person to log in; the message says how."""

    code = "login_required"
    status = 401


class UnknownSessionError(ToolSearchError, LookupError):
    """There is no such session: it was never made, or it has been evicted."""

    code = "unknown_session"
    status = 404
    model_text = "this conversation is not known any more; it has to be begun anew"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"no session {session_id!r}: it was never opened, or it has been evicted; open it again")
        self.session_id = session_id


class StorageError(ToolSearchError):
    """Stored data cannot be written or read; the message names the data and the place, and says what to do.

    *retry_after_s* is the time until another try may succeed, while the database is away; None if trying does not help.
    *outcome_is_unknown* says that the data may have been written all the same. *is_callers_fault* says that no database
    can store the data, such as a text with a NUL character.
    """

    code = "storage_error"
    model_text = "what has to be kept cannot be read or written at the moment; try again later"

    def __init__(
        self,
        message: str,
        *,
        retry_after_s: float | None = None,
        outcome_is_unknown: bool = False,
        is_callers_fault: bool = False,
    ) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.outcome_is_unknown = outcome_is_unknown
        if retry_after_s is not None:
            self.code = "store_unavailable"
            self.status = 503
        elif is_callers_fault:
            self.code = "bad_value"
            self.status = 422
            self.model_text = ""  # empty, so that the model reads the message itself


class SessionStoreError(StorageError):
    """Sessions cannot be stored, or a stored text is not a session."""

    code = "session_store_error"


class SessionConflictError(SessionStoreError):
    """Another writer has saved or ended the session since it was read; nothing was written.

    With *retry_after_s*, this has happened in every attempt, because others use the session; the status is 503.
    """

    code = "session_conflict"
    status = 409

    def __init__(self, session_id: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(
            f"the session {session_id!r} was changed by another writer since it was read; read it again and repeat",
            retry_after_s=retry_after_s,
        )
        self.code = SessionConflictError.code
        self.session_id = session_id


class UsageStoreError(StorageError):
    """The evidence from use cannot be stored or read."""

    code = "usage_store_error"


class MessageStoreError(StorageError):
    """A conversation cannot be kept, or read back."""

    code = "message_store_error"


class PinStoreError(StorageError):
    """The approvals of definitions cannot be stored or read. No definition counts as approved then."""

    code = "pin_store_error"


class AuditStoreError(StorageError):
    """The record of decisions cannot be written or read."""

    code = "audit_store_error"


class RecordStoreError(StorageError):
    """A document of the service cannot be written or read back."""

    code = "record_store_error"


class RecordConflictError(RecordStoreError):
    """A document was changed by another writer since it was read; nothing was written."""

    code = "changed_meanwhile"
    status = 409

    def __init__(self, kind: str, record_id: str) -> None:
        super().__init__(f"the {kind} {record_id!r} is another by now; read it again and repeat")
        self.kind = kind
        self.record_id = record_id


class KeyStoreError(StorageError):
    """API keys cannot be read. No key is accepted then."""

    code = "key_store_error"
    status = 503


class ContentsStoreError(StorageError):
    """The tools of a catalog cannot be written or read back."""

    code = "contents_store_error"


class ContentsConflictError(ContentsStoreError):
    """A catalog was changed by another writer since it was read; nothing was written."""

    code = "changed_meanwhile"
    status = 409

    def __init__(self, catalog: str, revision: int) -> None:
        super().__init__(f"the catalog {catalog!r} has revision {revision} by now; read it again and repeat")
        self.catalog = catalog
        self.revision = revision


class ReceiptStoreError(StorageError):
    """Receipts of calls cannot be kept, or read back."""

    code = "receipt_store_error"


class FigureStoreError(StorageError):
    """Figures of use cannot be kept, or read back."""

    code = "figure_store_error"


class VectorStoreError(StorageError, IndexStoreError):
    """The vectors that replicas share cannot be read or written."""

    code = "vector_store_error"


class MissStoreError(StorageError):
    """Requests without a good answer cannot be kept, or read back."""

    code = "miss_store_error"


class BadArgumentsError(ToolSearchError, ValueError):
    """A tool call's arguments do not fit the tool's schema; the message says where."""

    code = "bad_arguments"
    status = 422


class UnfinishedCallError(ToolSearchError):
    """The reply that made a call did not finish, so its arguments may be incomplete; nothing was run."""

    code = "unfinished_call"
    status = 422

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the reply that made this call did not finish ({reason}), so its arguments may be incomplete; it was not "
            "run. Make the call again if it is still needed; if the reply was too long, with fewer calls or shorter "
            "arguments"
        )
        self.reason = reason


class ToolExecutionError(ToolSearchError):
    """A tool ran and failed; ``__cause__`` is its exception.

    A tool may raise it itself, for a failure that its author expects: the model reads the message, and the log has no
    traceback.
    """

    code = "tool_failed"
    status = 502

    def __init__(self, *message: object, model_text: str = "") -> None:
        super().__init__(*message)
        self.model_text = model_text


class ToolTimeoutError(ToolSearchError, TimeoutError):
    """A tool did not answer in its time; it may still have had its effect."""

    code = "tool_timeout"
    status = 504


class ToolStuckError(ToolSearchError):
    """A plain function was not run: too many functions still run after their calls timed out or were cancelled."""

    code = "tool_stuck"
    status = 503

    def __init__(self, name: str, stuck: str, count: int) -> None:
        super().__init__(
            f"the tool {name!r} was not run: {stuck} were given up, but are still running ({count}); "
            "go on without it, or try again later"
        )
        self.name = name


class ToolNotHereError(ToolSearchError):
    """A registered Python tool was not run: this replica does not have the function, or has another version of it."""

    code = "tool_not_here"
    status = 503
    model_text = "this tool cannot be run at the moment; call it again in a moment, or go on without it"
    retry_after_s = 1.0  # another replica may get the request then

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the tool {name!r} was not run: this replica of the service does not have its function, or has another "
            "version of it; try again soon, and start all replicas with the same --tools"
        )
        self.name = name


class CallLimitError(ToolSearchError):
    """A turn has used up its calls of one tool or in total.

    *results* are the `ToolResult`s of the batch that exceeded the limit, one for each call.
    """

    code = "call_limit"
    status = 429
    results: tuple[Any, ...] = ()


class RepeatedCallError(ToolSearchError):
    """The same call, arguments and all, was made several times in a row: asking again brings nothing new."""

    code = "repeated_call"
    status = 429


class CallDeniedError(ToolSearchError):
    """A hook, or a person whom it asked, refused a call; the message says why."""

    code = "call_denied"
    status = 403


class NotCallableHereError(ToolSearchError):
    """The tool can be found here, but the application that has listed it runs it: make the call there.

    *definition* is the tool's `ToolDefinition`, and *arguments* fit it; no hook has denied the call.
    """

    code = "not_callable_here"
    status = 409

    def __init__(self, definition: Any, arguments: Mapping[str, Any]) -> None:
        super().__init__(
            f"the tool {definition.name!r} can be found, but not called here: the application that listed it runs it"
        )
        self.definition = definition
        self.arguments = arguments


class ChatModelError(ToolSearchError):
    """A chat model refused a request, cannot be reached, or gave an invalid answer; ``__cause__`` is the SDK's
    error.
    """

    code = "chat_model_error"
    status = 502
    model_text = "the model that this tool asks did not answer; go on without it, or try again later"


class BadAnswerError(ChatModelError):
    """An answer does not have the requested type. *response* is the whole answer; the message quotes no value."""

    code = "bad_answer"
    status = 502

    def __init__(self, reason: str, response: Any) -> None:
        super().__init__(reason)
        self.response = response


class BadSettingError(ToolSearchError, ValueError):
    """An option has a value that cannot be used; the message names the values that can."""

    code = "bad_setting"
    status = 400
    model_text = "this is set up in a way that cannot work; go on without it"


class RequestsFileError(ToolSearchError, ValueError):
    """A file of users' requests is missing or damaged; the message names the line. The whole file is then ignored."""

    code = "bad_requests_file"
    status = 422
    model_text = "this is set up in a way that cannot work; go on without it"


class UnknownPriceError(ToolSearchError, LookupError):
    """The model is not in the table of prices; *known* are the models that are."""

    code = "unknown_price"
    status = 404
    model_text = "what this model costs is not known; go on without it"

    def __init__(self, model: str, *, known: Sequence[str]) -> None:
        super().__init__(
            f"no price is known of the model {shown_name(model)!r}; known are {', '.join(known)}. Or give its prices "
            "yourself, in dollars per million tokens: Prices(input=..., output=..., cache_read=..., cache_write=...)"
        )
        self.model = model
        self.known = tuple(known)


class SealError(StorageError):
    """Encrypted data cannot be opened with the given secret keys. The message names no secret."""

    code = "seal_error"
    model_text = "the service has lost the credential that this needs; go on without it"

    def __init__(self) -> None:
        super().__init__(
            "a secret in the store was sealed with another key; put back the file secret.key, or name its key in "
            "TOOLSEARCH_SECRET_KEY (several with commas between, the one to seal with first); all services "
            "that share a store need the same key"
        )


class UnsafeUrlError(ToolSearchError, ValueError):
    """A URL that a tenant has named is not one that the service may reach."""

    code = "unsafe_url"
    status = 422
    model_text = "this tool cannot be reached from here; go on without it"

    def __init__(self, reason: str) -> None:
        super().__init__(f"this URL cannot be used: {reason}")


class NotAuthenticatedError(ToolSearchError):
    """A request to the service has no accepted credential."""

    code = "not_authenticated"
    model_text = "this needs a credential that has not been given; go on without it"
    status = 401

    def __init__(self) -> None:
        super().__init__("say who you are: send an API key as 'Authorization: Bearer ...'")


class NotPermittedError(ToolSearchError):
    """The credential is good, but not for that."""

    code = "not_permitted"
    model_text = "the credential in use is not good for this; go on without it"
    status = 403

    def __init__(self, scope: str) -> None:
        super().__init__(f"this credential lacks the scope {scope!r}; ask an administrator for a key that has it")
        self.scope = scope


class UnknownRecordError(ToolSearchError, LookupError):
    """The service has no object of that kind and name that this caller may see."""

    code = "not_found"
    model_text = "what this asks for is not there; go on without it"
    status = 404

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"there is no {kind} {name!r}")
        self.kind = kind
        self.name = name


class StillRunningError(ToolSearchError):
    """A job that is still running stands in the way."""

    code = "still_running"
    model_text = "something that stands in the way is still running; try again later"
    status = 409


class TooManyError(ToolSearchError):
    """A quota or a rate limit is used up; the message says which. *retry_after_s* is None if waiting does not help."""

    code = "too_many"
    status = 429

    def __init__(self, what: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(what)
        self.retry_after_s = retry_after_s


class ServiceError(ToolSearchError):
    """The service answered its client with an error, or cannot be reached.

    *code* and *status* are those of the answer; *request_id* identifies the request in the service's log.
    """

    code = "service_error"
    model_text = "the service that this asks has not done it; go on without it, or try again later"
    status = 502

    def __init__(self, message: str, *, code: str, status: int, request_id: str = "") -> None:
        super().__init__(message)
        vars(self).update(code=code, status=status)  # other errors have these from their class
        self.request_id = request_id
