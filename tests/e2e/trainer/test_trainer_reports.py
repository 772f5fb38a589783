"""What a training run says of itself: where its time went, event files for TensorBoard, a trace of steps."""

import json
import os
import signal
import struct
import subprocess

import pytest
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto import event_pb2
from trainer_support import BAD_CONFIG, DONE, clean_environment, command, parse_lines, train, write_digits

STATS = {"samples_per_second", "loader_wait_share", "loader_fetch_wait_s", "loader_decode_wait_s", "loader_read_s",
           "loader_decompress_s", "loader_transform_s", "loader_fetched_mb"}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_digits(tmp_path_factory.mktemp("data") / "digits")


def events(folder):
    """[(tag, step, value)] of all files, as TensorBoard's own reader finds them."""
    found = []
    for file in sorted(folder.iterdir()):
        for record in RawEventFileLoader(str(file)).Load():
            event = event_pb2.Event.FromString(record)
            for value in event.summary.value:
                found.append((value.tag, event.step, value.simple_value))
    return found


def points(lines):
    return [(name, line["step"], struct.unpack("<f", struct.pack("<f", value))[0]) for line in lines for name, value in line.items() if name != "step"]


def test_a_trial_logs_where_its_time_went_and_says_the_bottleneck(data):
    run = train(data=data, epochs=2, environment={"MLFLOW_RUN_ID": "r"})
    assert run.code == DONE, run.stderr
    (stats,) = [line for line in run.lines if "samples_per_second" in line]
    assert set(stats) == STATS | {"step"}
    assert stats["step"] == 90 and stats["samples_per_second"] > 0 and 0 <= stats["loader_wait_share"] <= 1
    assert run.stderr.count("The loader keeps up") + run.stderr.count("holds the reader up") == 1
    often = train(data=data, epochs=2, stats_every=1e-9)
    assert len([line for line in often.lines if "samples_per_second" in line]) >= 90
    alone = train(data=data, epochs=1)
    assert not any("samples_per_second" in line for line in alone.lines)
    assert run.epochs() == [line for line in often.lines if "train_loss" in line], "what is learnt stays the same"


def test_event_files_hold_what_the_lines_say(data, tmp_path):
    run = train(data=data, epochs=2, tensorboard=tmp_path / "tb", log_every=10)
    assert run.code == DONE, run.stderr
    assert sorted(events(tmp_path / "tb")) == sorted(points(run.lines))


def test_a_killed_run_goes_on_without_a_point_twice(data, tmp_path):
    options = dict(data=data, epochs=4, log_every=5, checkpoint_every=7)
    whole = train(**options, tensorboard=tmp_path / "whole", checkpoint_dir=tmp_path / "a")
    folder = tmp_path / "tb"
    for kill_after in (4, 17, 30):
        process = subprocess.Popen(command(**options, tensorboard=folder, checkpoint_dir=tmp_path / "b"),
                                   env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for _ in range(kill_after):
            process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
        process.stdout.read()
        process.wait()
        # A writer that is killed within a record.
        last = max(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)
        last.write_bytes(last.read_bytes()[:-3])
    done = train(**options, tensorboard=folder, checkpoint_dir=tmp_path / "b")
    assert done.code == DONE, done.stderr
    found = events_up_to_damage(folder)
    assert len(found) == len({(tag, step) for tag, step, _ in found}), "no point twice"
    assert set(found) <= set(points(whole.lines))
    assert len(set(points(whole.lines)) - set(found)) <= 3 * 6, "at most the events that were cut"


def events_up_to_damage(folder):
    """As TensorBoard shows them: where a process began anew, since none before it had stored a checkpoint, what was is gone."""
    found = []
    for file in sorted(folder.iterdir()):
        try:
            for record in RawEventFileLoader(str(file)).Load():
                event = event_pb2.Event.FromString(record)
                if event.session_log.status == event_pb2.SessionLog.START:
                    found = [point for point in found if point[1] < event.step]
                found += [(value.tag, event.step, value.simple_value) for value in event.summary.value]
        except Exception as error:  # TensorBoard's own error for a record that is cut
            assert "truncated" in str(error).lower() or "DataLoss" in type(error).__name__, error
    return found


def test_a_trace_of_the_steps_that_were_asked_for(data, tmp_path):
    run = train(data=data, epochs=1, profile="10..20", checkpoint_dir=tmp_path / "run", checkpoint_every=15)
    assert run.code == DONE, run.stderr
    trace = json.loads((tmp_path / "run" / "profile" / "trace_10_20.json").read_text())
    spans = [event["name"] for event in trace["traceEvents"] if event.get("cat") == "user_annotation"]
    for name in ("data wait", "step", "forward", "backward", "update"):
        assert spans.count(name) == 11, (name, spans.count(name))
    assert spans.count("checkpoint") == 1
    assert any(event["name"].startswith("aten::") for event in trace["traceEvents"])
    plain = train(data=data, epochs=1)
    assert plain.lines == run.lines, "what is traced learns the same"
    left = train(data=data, epochs=1, profile="3", environment={"TUNE_ARTIFACT_DIR": str(tmp_path / "left")})
    assert left.code == DONE and (tmp_path / "left" / "profile" / "trace_3_3.json").exists()


@pytest.mark.parametrize("steps", ["x", "0..3", "5..2", "1..5000", "3.."])
def test_steps_that_are_none(data, steps):
    run = train(data=data, epochs=1, profile=steps)
    assert run.code == BAD_CONFIG and "FIRST..LAST" in run.stderr


def test_a_folder_that_cannot_be_written_is_said(data, tmp_path):
    (tmp_path / "file").write_text("")
    run = train(data=data, epochs=1, tensorboard=tmp_path / "file" / "tb")
    assert run.code != DONE and "cannot make the folder" in run.stderr
    assert parse_lines(run.stdout) == []
