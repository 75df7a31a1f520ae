"""What outlives the process: a port for each kind of what is kept, and what implements them.

    sessions.py  usage.py  messages.py  pins.py  audit.py     the ports: Protocols that know no database
    memory.py                                                 each of them for as long as the process lives
    sqlite/                                                   each of them in SQLite files, the default
    private_files.py                                          caches that may be lost, as files of their owner alone

Two places keep what belongs to retrieval and not here: `toolsearch_indexes.vector_store` is the port of vectors, since
the engine of retrieval stands alone, and `toolsearch.catalog.stored` writes the catalog of an index directory, which is
a sealed part of one generation: it is never changed, and made anew where it is of another version.

Another database gets a package beside `sqlite/`, such as `postgres/`, with one module for each port and a test module
that subclasses the contracts of `tests/kit/storage_contracts.py`. Nothing above this package has to know which it is
given.
"""
