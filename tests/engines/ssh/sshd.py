"""A real sshd on loopback, with keys, configuration and homes of its own."""

import contextlib
import getpass
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from launching import free_port, wait_for

SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin")


class Sshd:
    """Hosts `one` and `two` are this machine, `nosuch` has no address, `stranger` does not know our key."""

    def __init__(self, folder, home):
        self.folder = pathlib.Path(folder) / "ssh"
        self.folder.mkdir(mode=0o700)
        self.port = free_port()
        for key in ("host", "user", "stranger"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / key], check=True)
        (self.folder / "authorized").write_text((self.folder / "user.pub").read_text())
        public = " ".join((self.folder / "host.pub").read_text().split()[:2])
        (self.folder / "known").write_text(f"[127.0.0.1]:{self.port} {public}\n")
        (self.folder / "sshd_config").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.folder}/host\nPidFile none\nUsePAM no\n"
            f"AuthorizedKeysFile {self.folder}/authorized\nStrictModes no\nPermitRootLogin yes\n"
            f"PasswordAuthentication no\nMaxStartups 100\nMaxSessions 100\nSetEnv HOME={home}\n")
        self.config = self.folder / "config"
        common = (f"  HostName 127.0.0.1\n  Port {self.port}\n  User {getpass.getuser()}\n  IdentitiesOnly yes\n"
                  f"  UserKnownHostsFile {self.folder}/known\n")
        self.config.write_text(
            f"Host one two\n{common}  IdentityFile {self.folder}/user\n"
            f"Host stranger\n{common}  IdentityFile {self.folder}/stranger\n"
            f"Host nosuch\n  HostName nosuch.invalid\n")
        if os.getuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)  # where sshd gives up its rights
        self.process = None

    def start(self):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen([SSHD, "-D", "-e", "-f", self.folder / "sshd_config"], stderr=log)
        wait_for(self.answers, "sshd")

    def answers(self):
        assert self.process.poll() is None, (self.folder / "log").read_text()
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=5):
            return True

    def sessions(self):
        """The processes of sshd that serve a connection."""
        found = []
        for folder in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if folder.name.isdigit():
                    fields = (folder / "stat").read_text().rpartition(")")[2].split()
                    if int(fields[1]) == self.process.pid and fields[0] != "Z":
                        found.append(int(folder.name))
        return found

    def kill_sessions(self):
        for pid in self.sessions():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def stop(self):
        """With all its connections, as a machine that is switched off."""
        if self.process:
            sessions = self.sessions()
            self.process.kill()
            self.process.wait()
            for pid in sessions:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process = None
