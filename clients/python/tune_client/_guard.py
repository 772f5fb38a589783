"""Runs a command for as long as standard input stays open; then ends it by SIGTERM, and after a while by SIGKILL.

For agents on engines that end tasks by SIGKILL: the agent's trials are processes of their own, which only the agent ends. A command that is
killed begins anew, so that an agent adopts the trials that its state knows of. The exit code is the command's. Where this guard itself is killed, as Ray kills what an actor started, the kernel tells the command. Run by source (`python -c SOURCE SECONDS COMMAND...`), so that it needs nothing installed.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from typing import Callable

_PR_SET_PDEATHSIG = 1
_KILLS_MAX = 5  # in a row, each within so many seconds of the command's start: something ends it whenever it begins
_LASTS_S = 60.0


def main() -> int:
    """See above; SECONDS is what the command has between the two signals."""
    grace_s, command = float(sys.argv[1]), sys.argv[2:]
    os.setsid()  # engines signal whole process groups
    libc = ctypes.CDLL(None)  # before the fork: little is safe after it
    guard = os.getpid()

    def end_with_guard() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != guard:
            os._exit(1)

    kills = 0
    while True:
        began_s = time.monotonic()
        code, is_over = _run(command, grace_s, end_with_guard)
        kills = kills + 1 if time.monotonic() - began_s < _LASTS_S else 1
        if is_over or code >= 0 or kills >= _KILLS_MAX:
            return code


def _run(command: list[str], grace_s: float, prepare: Callable[[], None]) -> tuple[int, bool]:
    """The command's exit code, and whether standard input ended before it did."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=prepare)
    ended = os.pidfd_open(process.pid)
    poll = select.poll()
    poll.register(0, select.POLLIN | select.POLLHUP)
    poll.register(ended, select.POLLIN)
    for descriptor, _ in poll.poll():
        if descriptor == ended:
            os.close(ended)
            return process.wait(), False
    process.send_signal(signal.SIGTERM)
    try:
        return process.wait(grace_s), True
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.wait(), True


if __name__ == "__main__":
    sys.exit(main())
