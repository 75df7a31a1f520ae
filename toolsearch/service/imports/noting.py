"""What is written of a source when an import of it ends, and when it is deleted: whole, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from toolsearch.errors import ToolSearchError, UnknownRecordError
from toolsearch.service.imports.sources import CatalogSource, LastImport, Sources
from toolsearch.service.job_records import JobEndedError
from toolsearch.service.jobs import Progress
from toolsearch.service.refused_tools import RefusedTools
from toolsearch.storage.storage import Storage
from toolsearch.threads import in_thread
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Noting:
    """*clock* gives seconds since 1970."""

    storage: Storage
    sources: Sources
    refused: RefusedTools
    clock: Callable[[], float]

    def done(
        self,
        source: CatalogSource,
        last: LastImport,
        refused: Sequence[Refusal],
        outcome: JsonObject,
        progress: Progress,
    ) -> CatalogSource:
        """Write the outcome of an import, with its job, in a thread and in the transaction that is open, if any.

        Raises JobEndedError, and UnknownRecordError if the source was deleted: then nothing may be written.
        """
        with self.storage.transaction():
            progress.written(outcome)
            self.refused.write(source, refused)
            return self.sources.settle(source, last)

    async def failed(self, source: CatalogSource, error: ToolSearchError, progress: Progress) -> None:
        """The same for one that has failed, which leaves everything else as it was."""
        last = replace(source.last or LastImport(0), at_s=self.clock(), code=error.code, error=str(error))

        def write() -> None:
            with self.storage.transaction():
                progress.require_running()
                self.sources.settle(source, last)

        with suppress(JobEndedError, UnknownRecordError):
            await in_thread(write)

    def forget(self, source: CatalogSource) -> None:
        """Delete it, in a thread. Raises RecordConflictError if it has another version by now."""
        with self.storage.transaction():
            self.sources.remove(source)
            self.refused.remove(source)
