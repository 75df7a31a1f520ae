"""All errors, each with a stable code and a remedy. `toolsearch.reference_pages` makes the pages of errors from them.

Errors of indexes are defined in `toolsearch_indexes`, because an index works alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from toolsearch_indexes.errors import BadPatternError as BadPatternError
from toolsearch_indexes.errors import BadQueryError as BadQueryError
from toolsearch_indexes.errors import Case
from toolsearch_indexes.errors import EncoderError as EncoderError
from toolsearch_indexes.errors import IndexStoreError as IndexStoreError
from toolsearch_indexes.errors import MissingExtraError as MissingExtraError
from toolsearch_indexes.errors import ToolSearchError as ToolSearchError

_MAX_SHOWN = 80  # characters of a name that a message shows; tools have names of at most 64


def shown_name(name: str) -> str:
    """Return *name* as messages, logs and spans show it: a model or a client may have made it up, at any length."""
    return name if len(name) <= _MAX_SHOWN else f"{name[:_MAX_SHOWN]}... ({len(name):,} characters)"


def text_for_model(error: Exception) -> str:
    """The text of *error* for a model, without anything that only a developer or an operator could act on."""
    return (error.model_text if isinstance(error, ToolSearchError) else "") or str(error)


# Tools and their sources


class BadToolError(ToolSearchError, ValueError, code="bad_tool", status=422):
    """A tool has an invalid name, schema or signature. The message names the tool."""

    remedy = "Correct the definition of the tool."
    model_text = "the definition of this tool cannot be used; go on without it"


class DuplicateToolError(ToolSearchError, ValueError, code="duplicate_tool", status=409):
    """Two tools have the same name. The message says where each comes from."""

    remedy = "Rename one of the two tools, or load one under another server name (`server=`)."
    model_text = "two tools have the same name, and neither can be used; go on without it"

    def __init__(self, name: str, *, first: str, second: str) -> None:
        super().__init__(
            f"two tools are named {name!r}: one from {first}, one from {second}; rename one, or give its source "
            "a prefix"
        )
        self.name, self.first, self.second = name, first, second


class UnknownToolError(ToolSearchError, LookupError, code="unknown_tool", status=404):
    """There is no tool of that name, or the caller may not use it. ``error.near`` lists similar names."""

    remedy = "Use a similar name, or search."
    GONE = Case(
        *("tool_gone", 410, "The model had the tool. Now the tool is removed or forbidden, or its server is down."),
        "Search for another tool, or try again when the tool's server is back.",
    )
    cases = (GONE,)

    def __init__(self, name: str, *, near: Sequence[str] = (), is_gone: bool = False) -> None:
        """*is_gone* says that the model was sent the tool before."""
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        unknown = f"no tool named {shown_name(name)!r}{hint}"
        gone = f"the tool {shown_name(name)!r} is not available any more; search for another one, or try again later"
        super().__init__(gone if is_gone else unknown, case=self.GONE if is_gone else None)
        self.name, self.near, self.is_gone = name, tuple(near), is_gone


class UnapprovedToolError(ToolSearchError, code="unapproved_tool", status=403):
    """The definition of this tool, prompt or resource waits for a person's approval."""

    remedy = "Have a person run `toolsearch gateway approve SERVER__TOOL`, or approve it on the service's pages."

    def __init__(self, name: str, how: str = "") -> None:
        """*how* names the means of approval, such as ``with a command``."""
        super().__init__(
            f"{name} waits for a person to approve its definition{how and f' {how}'}; until then it can be neither "
            "found nor called"
        )
        self.name = name


class ChangedSkillError(ToolSearchError, code="skill_changed", status=409):
    """A file of a skill has changed since the skill was listed.

    Nothing of its content is passed on.
    """

    remedy = "List the skills or load the folder again. In the gateway and the service, the skill then needs approval."

    def __init__(self, name: str, path: str, now: str = "load its folder again") -> None:
        """*now* says what became of the skill, or what to do."""
        super().__init__(
            f"the file {shown_name(path)} of the skill {name!r} has changed since it was listed, and is not shown; "
            f"{now}"
        )
        self.name, self.path = name, path


class UndiscoveredToolError(ToolSearchError, LookupError, code="undiscovered_tool", status=409):
    """A search must find the tool before the session calls it."""

    remedy = "Search for `select:NAME` first, or set `expand_undiscovered=True`."

    def __init__(self, name: str) -> None:
        super().__init__(f"the tool {name!r} is not loaded; call toolSearchTool with the query 'select:{name}' first")
        self.name = name


class SourceError(ToolSearchError, ValueError, code="source_error", status=422):
    """A source of tools cannot be read. A single invalid tool is skipped without an error."""

    remedy = "Check the path, the format and the network of the source that the message names."
    model_text = "this tool's source cannot be read at the moment; go on without it, or try again later"
    BAD_REQUESTS = Case(
        *("bad_requests_file", 422, "A file of example requests is missing or damaged. Nothing of it is used."),
        "Correct or remove the line that the message names. `toolsearch enrich` writes missing lines again.",
    )
    cases = (BAD_REQUESTS,)


class ServerUnavailableError(ToolSearchError, ConnectionError, code="server_unavailable", status=503):
    """An MCP server cannot be reached, or died during the call. The call may have run.

    *retry_after_s* is the time until another try may succeed; None if unknown. *is_busy* says that the call was not
    sent.
    """

    remedy = (
        "Check the server with `toolsearch gateway check`. Before you repeat the call, check whether it took effect."
    )
    BUSY = Case(
        *("server_busy", 429, "Too many calls to this server are running and waiting. This call was not sent."),
        "Wait and call again, or raise `maxRunning` of the server.",
    )
    cases = (BUSY,)

    def __init__(self, message: str, *, retry_after_s: float | None = None, is_busy: bool = False) -> None:
        super().__init__(message, case=self.BUSY if is_busy else None)
        self.retry_after_s, self.is_busy = retry_after_s, is_busy


class LoginRequiredError(ServerUnavailableError, code="login_required", status=401):
    """A server requires that a person logs in."""

    remedy = "Run `toolsearch gateway login SERVER`, or configure a token in the server's headers."


# What is stored

_SEE_THE_STORE = "Check the file or the database."


class Kept(Enum):
    """What a `StorageError` is about: how messages name it, its code, and what to do."""

    DATA = "data of the service", ""  # the code is that of the error's class
    AUDIT = "records of the audit", "audit_store_error", "Check the store. Actions that cannot be recorded are refused."
    CONTENTS = "tools of catalogs", "contents_store_error"
    CONVERSATIONS = "conversations", "message_store_error", "Restore a backup, or clear the damaged conversation."
    FIGURES = "figures of use and savings", "figure_store_error"
    KEYS = "API keys", "key_store_error", "Check the store. Until it works, no key is accepted.", 503
    MISSES = "searches without a good result", "miss_store_error"
    PINS = "approved tools", "pin_store_error", "Restore `trust.db` from a backup. Until then, no tool is approved."
    RECEIPTS = "receipts of calls", "receipt_store_error"
    RECORDS = "records of tenants, catalogs and toolsets", "record_store_error"
    SESSIONS = "sessions", "session_store_error", "Open the session with `allow` and `deny`, or restore a backup."
    USAGE = "counts of use", "usage_store_error", "Check the store. Meanwhile, searches use the counts in memory."
    VECTORS = "vectors", "vector_store_error", "Check the store. Missing vectors are computed again."

    def __init__(self, contents: str, code: str, remedy: str = _SEE_THE_STORE, status: int = 500) -> None:
        self.contents = contents
        self.case = Case(code, status, f"The {contents} cannot be read or written.", remedy) if code else None


class StorageError(ToolSearchError, code="storage_error"):
    """Stored data cannot be written or read. The message names the data and the place.

    *kept* is what it is about. *retry_after_s* is the time until another try may succeed, while the database is away;
    None if trying does not help. *outcome_is_unknown* says that the data may have been written all the same.
    *is_callers_fault* says that no database can store the data, such as a text with a NUL character.
    """

    remedy = _SEE_THE_STORE
    model_text = "stored data cannot be read or written at the moment; try again later"
    AWAY = Case(
        *("store_unavailable", 503, "The database cannot be reached, is busy, or accepts no writes."),
        "Repeat the call after the time in `Retry-After` or `error.retry_after_s`. If `error.outcome_is_unknown` is "
        "set, first check whether the data was written.",
    )
    BAD_VALUE = Case("bad_value", 422, "No database can store the value.", "Remove characters such as NUL.")
    cases = (AWAY, BAD_VALUE, *(kept.case for kept in Kept if kept.case is not None))

    def __init__(
        self,
        message: str,
        kept: Kept = Kept.DATA,
        *,
        retry_after_s: float | None = None,
        outcome_is_unknown: bool = False,
        is_callers_fault: bool = False,
    ) -> None:
        is_away = retry_after_s is not None
        super().__init__(message, case=self.AWAY if is_away else self.BAD_VALUE if is_callers_fault else kept.case)
        self.kept = kept
        self.retry_after_s = retry_after_s
        self.outcome_is_unknown = outcome_is_unknown
        if is_callers_fault:
            self.model_text = ""  # the model reads the message itself


class ConflictError(StorageError, code="changed_meanwhile", status=409):
    """Somebody else has changed the data since you read it. Nothing was written.

    With *retry_after_s*, every attempt has failed in this way, because others write all the time; the status is 503.
    """

    remedy = "Read the data again and repeat the change."
    OF_SESSION = Case("session_conflict", 409, "Somebody else has saved or ended the session.", remedy)
    cases = (OF_SESSION,)

    def __init__(self, kind: str, name: str, kept: Kept = Kept.RECORDS, *, retry_after_s: float | None = None) -> None:
        super().__init__(
            f"the {kind} {name!r} has changed meanwhile; read it again and repeat the change",
            retry_after_s=retry_after_s,
        )
        self.kept, self.kind, self.name = kept, kind, name
        self.code = self.OF_SESSION.code if kept is Kept.SESSIONS else ConflictError.code


class SealError(StorageError, code="seal_error"):
    """None of the given secret keys can decrypt the stored data."""

    remedy = (
        "Give the service the secret key that encrypted the data, or "
        "[exchange the key](storage.md#credentials-and-the-secret-key)."
    )
    model_text = "the service has lost the credential for this; go on without it"

    def __init__(self) -> None:
        super().__init__(
            "a secret in the store was encrypted with another key; put back the file secret.key, or give its key in "
            "TOOLSEARCH_SECRET_KEY (commas separate several keys, and the first one encrypts); all services on one "
            "store need the same key"
        )


# Calls of tools, and sessions


class UnknownSessionError(ToolSearchError, LookupError, code="unknown_session", status=404):
    """The session was never opened, or it has been evicted."""

    remedy = "Open the session again. With a persistence, sessions survive eviction."
    model_text = "this conversation is not known any more; begin a new one"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"no session {session_id!r}: it was never opened, or it has been evicted; open it again")
        self.session_id = session_id


class BadArgumentsError(ToolSearchError, ValueError, code="bad_arguments", status=422):
    """The arguments do not fit the tool's schema. The message says where."""

    remedy = "Correct the arguments. A model that reads the message usually corrects them."


class UnfinishedCallError(ToolSearchError, code="unfinished_call", status=422):
    """The model's reply did not finish, so the arguments may be incomplete. Nothing was run."""

    remedy = "Let the model call again. Most often `max_tokens` is too low."

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"this call was not run: its reply did not finish ({reason}), so the arguments may be incomplete. Make the "
            "call again if you still need it. If the reply was too long, make fewer calls or use shorter arguments"
        )
        self.reason = reason


class ToolExecutionError(ToolSearchError, code="tool_failed", status=502):
    """A tool ran and failed.

    ``__cause__`` is its exception. A tool may raise it itself, for a failure that its author expects: the model reads
    the message, and the log has no traceback.
    """

    remedy = "Look for the tool's own error in `error.__cause__` or in the log."
    HELD = Case(
        *("result_held", 409, "The tool ran, but the scan of its result found something suspicious."),
        "Ask an operator to release the result, on the status page or with `toolsearch gateway results`. Then repeat "
        "the call.",
    )
    cases = (HELD,)

    def __init__(self, *message: object, model_text: str = "", is_held: bool = False) -> None:
        """*is_held* says that the tool has a result, which waits for an operator."""
        super().__init__(*message, case=self.HELD if is_held else None)
        self.model_text = model_text


class ToolTimeoutError(ToolSearchError, TimeoutError, code="tool_timeout", status=504):
    """A tool did not answer in time. The call may still have taken effect."""

    remedy = "Before you call again, check whether the call took effect. If the tool needs longer, raise `timeout_s`."


class ToolStuckError(ToolSearchError, code="tool_stuck", status=503):
    """The function was not run, because too many functions still run after a timeout or a cancellation."""

    remedy = "Give your functions time limits of their own. Hanging functions can block new calls."

    def __init__(self, name: str, stuck: str, count: int) -> None:
        super().__init__(
            f"the tool {name!r} was not run: {stuck} were given up, but are still running ({count}); "
            "go on without it, or try again later"
        )
        self.name = name


class ToolNotHereError(ToolSearchError, code="tool_not_here", status=503):
    """The replica lacks the Python function of the tool, or has another version of it."""

    remedy = "Repeat the call after a second, and start all replicas with the same `--tools`."
    model_text = "this tool cannot be run at the moment; call it again in a moment, or go on without it"
    retry_after_s = 1.0  # another replica may get the request then

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the tool {name!r} was not run: this replica of the service lacks its function, or has another version; "
            "try again soon, and start all replicas with the same --tools"
        )
        self.name = name


class CallLimitError(ToolSearchError, code="call_limit", status=429):
    """A turn has reached its limit of calls, of one tool or of all tools.

    *results* are the `ToolResult`s of the batch that exceeded the limit, one for each call.
    """

    remedy = "End the turn and answer, or raise [the limits](budgets.md#limit-the-calls-of-a-turn)."
    results: tuple[Any, ...] = ()


class RepeatedCallError(ToolSearchError, code="repeated_call", status=429):
    """The same call with the same result was made several times in a row."""

    remedy = "Use the earlier result. If a model has to poll the tool, set `CallLimits(repeats_overrides=...)`."


class CallDeniedError(ToolSearchError, code="call_denied", status=403):
    """A hook or a person refused the call. The message says why."""

    remedy = "Follow the message, or go on without the call. Do not just repeat it."


class NotCallableHereError(ToolSearchError, code="not_callable_here", status=409):
    """Only the application that listed the tool can run it.

    *definition* is the tool's `ToolDefinition`, and *arguments* fit it; no hook has denied the call.
    """

    remedy = "Run the tool in your application with `error.arguments`, and give the model its result."

    def __init__(self, definition: Any, arguments: Mapping[str, Any]) -> None:
        super().__init__(
            f"the tool {definition.name!r} can be found, but not called here: the application that listed it runs it"
        )
        self.definition, self.arguments = definition, arguments


# Chat models


class ChatModelError(ToolSearchError, code="chat_model_error", status=502):
    """A chat model refused a request, cannot be reached, or gave an invalid answer."""

    remedy = (
        "Read the SDK's error in `error.__cause__`: often the key, model name, quota or network is wrong. "
        "With the proxy, read the message."
    )
    model_text = "this tool asks a model, and the model did not answer; go on without it, or try again later"
    TIMEOUT = Case(
        *("chat_model_timeout", 504, "A model API behind the proxy was silent for too long."), "Repeat the request."
    )
    cases = (TIMEOUT,)


class BadAnswerError(ChatModelError, code="bad_answer"):
    """A model's answer does not have the requested type.

    The message quotes no values of the answer.
    """

    remedy = (
        "Ask with `entity(..., attempts=3)`, or use a model that takes a schema. `error.response` has the whole answer."
    )

    def __init__(self, reason: str, response: Any) -> None:
        super().__init__(reason)
        self.response = response


class UnknownPriceError(ToolSearchError, LookupError, code="unknown_price", status=404):
    """The price of the model is not known. ``error.known`` lists the models with known prices."""

    remedy = "Give the model's prices, or name a model that the message lists."
    model_text = "the price of this model is not known; go on without it"

    def __init__(self, model: str, *, known: Sequence[str]) -> None:
        super().__init__(
            f"no price is known for the model {shown_name(model)!r}; known are {', '.join(known)}. Or give its prices "
            "yourself, in dollars per million tokens: Prices(input=..., output=..., cache_read=..., cache_write=...)"
        )
        self.model, self.known = model, tuple(known)


# Settings


class BadSettingError(ToolSearchError, ValueError, code="bad_setting", status=400):
    """An option or setting has an invalid value."""

    remedy = "Use a value that the message names. [Settings](settings.md) lists every setting."
    model_text = "this is configured wrongly; go on without it"


# The service


class UnsafeUrlError(ToolSearchError, ValueError, code="unsafe_url", status=422):
    """The service may not connect to a URL that a tenant has given."""

    remedy = "Use an address on the internet, or have an operator allow the host in `outbound.allowed_hosts`."
    model_text = "this tool cannot be reached from here; go on without it"

    def __init__(self, reason: str) -> None:
        super().__init__(f"this URL cannot be used: {reason}")


class NotAuthenticatedError(ToolSearchError, code="not_authenticated", status=401):
    """The request has no valid credential."""

    remedy = "Send a valid API key as `Authorization: Bearer ...`."
    model_text = "this needs a credential, and none was given; go on without it"

    def __init__(self) -> None:
        super().__init__("say who you are: send an API key as 'Authorization: Bearer ...'")


class NotPermittedError(ToolSearchError, code="not_permitted", status=403):
    """The credential lacks a scope."""

    remedy = "Use a key with the scope that the message names."
    model_text = "the credential in use does not allow this; go on without it"

    def __init__(self, scope: str) -> None:
        super().__init__(f"this credential lacks the scope {scope!r}; ask an administrator for a key that has it")
        self.scope = scope


class UnknownRecordError(ToolSearchError, LookupError, code="not_found", status=404):
    """There is no object of that kind and name, or the caller may not see it."""

    remedy = "Check the name, and whether your key may see the object."
    model_text = "the requested object does not exist; go on without it"

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"there is no {kind} {name!r}")
        self.kind, self.name = kind, name


class StillRunningError(ToolSearchError, code="still_running", status=409):
    """The request must wait until a running job has ended."""

    remedy = "Wait until the job has ended, or cancel it."
    model_text = "another job is still running; try again later"


class TooManyError(ToolSearchError, code="too_many", status=429):
    """A quota or a rate limit is used up. The message says which.

    *retry_after_s* is None if waiting does not help.
    """

    remedy = "Wait for the time in `Retry-After`. If there is none, ask for a higher quota."
    RATE = Case(
        "rate_limited",
        429,
        "A principal calls some tools too often, or gets too many tokens from them. This call was not sent.",
        "Wait as long as the message says, then repeat the call.",
    )
    cases = (RATE,)

    def __init__(self, what: str, *, retry_after_s: float | None = None, case: Case | None = None) -> None:
        super().__init__(what, case=case)
        self.retry_after_s = retry_after_s


class ServiceError(ToolSearchError, code="service_error", status=502):
    """The service answered its client with an error, or cannot be reached.

    *code* and *status* are those of the answer; *request_id* identifies the request in the service's log.
    """

    remedy = "Look up `error.code` on these pages. Search the service's log for `error.request_id`."
    model_text = "the service did not do this; go on without it, or try again later"

    def __init__(self, message: str, *, code: str, status: int, request_id: str = "") -> None:
        super().__init__(message)
        self.code, self.status, self.request_id = code, status, request_id
