"""Data sets on a real HDFS: Hadoop's own name nodes and data nodes, killed and stopped in the middle. What else is broken breaks on the
way to the name node: a proxy stands between."""

import json
import os
import random
import subprocess
import threading
import time
import urllib.parse

import pytest
from hdfs import Hdfs, Process
from servers import FaultProxy
from test_remote import check_same_samples_and_each_shard_once, environment, needs_arrow, probe, probe_command, shard_count, tune_data, write_set


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory):
    started = Hdfs(tmp_path_factory.mktemp("hdfs"))
    yield started
    started.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_set(tmp_path_factory.mktemp("local") / "set", count=100)


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """Enough that each data node is asked for some."""
    folder = write_set(tmp_path_factory.mktemp("shards") / "set", count=600, shard_bytes=10_000)
    assert shard_count(folder) > 30
    return folder


@pytest.fixture
def nodes(hdfs):
    """Both data nodes run before and after."""
    yield hdfs.data_nodes
    for number, node in list(hdfs.data_nodes.items()):
        node.resume()
        if node.process.poll() is not None:
            hdfs.start_data_node(number)


def clean(**settings):
    """This machine's environment without any cluster's."""
    kept = {name: value for name, value in environment().items() if not name.startswith(("HADOOP_", "TUNE_HDFS"))}
    return {**kept, "HADOOP_CONF_DIR": "/nonexistent", "HADOOP_USER_NAME": "reader", **settings}


def by_way_of(proxy, url):
    return url.replace(urllib.parse.urlsplit(url).netloc, urllib.parse.urlsplit(proxy.url).netloc)


def queries(proxy):
    return [dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(path).query)) for _, path, _ in proxy.requests]


@pytest.mark.parametrize("kind", ["webhdfs", "hdfs"])
def test_the_same_samples_as_from_here_and_each_shard_once(hdfs, folder, tmp_path, kind):
    url = hdfs.put_set("same", folder)
    env = clean()
    if kind == "hdfs":  # by Hadoop's own port, and its settings
        url, env = f"hdfs://127.0.0.1:{hdfs.rpc[0]}/data/same", clean(HADOOP_CONF_DIR=str(hdfs.conf))
    check_same_samples_and_each_shard_once(url, folder, tmp_path / "cache", env)


def test_the_first_batch_reads_ranges_over_several_blocks(hdfs, tmp_path):
    folder = write_set(tmp_path / "large", count=400, sample_bytes=20_000, shard_bytes=3_000_000)
    url = hdfs.put_set("large", folder)
    assert hdfs.operate("GETFILESTATUS", "/data/large/shard.00000.mds", "GET")["FileStatus"]["length"] > 2 << 20
    found = probe(url, tmp_path / "cache", clean(), batch=16, batches=1)
    assert found["ranged"] >= 1 and 0 < found["first_bytes"] <= 2 * 16 * 15_000
    assert probe(url, tmp_path / "cache", clean())["digest"] == probe(folder, "")["digest"]


@needs_arrow
def test_tables_are_listed_page_by_page_and_read(hdfs, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    folder = tmp_path / "table"
    for part in range(5):  # the name node lists three names at a time
        (folder / f"day={part}").mkdir(parents=True)
        for number in range(4):
            rows = range(part * 100 + number * 25, part * 100 + number * 25 + 25)
            table = pyarrow.table({"x": rows, "t": [f"t{i}" for i in rows]})
            pyarrow.parquet.write_table(table, folder / f"day={part}" / f"a +é%{number}.parquet")
    url = hdfs.put_set("table", folder)
    [there] = json.loads(tune_data("inspect", url, "--json", env=clean()))
    [here] = json.loads(tune_data("inspect", folder, "--json"))
    assert there["samples"] == 500 and {**there, "directory": ""} == {**here, "directory": ""}
    tune_data("convert", url, tmp_path / "there", env=clean())
    tune_data("convert", folder, tmp_path / "here")
    assert probe(tmp_path / "there", "")["digest"] == probe(tmp_path / "here", "")["digest"]
    one = f"{url}/day=1/{'a +é%2.parquet'}"
    assert json.loads(tune_data("inspect", one, "--json", env=clean()))[0]["samples"] == 25


@needs_arrow
def test_a_set_is_written_there_and_nothing_else_is_left(hdfs, tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n" + "".join(f"{i},x{i}\n" for i in range(200)))
    url = f"{hdfs.url}/data/written"
    env = clean(TMPDIR=str(tmp_path))
    tune_data("convert", tmp_path / "rows.csv", url, "--size-limit", "2kb", env=env)
    tune_data("convert", tmp_path / "rows.csv", tmp_path / "out", "--size-limit", "2kb")
    assert "200 samples good" in tune_data("verify", url, env=env)
    assert probe(url, tmp_path / "cache", env)["digest"] == probe(tmp_path / "out", "")["digest"]
    names = hdfs.names("/data/written")
    assert "index.json" in names and not [name for name in names if name.startswith(".")]
    assert "holds something already" in tune_data("convert", tmp_path / "rows.csv", url, env=env, expect=1)
    status = hdfs.operate("GETFILESTATUS", "/data/written/index.json", "GET")["FileStatus"]
    assert (status["owner"], status["replication"]) == ("reader", 2)


def test_what_is_missing_is_named(hdfs, folder, tmp_path):
    url = hdfs.put_set("holes", folder)
    error = probe(f"{url}/none", tmp_path / "none", clean(), expect=1)
    assert f"there is no data set: no '{url}/none/index.json'" in error and "attempts" not in error
    hdfs.operate("DELETE", "/data/holes/shard.00001.mds", "DELETE")
    error = probe(url, tmp_path / "hole", clean(), expect=1)
    assert f"'{url}/shard.00001.mds' does not exist" in error and "attempts" not in error


def test_a_user_without_permission_is_refused_at_once(hdfs, folder, tmp_path):
    url = hdfs.put_set("closed", folder)
    hdfs.operate("SETPERMISSION", "/data/closed", permission="750")
    proxy = FaultProxy(hdfs.address)
    error = probe(by_way_of(proxy, url), tmp_path / "cache", clean(HADOOP_USER_NAME="bob"), expect=1)
    assert "cannot be read: Permission denied: user=bob, access=EXECUTE" in error and "attempts" not in error
    assert len(proxy.requests) <= 2, "it was tried again"  # the kind of data is looked for, then its index
    assert {query["user.name"] for query in queries(proxy)} == {"bob"}
    digest = probe(folder, "")["digest"]
    assert probe(url, tmp_path / "cache", clean(HADOOP_USER_NAME="owner"))["digest"] == digest
    host = urllib.parse.urlsplit(url).netloc
    assert probe(url.replace(host, f"owner@{host}"), tmp_path / "named", clean())["digest"] == digest
    hdfs.operate("SETPERMISSION", "/data/closed", permission="755")
    error = tune_data("convert", folder, f"{url}/out", env=clean(TMPDIR=str(tmp_path)), expect=1)
    assert f"'{url}/out/" in error and "cannot be written: Permission denied: user=reader, access=WRITE" in error


def fail_node_in_the_middle(hdfs, url, folder, cache, fail, **numbers):
    """Reads the set by way of a proxy; `fail` is called when the third shard is asked for. What every sample held, and the
    proxy."""
    lock, seen = threading.Lock(), []

    def at_third_shard(_, path, __):
        with lock:
            if "shard.00003" in path and "op=OPEN" in path and not seen:
                seen.append(path)
                fail()

    proxy = FaultProxy(hdfs.address, at_third_shard)
    found = probe(by_way_of(proxy, url), cache, clean(), epochs=2, **numbers)
    assert seen and found["digest"] == probe(folder, "", epochs=2)["digest"]
    return proxy


def kill(node):
    node.process.kill()
    node.process.wait()


def test_a_data_node_that_is_killed_is_left_out(hdfs, shards, nodes, tmp_path):
    url = hdfs.put_set("killed", shards)
    proxy = fail_node_in_the_middle(hdfs, url, shards, tmp_path / "cache", lambda: kill(nodes[1]))
    assert [query for query in queries(proxy) if "excludedatanodes" in query]


@pytest.mark.skipif(not os.environ.get("TUNE_HDFS_LONG"), reason="a minute and a half of time-outs: TUNE_HDFS_LONG=1 runs it")
def test_a_data_node_that_stalls_is_left_out_after_the_time_out(hdfs, shards, nodes, tmp_path):
    url = hdfs.put_set("stalled", shards)
    proxy = fail_node_in_the_middle(hdfs, url, shards, tmp_path / "cache", nodes[2].stop, timeout=6)
    assert [query for query in queries(proxy) if "excludedatanodes" in query]


def test_without_any_data_node_the_error_names_it_and_reading_goes_on_when_it_is_back(hdfs, folder, nodes, tmp_path):
    url = hdfs.put_set("gone", folder)
    for node in nodes.values():
        kill(node)
    error = probe(url, tmp_path / "cache", clean(), expect=1, retry=1)
    assert f"'{url}/index.json' cannot be read: Couldn't connect to server (asked 127.0.0." in error and "2 attempts" in error
    command = probe_command(url, tmp_path / "cache", retry=30)
    with subprocess.Popen(command, env=clean(), stdout=subprocess.PIPE, text=True) as reader:
        hdfs.start_data_node(2)
        said, _ = reader.communicate(timeout=120)
    assert json.loads(said)["digest"] == probe(folder, "")["digest"]


@pytest.mark.parametrize("fault", ["503", "cut", "short"])
def test_faults_that_pass_cost_time_and_nothing_else(hdfs, folder, tmp_path, fault):
    url = hdfs.put_set("faulty", folder)
    dice, lock = random.Random(3), threading.Lock()

    def broken(*_):
        with lock:
            return fault if dice.random() < 0.1 else None

    proxy = FaultProxy(hdfs.address, broken)
    found = probe(by_way_of(proxy, url), tmp_path / "cache", clean(), epochs=2, retry=30)
    expected = probe(folder, "", epochs=2)
    assert (found["samples"], found["digest"]) == (expected["samples"], expected["digest"])


@pytest.mark.parametrize("fault", ["503", "slow"])
def test_a_fault_that_stays_is_named_with_the_number_of_attempts(hdfs, folder, tmp_path, fault):
    url = hdfs.put_set(f"broken-{fault}", folder)
    proxy = FaultProxy(hdfs.address, lambda _, path, __: fault if "shard.00003" in path else None)
    url = by_way_of(proxy, url)
    error = probe(url, tmp_path / "cache", clean(), expect=1, retry=1, timeout=1)
    proxy.release()
    assert f"'{url}/shard.00003.mds' cannot be read" in error and "2 attempts" in error
    assert ("503" if fault == "503" else "no byte came for 1 s") in error


@needs_arrow
def test_a_table_that_is_replaced_while_it_is_read_is_refused(hdfs, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    (tmp_path / "table").mkdir()
    pyarrow.parquet.write_table(pyarrow.table({"x": range(100)}), tmp_path / "table" / "a.parquet")
    data = (tmp_path / "table" / "a.parquet").read_bytes()
    url = hdfs.put_set("changing", tmp_path / "table")
    proxy = FaultProxy(hdfs.address, lambda _, path, __: hdfs.put("/data/changing/a.parquet", data) if "op=OPEN" in path else None)
    error = tune_data("inspect", by_way_of(proxy, url), env=clean(), expect=1)
    assert "a.parquet' was changed while it was read" in error, "of other times, however equal"


def test_a_token_is_sent_in_place_of_a_name(hdfs, folder, tmp_path):
    """As Hadoop's own tool fetches it; without Kerberos name nodes take every token, so what is sent counts."""
    url = hdfs.put_set("token", folder)
    file = tmp_path / "tokens"
    Process(hdfs, "org.apache.hadoop.hdfs.tools.DelegationTokenFetcher", "--webservice", hdfs.url, str(file)).process.communicate()
    proxy = FaultProxy(hdfs.address)
    env = clean(HADOOP_TOKEN_FILE_LOCATION=str(file))
    assert probe(by_way_of(proxy, url), tmp_path / "cache", env)["digest"] == probe(folder, "")["digest"]
    sent = queries(proxy)
    [token] = {query["delegation"] for query in sent}
    assert not [query for query in sent if "user.name" in query]
    renewed = hdfs.operate("RENEWDELEGATIONTOKEN", "/", token=token)
    assert renewed["long"] > time.time() * 1000, "the name node knows it"
    direct = clean(HADOOP_TOKEN=token)
    assert probe(by_way_of(proxy, url), tmp_path / "direct", direct)["digest"] == probe(folder, "")["digest"]


def test_a_port_of_another_protocol_is_told_from_a_missing_file(hdfs, tmp_path):
    error = probe(f"webhdfs://127.0.0.1:{hdfs.rpc[0]}/data/x", tmp_path / "cache", clean(), expect=1)
    assert f"WebHDFS does not answer at 127.0.0.1:{hdfs.rpc[0]}" in error and "9870" in error
    error = probe("hdfs:///data/x", tmp_path / "cache", clean(), expect=1)
    assert "'hdfs:///data/x' names no name node" in error
    error = probe("hdfs://x/data", tmp_path / "cache", clean(TUNE_HDFS_DRIVER="other"), expect=1)
    assert "TUNE_HDFS_DRIVER is 'other'" in error


def test_of_two_name_nodes_the_active_one_is_asked(folder, tmp_path):
    """The first of the two is the standby; then it is gone."""
    pair = Hdfs(tmp_path / "hdfs", data_nodes=1, name_nodes=2)
    try:
        pair.put_set("same", folder)
        digest = probe(folder, "")["digest"]
        env = clean(HADOOP_CONF_DIR=str(pair.conf))
        assert probe("hdfs://lake/data/same", tmp_path / "cache", env)["digest"] == digest
        assert probe("hdfs:///data/same", tmp_path / "default", env)["digest"] == digest
        error = probe(f"{pair.url}/data/same", tmp_path / "standby", clean(), expect=1, retry=1)
        assert "StandbyException of HDFS" in error and "2 attempts" in error
        kill(pair.name_nodes[0])
        assert probe("hdfs://lake/data/same", tmp_path / "alone", env)["digest"] == digest
    finally:
        pair.close()
