"""What outlives the process: a port (a Protocol) for each kind of data, and its implementations.

    sessions.py  usage.py  messages.py  pins.py  audit.py     the ports: Protocols that know no database
    memory.py                                                 each of these in memory, until the process ends
    records.py  keys.py  contents.py  receipts.py  figures.py  misses.py    more ports, of what a service keeps
    storage.py                                                all that a service keeps, by tenant, as one object
    changes.py                              what replicas tell each other: that something was written
    sql/                                                      each of them in SQL that several databases understand
    sqlite/  postgres/                                        these databases; SQLite files are the default
    opening.py  place.py                    which of them a service uses, and what can be done with it as a whole
    copying.py                              copies all tables from one to the other
    private_files.py                                          writes caches as files that only their owner can read

What belongs to retrieval is kept elsewhere. `toolsearch_indexes.vector_store` is the port of vectors, since the
retrieval engine can be used alone. `toolsearch.catalog.stored` writes the catalog of an index directory, which never
changes; one of another version is written anew.

Another SQL database gets a package with its connections and its tables, and a test module that subclasses the contracts
of `tests/kit/storage_contracts`. No other package needs to know which one is used.
"""
