"""The wall clock of server, agent and trials jumps an hour ahead and two hours back in the middle of trials: no lease and no
time-out is counted by it, nothing runs again, and nothing that is shown runs backwards."""

import mmap
import struct
import subprocess

import pytest

from agent_support import PYTHON, TRIAL, Farm, wait_for
from trainer_support import TRAINER, train, write_digits

HOUR_S = 3600

# CLOCK_REALTIME with what the file CLOCK_FILE says added, in seconds; it changes while programs run.
SHIM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile long long* offset;
__attribute__((constructor)) static void begin(void) {
    const char* path = getenv("CLOCK_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void* at = file < 0 ? MAP_FAILED : mmap(0, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
    if (at != MAP_FAILED) offset = at;
}
int clock_gettime(clockid_t id, struct timespec* time) {
    int status = syscall(SYS_clock_gettime, id, time);
    if (status == 0 && offset && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) time->tv_sec += *offset;
    return status;
}
int gettimeofday(struct timeval* restrict time, void* restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t* out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
"""


@pytest.fixture
def jump(tmp_path, monkeypatch):
    """A function that sets the clocks of all programs that are started from now on so many seconds off."""
    source, library, place = tmp_path / "clock.c", tmp_path / "clock.so", tmp_path / "offset"
    source.write_text(SHIM)
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", library, source], check=True, timeout=60)
    place.write_bytes(bytes(8))
    monkeypatch.setenv("LD_PRELOAD", str(library))
    monkeypatch.setenv("CLOCK_FILE", str(place))
    with open(place, "r+b") as file, mmap.mmap(file.fileno(), 8) as shared:
        def set_offset(seconds):
            shared[:] = struct.pack("<q", seconds)

        yield set_offset
        set_offset(0)


def seen_time(environment_command="date +%s"):
    return int(subprocess.run(["sh", "-c", environment_command], capture_output=True, text=True, check=True).stdout)


def test_the_clocks_do_jump(jump):
    before = seen_time()
    jump(HOUR_S)
    assert HOUR_S - 5 < seen_time() - before < HOUR_S + 60


def test_trials_in_the_middle(tmp_path, jump):
    with Farm(tmp_path, lease_ttl="3s") as farm:
        farm.start_agent(slots=2)
        farm.create("s", [PYTHON, "-c", TRIAL], trials=4, env=farm.gate(0), timeout="30m",
                    retry={"max": 0, "on": ["failed"]})
        wait_for(lambda: [len(farm.history(trial["run_id"])) for trial in farm.trials("s")[:2]] == [5, 5], "five steps")
        first = farm.trials("s")[0]["run_id"]

        def load_steps():
            return [step for step, _ in farm.history(first, "system/trial_memory_usage_megabytes")]

        for offset, samples in ((HOUR_S, 1), (-HOUR_S, 2)):
            jump(offset)
            wait_for(lambda samples=samples: len(load_steps()) >= samples, "a sample of the machine's load")
        farm.gate(None)
        trials = farm.wait_for_end("s")
        assert [trial["state"] for trial in trials] == ["complete"] * 4
        assert [trial["attempt"] for trial in trials] == [1] * 4, "no lease ran out"
        for trial in trials:
            assert [step for step, _ in farm.history(trial["run_id"])] == list(range(12))
            assert 0 <= trial["ran_ms"] < HOUR_S * 1000 / 2, "how long it ran is no matter of the wall clock"
        steps = load_steps()
        assert steps == sorted(set(steps)) and steps[0] >= 0 and steps[-1] < 10, steps


def test_a_trainer_in_the_middle(tmp_path, jump):
    data = write_digits(tmp_path / "digits")
    parameters = dict(data=data, epochs=40, batch_size=32, log_every=20, seed=1, threads=1, lr=0.01)
    whole = train(**parameters)
    with Farm(tmp_path, lease_ttl="3s") as farm:
        farm.start_agent(slots=1)
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in parameters.items()]
        farm.create("s", [str(TRAINER), "train", *flags, "--figures-every=0.05"], trials=1,
                    metric={"name": "val_loss", "goal": "minimize"})
        for offset, epochs in ((HOUR_S, 3), (-HOUR_S, 8), (0, 14)):
            wait_for(lambda epochs=epochs: farm.trials("s") and
                     len(farm.history(farm.trials("s")[0]["run_id"], "val_loss")) >= epochs, f"{epochs} epochs")
            jump(offset)
        trial, = farm.wait_for_end("s")
        assert (trial["state"], trial["attempt"]) == ("complete", 1)
        for key in ("val_loss", "train_loss_step"):
            assert farm.history(trial["run_id"], key) == [(line["step"], line[key]) for line in whole.lines if key in line]
        rates = [value for _, value in farm.history(trial["run_id"], "samples_per_second")]
        assert rates and min(rates) > 0 and max(rates) < 1e8
