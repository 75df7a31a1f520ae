"""A search runs in the thread that asks for it: how faiss is told so, and what that leaves alone.

Beside a search for one query, which is done in a millisecond, faiss wakes a thread for each core and lets them wait for
work without sleeping. That costs several times the search, and on a busy machine tens of milliseconds until all were
there. A server's concurrency comes from the threads that search.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def one_thread() -> Generator[None]:
    """What faiss does within starts no thread, and wakes none.

    OpenMP keeps the number of threads for each thread of a program by itself. So other threads notice nothing of this,
    and the caller's own number is put back: an application's indexes and PyTorch keep theirs.
    """
    import faiss  # here, since it is large: whoever searches by it has loaded it

    before = faiss.omp_get_max_threads()
    if before == 1:
        yield
        return
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
