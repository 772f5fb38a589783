"""A real Slurm on this machine: munged, slurmctld and a slurmd for each of several nodes, with counted GPUs."""

import contextlib
import getpass
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from launching import free_port, wait_for

NODES = ("n1", "n2", "n3")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")

CONFIGURATION = """
ClusterName=tune
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PriorityType=priority/basic
ReturnToService=2
SlurmdTimeout=5
KillWait=5
MaxArraySize=3
MpiDefault=none
GresTypes=gpu
NodeName=n1,n2,n3 NodeHostname={host} NodeAddr=127.0.0.1 Port={node_ports} CPUs=2 Boards=1 SocketsPerBoard=1 \
CoresPerSocket=2 ThreadsPerCore=1 RealMemory=500 Gres=gpu:2
NodeName=far NodeHostname=far-away NodeAddr=127.0.0.1 Port={far_port} CPUs=2 RealMemory=500 State=DOWN
PartitionName=gpu Nodes=n1,n2,n3 Default=YES PriorityTier=1 MaxTime=INFINITE
PartitionName=high Nodes=n1,n2,n3 PriorityTier=10 MaxTime=INFINITE
PartitionName=far Nodes=far
"""


class Cluster:
    def __init__(self):
        # Short: the path of munge's socket has a limit of 107 characters.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
        ports = [free_port() for _ in range(5)]
        (self.folder / "state").mkdir()
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(
            host=socket.gethostname().split(".")[0], port=ports[0], node_ports=",".join(map(str, ports[1:4])),
            far_port=ports[4], folder=self.folder, user=getpass.getuser()))
        (self.folder / "gres.conf").write_text("".join(
            f"NodeName={','.join(NODES)} Name=gpu File={device}\n" for device in ("/dev/null", "/dev/zero")))
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def run(self, *words, check=True):
        done = subprocess.run([str(word) for word in words], env={**os.environ, **self.environment}, text=True,
                              capture_output=True, timeout=60)
        assert not check or done.returncode == 0, (words, done.stderr)
        return done.stdout

    def start(self):
        f = self.folder
        self.run("munged", "--force", f"--key-file={f}/munge.key", f"--socket={f}/munge.socket",
                 f"--pid-file={f}/munged.pid", f"--log-file={f}/munged.log", f"--seed-file={f}/munge.seed")
        self.run("slurmctld", "-c")
        for node in NODES:
            self.start_node(node)
        wait_for(lambda: self.run("sinfo", "-h", "-p", "gpu", "-o", "%T", check=False).split() == ["idle"],
                 f"three idle nodes; see {f}")

    def start_node(self, node):
        self.run("slurmd", "-N", node)

    def pid(self, name):
        with contextlib.suppress(OSError, ValueError):
            return int((self.folder / f"{name}.pid").read_text())

    def kill(self, name, how=signal.SIGKILL):
        pid = self.pid(name)
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, how)

    def jobs(self, *filters):
        """[(id, state, reason, node, comment)] of the jobs that wait or run."""
        lines = self.run("squeue", "-h", "-r", "-o", "%i|%T|%r|%N|%k", *filters).splitlines()
        return [tuple(line.split("|")) for line in lines]

    def clear(self):
        """No job waits or runs, and all nodes are there."""
        self.run("scancel", "-u", getpass.getuser(), check=False)
        for node in NODES:
            pid = self.pid(f"slurmd-{node}")
            if not pid or not pathlib.Path(f"/proc/{pid}").exists():
                self.start_node(node)
        wait_for(lambda: not self.jobs() and self.run("sinfo", "-h", "-p", "gpu", "-o", "%T").split() == ["idle"],
                 "an empty cluster")

    def stop(self):
        self.run("scancel", "--signal=KILL", "--full", "-u", getpass.getuser(), check=False)
        self.run("scancel", "-u", getpass.getuser(), check=False)
        names = [*(f"slurmd-{node}" for node in NODES), "slurmctld", "munged"]
        pids = [pid for name in names if (pid := self.pid(name))]
        for name in names:
            self.kill(name, signal.SIGTERM)
        wait_for(lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in pids), "the end of Slurm")
        shutil.rmtree(self.folder, ignore_errors=True)


def is_installed():
    return all(shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin") for program in PROGRAMS)


@pytest.fixture(scope="module", name="slurm")
def running_cluster():
    cluster = Cluster()
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def check_quiet(scene, slurm):
    """Nothing is left, by queue and by process."""
    wait_for(lambda: not slurm.jobs(), "an empty queue")
    scene.check_nothing_left()
