"""Ends the processes of servers whose parent, this process, was killed and could not end them itself.

A server should end when its stdin does; some do not. Linux can signal a child when its parent dies, but only the child
and none of its own, and when the thread that started it ends; other systems cannot. A shell that waits for the end of a
pipe, which comes however we end, does it on all of them. On Windows a job of the system does.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import threading

from toolsearch_indexes.forking import follow_forks

logger = logging.getLogger(__name__)

_GRACE_S = 2  # to end by itself, and again after SIGTERM
# Its input is a line for each group of processes, "+ ID" at its start and "- ID" at its end, and ends when we do.
_WATCH = f"""
trap '' INT TERM HUP
groups=
while read -r sign id; do
  left=
  for group in $groups; do [ "$group" = "$id" ] || left="$left $group"; done
  groups=$left
  [ "$sign" = + ] && groups="$groups $id"
done
[ -z "$groups" ] && exit
sleep {_GRACE_S}
for group in $groups; do kill -s TERM -- "-$group"; done
sleep {_GRACE_S}
for group in $groups; do kill -s KILL -- "-$group"; done
"""


class OrphanGuard:
    """Knows the groups of processes that must not outlive this process. Its shell runs while there are any.

    May be used from any thread. If the guard itself fails, that is logged, and the servers run all the same.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: set[int] = set()
        self._shell: subprocess.Popen[bytes] | None = None
        follow_forks(self)

    def before_fork(self) -> None:
        self._lock.acquire()

    def after_fork(self, *, in_child: bool) -> None:
        if in_child:  # the servers, and the shell that waits for the end of a pipe, are the parent's
            self._groups.clear()
            self._stop()
        self._lock.release()

    def add(self, group: int) -> None:
        if sys.platform == "win32":
            return
        with self._lock:
            self._groups.add(group)
            if self._shell is not None and self._shell.poll() is None:
                self._tell(f"+ {group}\n")
            else:
                self._start()

    def discard(self, group: int) -> None:
        """To be called once the group has ended, and so before the system gives its number to another one."""
        with self._lock:
            if group not in self._groups:
                return
            self._groups.discard(group)
            self._tell(f"- {group}\n")
            if not self._groups:
                self._stop()

    def _start(self) -> None:
        self._stop()
        try:
            self._shell = subprocess.Popen(  # noqa: S603  nothing from outside is in it
                ["/bin/sh", "-c", _WATCH],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for us, and we end the servers then
                bufsize=0,
            )
        except OSError as error:
            logger.warning("servers may outlive this process if it is killed: no shell could be started (%s)", error)
            return
        self._tell("".join(f"+ {group}\n" for group in sorted(self._groups)))

    def _tell(self, line: str) -> None:
        if self._shell is not None and self._shell.stdin is not None:
            try:
                self._shell.stdin.write(line.encode())
            except OSError:  # somebody has ended it; the next server gets another one
                logger.debug("the shell that would end servers has ended")

    def _stop(self) -> None:
        if self._shell is not None:
            if self._shell.stdin is not None:
                self._shell.stdin.close()
            self._shell.wait()
            self._shell = None


guard = OrphanGuard()
