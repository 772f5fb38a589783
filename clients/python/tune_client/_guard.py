"""Runs a command for as long as standard input stays open; then ends it by SIGTERM, and after a while by SIGKILL.

For agents on engines that end tasks by SIGKILL: the agent's trials are processes of their own, which only the agent ends. Its exit code
is the command's. Where this guard itself is killed, as Ray kills what an actor started, the kernel tells the command. Run by source (`python -c SOURCE SECONDS COMMAND...`), so that it needs nothing installed.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys

_PR_SET_PDEATHSIG = 1


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

    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=end_with_guard)
    ended = os.pidfd_open(process.pid)
    poll = select.poll()
    poll.register(0, select.POLLIN | select.POLLHUP)
    poll.register(ended, select.POLLIN)
    for descriptor, _ in poll.poll():
        if descriptor == ended:
            return process.wait()
    process.send_signal(signal.SIGTERM)
    try:
        return process.wait(grace_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.wait()


if __name__ == "__main__":
    sys.exit(main())
