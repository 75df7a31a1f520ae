"""The service: one process for many agents and tenants, over HTTP and MCP, with pages to look at.

app.py            the application, put together: middleware, routes, the MCP face, pages
service.py        every part of the service, made once; deletes what is too old
catalogs/  toolsets/  sessions/  calls/  keys/  activity/    a folder for each thing that a user knows,
search.py  approvals.py  tenants.py  audit.py                or a module: its logic, its routes and its page
usage.py  playground.py                                      figures over time; one query by every strategy
jobs.py  job_records.py    work that goes on behind a request, in one replica, seen from all
corpora/          which catalogs and toolsets are in memory, with their indexes
mcp_face/         the MCP face of a session
proxy_face.py  providers.py    the APIs of models, and who is asked for them
web/              what HTTP needs, whatever is asked for; ``parts`` gives a route the parts of the service
pages/            what surrounds every page, with the templates and the files that they load
replicas.py  replica_changes.py    what replicas over one store know of each other
data_folder.py    where everything is kept, and copies of it
serving.py        what is looked at before a start; serving until a signal
settings.py       the settings of a service
openapi_page.py   prints ``docs/openapi.json``
"""
