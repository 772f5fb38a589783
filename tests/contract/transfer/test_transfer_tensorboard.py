"""tune import of TensorBoard's event files as torch and TensorBoard write them, and tune export for the real TensorBoard."""

import importlib.util
import json
import math
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

import pytest
from transfer_support import client_of, tune, tune_json

ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def writer_class():
    """torch.utils.tensorboard.SummaryWriter."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    sys.path.insert(0, str(ROOT / "tests" / "contract" / "frameworks"))
    import absent_cuda

    with tempfile.TemporaryDirectory() as folder:
        absent_cuda.prepare(folder)
        from torch.utils.tensorboard import SummaryWriter
    return SummaryWriter


def runs_of(data):
    """{run name: (params, {key: [(step, value, time)]}, status)} by MLflow's client."""
    with client_of(data) as client:
        found = {}
        for experiment in client.search_experiments():
            for run in client.search_runs([experiment.experiment_id]):
                series = {key: sorted((m.step, m.value, m.timestamp)
                                      for m in client.get_metric_history(run.info.run_id, key)) for key in run.data.metrics}
                found[run.info.run_name] = (run.data.params, series, run.info.status)
        return found


def values(series):
    return [(step, value) for step, value, _ in series]


def crc(data):
    """Masked CRC-32C, bit by bit."""
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = (state >> 1) ^ (0x82F63B78 if state & 1 else 0)
    state ^= 0xFFFFFFFF
    return (((state >> 15) | (state << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def framed(record):
    length = struct.pack("<Q", len(record))
    return length + struct.pack("<I", crc(length)) + record + struct.pack("<I", crc(record))


def event(tag, value, step, time_s=1_700_000_000.5):
    from tensorboard.compat.proto import event_pb2, summary_pb2

    summary = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=tag, simple_value=value)])
    return event_pb2.Event(wall_time=time_s, step=step, summary=summary).SerializeToString()


def test_what_torch_writes(writer_class, tmp_path):
    import numpy as np

    logs = tmp_path / "logs"
    with writer_class(logs / "a") as writer:
        for step in range(50):
            writer.add_scalar("loss/train", 1 / (step + 1), step, walltime=1_700_000_000 + step)
            writer.add_scalar("new", step * 0.5, step, new_style=True)
            writer.add_scalar("double", step * 0.1, step, new_style=True, double_precision=True)
        writer.add_scalar("odd (tag)!", 1.0, 3)
        writer.add_scalar("nan", math.nan, 1)
        writer.add_histogram("weights", np.arange(10.0), 1)
        writer.add_text("note", "hello", 1)
    with writer_class(logs / "deep" / "b") as writer:
        writer.add_hparams({"lr": 0.001, "layers": 3, "name": "adam", "bias": True}, {"hparam/acc": 0.75}, run_name=".")
    report = tune_json("import", logs, "--data", tmp_path / "data")
    assert report["verified"], report
    runs = runs_of(tmp_path / "data")
    assert set(runs) == {"a", "deep/b"}
    params, series, status = runs["a"]
    assert status == "FINISHED"
    assert series["loss/train"] == [(step, float(np.float32(1 / (step + 1))), (1_700_000_000 + step) * 1000)
                                    for step in range(50)]
    assert values(series["new"]) == [(step, step * 0.5) for step in range(50)]
    assert values(series["double"]) == [(step, step * 0.1) for step in range(50)], "64 bits stay"
    assert values(series["odd _tag__"]) == [(3, 1.0)]
    assert math.isnan(series["nan"][0][1])
    assert set(series) == {"loss/train", "new", "double", "odd _tag__", "nan"}
    text = json.dumps(report)
    assert "histograms of TensorBoard" in text and "text of TensorBoard" in text
    params, series, status = runs["deep/b"]
    assert params == {"lr": "0.001", "layers": "3", "name": "adam", "bias": "1"}, "torch writes True as a number"
    assert values(series["hparam/acc"]) == [(0, 0.75)]


def test_what_tensorboards_own_writer_writes_and_a_second_import(tmp_path):
    from tensorboard.compat.proto import event_pb2
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(tmp_path / "logs"))
    for step in range(10):
        writer.add_event(event_pb2.Event.FromString(event("loss", 0.5 * step, step)))
    writer.flush()
    assert tune_json("import", tmp_path / "logs", "--data", tmp_path / "data")["verified"]
    assert values(runs_of(tmp_path / "data")["logs"][1]["loss"]) == [(step, 0.5 * step) for step in range(10)]
    for step in range(10, 13):
        writer.add_event(event_pb2.Event.FromString(event("loss", 0.5 * step, step)))
    writer.close()
    assert tune_json("import", tmp_path / "logs", "--data", tmp_path / "data")["verified"]
    runs = runs_of(tmp_path / "data")
    assert list(runs) == ["logs"], "the same run, with what is new"
    assert values(runs["logs"][1]["loss"]) == [(step, 0.5 * step) for step in range(13)]


def test_a_writer_that_began_anew_takes_back_what_it_writes_again(tmp_path):
    from tensorboard.compat.proto import event_pb2

    start = event_pb2.Event(wall_time=1, step=5, session_log=event_pb2.SessionLog(status=event_pb2.SessionLog.START))
    records = [event("x", float(step), step) for step in range(8)]
    records += [start.SerializeToString()] + [event("x", 10.0 + step, step) for step in range(5, 7)]
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "events.out.tfevents.1.h").write_bytes(b"".join(map(framed, records)))
    tune_json("import", tmp_path / "logs", "--data", tmp_path / "data")
    assert values(runs_of(tmp_path / "data")["logs"][1]["x"]) == [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 15), (6, 16)]


def test_damaged_files_keep_what_is_before_the_damage(tmp_path):
    good = [framed(event("x", float(step), step)) for step in range(3)]
    whole = b"".join(good)
    length = struct.pack("<Q", 1 << 62)
    nested = b"\x0a\x7f" * 40000  # messages that claim to hold more than there is
    cases = {
        "cut": (whole[:-1], 2, "ends within a record"),
        "cut_in_a_head": (whole + b"\x01\x02\x03", 3, "ends within a record"),
        "changed": (whole[:-6] + b"\x99" + whole[-5:], 2, "checksum"),
        "huge": (whole + length + struct.pack("<I", crc(length)) + b"x", 3, "ends within a record"),
        "head": (whole + b"\xff" * 40, 3, "checksum"),
        "no_event": (whole + framed(b"\xff\xff\xff\xff\xff\xff"), 3, "no event"),
        "nested": (whole + framed(b"\x2a\x80\xe2\x09" + nested), 3, "no event"),
    }
    for name, (content, _, _) in cases.items():
        (tmp_path / "logs" / name).mkdir(parents=True)
        (tmp_path / "logs" / name / "events.out.tfevents.1.h").write_bytes(content)
    report = tune_json("import", tmp_path / "logs", "--data", tmp_path / "data")
    runs = runs_of(tmp_path / "data")
    for name, (_, count, words) in cases.items():
        assert values(runs[name][1]["x"]) == [(step, float(step)) for step in range(count)], name
        assert any(f"'{name}/" in note and words in note for note in report["notes"]), (name, report["notes"])


def test_a_file_that_is_cut_anywhere_gives_its_whole_records(tmp_path):
    records = [framed(event("x", float(step), step)) for step in range(2)]
    whole = b"".join(records)
    for size in range(len(records[0]), len(whole) + 1):
        (tmp_path / "logs" / str(size)).mkdir(parents=True)
        (tmp_path / "logs" / str(size) / "events.out.tfevents.1.h").write_bytes(whole[:size])
    tune_json("import", tmp_path / "logs", "--data", tmp_path / "data")
    for name, (_, series, _) in runs_of(tmp_path / "data").items():
        assert values(series["x"]) == [(0, 0.0)] + ([(1, 1.0)] if int(name) == len(whole) else []), name


@pytest.fixture
def filled(tmp_path):
    """A data folder with a study-like parent, two children, and what they hold."""
    from mlflow.entities import Metric, Param

    with client_of(tmp_path / "data") as client:
        parent = client.create_run("0", run_name="study").info.run_id
        for number in range(2):
            run = client.create_run("0", run_name=f"trial {number}", tags={"mlflow.parentRunId": parent}).info.run_id
            points = [Metric("val/loss", 0.1 * step + number, 1_700_000_000_123 + step, step) for step in range(20)]
            client.log_batch(run, metrics=points + [Metric("nan", math.nan, 5, 0)],
                             params=[Param("lr", "0.1"), Param("text", "a b"), Param("float", "1.0"), Param("long", "7")])
            client.set_terminated(run, "FINISHED")
    return tmp_path / "data"


def test_export_and_import_give_the_same(filled, tmp_path):
    done = json.loads(tune("export", tmp_path / "tb", "--tensorboard", "study", "--data", filled, "--json").stdout)
    assert done["runs"] == 3 and done["points"] == 42
    assert tune_json("import", tmp_path / "tb", "--data", tmp_path / "again")["verified"]
    ours, again = runs_of(filled), runs_of(tmp_path / "again")
    for name in ("trial 0", "trial 1"):
        assert again[name][0] == ours[name][0]
        assert repr(again[name][1]) == repr(ours[name][1])
        assert again[name][2] == "FINISHED"
    refused = tune("export", tmp_path / "tb", "--tensorboard", "study", "--data", filled, code=1)
    assert "there already" in refused.stdout + refused.stderr
    absent = tune("export", tmp_path / "none", "--tensorboard", "nobody", "--data", filled, code=1)
    assert "nobody" in absent.stdout + absent.stderr


def test_the_real_tensorboard_shows_an_export(filled, tmp_path):
    tune("export", tmp_path / "tb", "--tensorboard", "study", "--data", filled)
    log = open(tmp_path / "log", "w")
    process = subprocess.Popen([sys.executable, "-m", "tensorboard.main", "--logdir", str(tmp_path / "tb"), "--port", "0",
                                "--host", "127.0.0.1", "--reload_interval", "1"], stdout=log, stderr=subprocess.STDOUT)
    try:
        url = None
        deadline = time.monotonic() + 120
        while url is None and time.monotonic() < deadline:
            assert process.poll() is None, (tmp_path / "log").read_text()
            found = re.search(r"http://127\.0\.0\.1:\d+/", (tmp_path / "log").read_text())
            url = found and found.group(0)
            time.sleep(0.2)
        points = []
        while len(points) < 20 and time.monotonic() < deadline:
            query = urllib.parse.urlencode({"run": "trial 1", "tag": "val/loss"})
            try:
                with urllib.request.urlopen(f"{url}data/plugin/scalars/scalars?{query}", timeout=30) as answer:
                    points = json.load(answer)
            except urllib.error.HTTPError:
                pass
            time.sleep(0.2)
        assert [point[1] for point in points] == list(range(20))
        assert points[3][2] == pytest.approx(1.3) and points[0][0] == pytest.approx(1_700_000_000.123)
    finally:
        process.terminate()
        process.wait(20)
        log.close()


def test_a_folder_of_mlflow_with_event_files_as_artifacts_is_still_mlflows(tmp_path):
    (tmp_path / "mlruns" / "0").mkdir(parents=True)
    (tmp_path / "mlruns" / "0" / "meta.yaml").write_text("experiment_id: '0'\nname: Default\nlifecycle_stage: active\n")
    (tmp_path / "mlruns" / "0" / "events.out.tfevents.1.h").write_bytes(framed(event("x", 1.0, 1)))
    report = tune_json("import", tmp_path / "mlruns", "--data", tmp_path / "data")
    assert report["verified"] and not runs_of(tmp_path / "data")
