"""One background process for all clients over stdio of a configuration; each client starts only a small program.

    place    where the background process is reached, and who may reach it
    way      how a background process is found or started
    link     the small program: carries a client's lines to the background process, and outlives it
    session  what the small program knows of the session, to go on with another process
    host     the background process: one gateway, which serves each connection as a client of its own

All but `host` import nothing heavy, since each client runs them.
"""
