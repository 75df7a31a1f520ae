"""What outlives the process: a module for each kind of data, with its store in SQL.

What users may keep elsewhere also has a port (a Protocol), and a store in memory.

    sessions  usage  pins  audit                       what the library and the gateway keep
    records  keys  contents  activity                  what only a service keeps
    storage                                            all of it, by tenant, as one object
    memory                                             what has a port, until the process ends
    sql                                                what a SQL database owes, and the base of each store
    tables                                             the tables of every database
    sqlite/  postgres/                                 these databases; SQLite files are the default
    replicas                                           what replicas tell each other, and leases
    opening  place                                     which database a service uses, and it as a whole
    files  seal                                        files that only their owner can read; what is encrypted
    decisions                                          the version of approvals, read with little

What belongs to retrieval is kept elsewhere. `toolsearch_indexes.vector_store` is the port of vectors, since the
retrieval engine can be used alone. `toolsearch.catalog.stored` writes the catalog of an index directory, which never
changes; one of another version is written anew.

Another SQL database gets a package with its connections and its dialect of the tables, and a test module that
subclasses the contracts of `tests/kit/storage_contracts`. No other package needs to know which one is used.
"""
