"""Two machines that are network namespaces of this one, and a cable between them. For root only: who is not is told so
by pytest.skip."""

import contextlib
import ctypes
import os
import subprocess

import pytest

SERVER_ADDRESS, AGENT_ADDRESS = "10.99.7.1", "10.99.7.2"  # nobody sees them outside the two namespaces
CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def run(*words):
    subprocess.run(words, check=True, timeout=60)


class Cable:
    """Between this thread's namespace, where whatever it starts is, too, and another one."""

    def __init__(self, other):
        self.other = other  # a process there

    def inside(self, *words):
        """A command there."""
        return ["nsenter", "--target", str(self.other), "--net", *words]

    def cut(self):
        run("ip", "link", "set", "cable", "down")

    def mend(self):
        run("ip", "link", "set", "cable", "up")


@contextlib.contextmanager
def two_machines():
    """The thread is on the first of two machines until the end."""
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    if libc.unshare(CLONE_NEWNET) != 0:
        os.close(own)
        pytest.skip(f"no network namespace can be made: {os.strerror(ctypes.get_errno())}")
    try:
        run("ip", "link", "set", "lo", "up")
        other = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo there; exec sleep 600"], stdout=subprocess.PIPE)
        try:
            assert other.stdout.readline() == b"there\n"
            cable = Cable(other.pid)
            run("ip", "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", str(other.pid))
            run("ip", "addr", "add", SERVER_ADDRESS + "/24", "dev", "cable")
            run("ip", "link", "set", "cable", "up")
            for words in (["addr", "add", AGENT_ADDRESS + "/24", "dev", "cable"], ["link", "set", "cable", "up"],
                          ["link", "set", "lo", "up"]):
                run(*cable.inside("ip", *words))
            yield cable
        finally:
            other.kill()
            other.wait()
            other.stdout.close()
    finally:
        assert libc.setns(own, CLONE_NEWNET) == 0
        os.close(own)
