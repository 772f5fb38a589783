"""Some hundred simulated agents on one server that is killed meanwhile: the small version of
tests/bench/tuner/swarm_bench.py, without its timings."""

import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(os.environ.get("TUNE_BIN_DIR", ROOT / "build" / "release" / "bin")).absolute()
sys.path.insert(0, str(ROOT / "tests" / "bench" / "tuner"))

import pytest  # noqa: E402
import swarm_bench  # noqa: E402


@pytest.mark.parametrize("with_tls", [False, True])
def test_no_attempt_is_lost_or_doubled_when_the_server_is_killed(tmp_path, with_tls):
    said, wrong = swarm_bench.measure(BIN, tmp_path, agents=300, working=30, kills=2, trials=150, trial_ms=1000,
                                      heartbeat_ms=1000, deadline_s=300, with_tls=with_tls)
    assert not wrong
    assert said["kills"] == 2 and said["returns"] >= 2
    assert said["heartbeats"] > 0
