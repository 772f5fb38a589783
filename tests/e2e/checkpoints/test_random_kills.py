"""kill -9 at random of everything that a trial depends on: its process, one of its ranks, its pool, the supervisor of either, an
agent, the server, alone and two at once, while studies of single processes, of a pool, of two ranks and of two machines
train at the same time. Each trial ends once, each study has exactly its budget, and the loss curves are, to the last bit,
those of a training that nobody disturbed. TUNE_KILL_ROUNDS sets how many blows fall (default 12); studies begin anew
until all have."""

import contextlib
import os
import pathlib
import random
import signal
import time

import pytest

from agent_support import TUNE, Farm, Process, lives, wait_for
from study_support import OK, tune
from trainer.ranks_support import train_ranks
from trainer_support import TRAINER, train, write_digits

ROUNDS = int(os.environ.get("TUNE_KILL_ROUNDS", 12))
SEED = int(os.environ.get("TUNE_KILL_SEED", 3))
AGENTS = ("a", "b")
KINDS = {"process": {}, "pool": {"pool": 3}, "ranks": {"nproc": 2}, "machines": {"nnodes": 2}}
TRIALS = 3
CURVES = ("train_loss_step", "train_loss", "val_loss", "val_accuracy")
FIXED = {"epochs": 8, "width": 16, "dropout": 0.2, "batch_size": 60, "checkpoint_every": 5, "log_every": 2, "seed": 3,
         "device": "cpu", "threads": 1}


def start_agent(farm, name):
    farm.agents[name] = Process([TUNE, "agent", "--server", farm.url, "--state", str(farm.folder / name), "--slots", "4",
                                 "--cpus", "2", "--no-gpus"], farm.folder / (name + ".log"))


def create(farm, kind, turn):
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in FIXED.items()]
    command = [str(TRAINER), "pool" if kind == "pool" else "train", f"--data={farm.folder}/digits", *flags]
    farm.create(f"{kind}-{turn}", command if kind == "pool" else command + ["{args}"], trials=TRIALS,
                space={"lr": {"float": [1e-4, 1e-2], "log": True}}, metric={"name": "val_loss", "goal": "minimize"},
                resources=KINDS[kind], budget={"trials": TRIALS, "parallel": TRIALS},
                # Of a rank that is killed the whole attempt fails; that is no fault of the trial's here.
                retry={"max": 1000, "on": ["failed", "oom"]}, stop_after_failures=0)


def trainers(farm, verb):
    """Processes that train, by what they were started as."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if words[:2] == [str(TRAINER).encode(), verb] and f"--data={farm.folder}/digits".encode() in words:
                found.append(int(entry.name))
    return found


def kill_one_of(chance, pids):
    with contextlib.suppress(OSError, IndexError):  # what is struck may be gone
        os.kill(chance.choice(sorted(pids)), signal.SIGKILL)
        return True
    return False


def strike(farm, chance, victim):
    """Kills it. False: there was none."""
    if victim == "server":
        farm.server.kill()
        farm.start_server()
    elif victim == "agent":
        name = chance.choice(AGENTS)
        farm.agents[name].kill()
        start_agent(farm, name)
    elif victim in ("supervisor", "supervisor of a pool"):
        of = "attempts" if victim == "supervisor" else "pools"
        return kill_one_of(chance, [pid for name in AGENTS for pid in farm.supervisors(name, of=of)])
    else:
        return kill_one_of(chance, trainers(farm, b"pool" if victim == "pool" else b"train"))
    return True


VICTIMS = ["trainer", "pool", "supervisor", "supervisor of a pool", "agent", "server"]


class Studies:
    """One of each kind at any time; what has ended is looked at and another one begun."""

    def __init__(self, farm):
        self.farm = farm
        self.turn = dict.fromkeys(KINDS, 0)
        self.attempts = 0
        self.trials = 0
        self.ends = {}  # of each trial as it was first seen
        self.expected = {}
        for kind in KINDS:
            create(farm, kind, 0)

    def look(self, begins_anew):
        """False: nothing runs any more."""
        for kind in list(self.turn):
            name = f"{kind}-{self.turn[kind]}"
            self.note_ends(name)
            if self.farm.study(name)["state"] != "completed":
                continue
            self.check(name, kind)
            if begins_anew:
                self.turn[kind] += 1
                create(self.farm, kind, self.turn[kind])
            else:
                del self.turn[kind]
        return bool(self.turn)

    def undisturbed(self, kind, lr):
        """Of as many ranks as the kind has: sums of several have an order of their own."""
        size = 2 if kind in ("ranks", "machines") else 1
        if (size, lr) not in self.expected:
            parameters = dict(data=self.farm.folder / "digits", lr=lr, **FIXED)
            if size == 1:
                end = train(**parameters)
            else:
                end = train_ranks(2, **parameters)[0]
            assert end.code == 0, end.stderr
            self.expected[size, lr] = {key: sorted((line["step"], line[key]) for line in end.lines if key in line)
                                       for key in CURVES}
        return self.expected[size, lr]

    def check(self, name, kind):
        study = self.farm.study(name)
        assert study["trials"] == study["counts"]["complete"] == TRIALS, study
        trials = self.farm.wait_for_end(name)
        self.note_ends(name)
        assert [trial["number"] for trial in trials] == list(range(TRIALS))
        for trial in trials:
            expected = self.undisturbed(kind, trial["params"]["lr"])
            for key in CURVES:
                # What an attempt does again it logs again: the same.
                curve = sorted(set(self.farm.history(trial["run_id"], key)))
                assert curve == expected[key], (name, trial["number"], trial["attempt"], key)
            assert trial["value"] == min(value for _, value in expected["val_loss"])
            assert self.farm.run(trial["run_id"])["info"]["status"] == "FINISHED"
            self.attempts += trial["attempt"]
            self.trials += 1
        # The journal holds each end: it gives the same study again, or replay says what does not fit.
        done = tune("replay", name, "--server", self.farm.url, cwd=self.farm.folder)
        assert done.returncode == OK, done.stdout + done.stderr

    def note_ends(self, name):
        """A trial ends once: what ended stays as it is, with the attempt that ended it."""
        for trial in self.farm.trials(name):
            if trial["state"] == "complete":
                end = (trial["attempt"], trial["value"])
                assert self.ends.setdefault(trial["run_id"], end) == end, trial
            else:
                assert trial["run_id"] not in self.ends and trial["state"] in ("queued", "running"), trial


@pytest.mark.timeout(280 + 5 * ROUNDS)
def test_random_kills(tmp_path):
    chance = random.Random(SEED)
    write_digits(tmp_path / "digits")
    with Farm(tmp_path, lease_ttl="4s") as farm:
        for name in AGENTS:
            start_agent(farm, name)
        studies = Studies(farm)
        struck = dict.fromkeys(VICTIMS, 0)
        rounds = 0
        while rounds < ROUNDS:
            time.sleep(chance.uniform(0.1, 1.5))  # the moment of the blow
            hits = [victim for victim in chance.sample(VICTIMS, chance.choice([1, 1, 2])) if strike(farm, chance, victim)]
            for victim in hits:
                struck[victim] += 1
            rounds += bool(hits)
            studies.look(begins_anew=True)
        wait_for(lambda: not studies.look(begins_anew=False), "the end of all studies")
        print(f"{rounds} rounds: {struck}; {studies.trials} trials ended, of {studies.attempts} attempts")
        wait_for(lambda: not trainers(farm, b"train"), "the end of all processes")
        wait_for(lambda: all(agent["free_slots"] == agent["slots"] and not agent["leases"]
                             for agent in farm.get("tune/queue")["agents"]), "free places")
        for name in AGENTS:
            wait_for(lambda name=name: not list((farm.state_dir(name) / "attempts").iterdir()), "an empty folder")
