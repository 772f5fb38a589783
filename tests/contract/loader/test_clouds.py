"""Data sets on Google's storage and Azure's, as their emulators serve them, by the settings that each cloud's own tools take. What is broken
breaks on the way: a proxy stands between, and Azurite looks at every signature."""

import json
import pathlib
import random
import sys
import threading

import pytest
from servers import FaultProxy
from test_remote import environment, needs_arrow, probe, shard_count, tune_data, write_set

sys.path.insert(0, str(pathlib.Path(__file__).with_name("clouds")))
import emulators  # noqa: E402

pytestmark = needs_arrow


@pytest.fixture(scope="module", params=["google", "azure"])
def cloud(request):
    started = {"google": emulators.Google, "azure": emulators.Azure}[request.param]()
    yield started
    started.close()


@pytest.fixture(scope="module")
def azure():
    started = emulators.Azure()
    yield started
    started.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_set(tmp_path_factory.mktemp("local") / "set", count=100)


def clean(**settings):
    """This machine's environment without accounts of any cloud."""
    kept = environment()
    return {name: value for name, value in kept.items() if not name.startswith(("AZURE_", "GOOGLE_", "STORAGE_"))} | settings


def test_the_same_samples_as_from_here_and_each_shard_once(cloud, folder, tmp_path):
    url = cloud.put_set("same", folder)
    env = clean(**cloud.environment())
    expected = probe(folder, "", epochs=3)
    first = probe(url, tmp_path / "cache", env, epochs=3)
    assert (first["samples"], first["digest"]) == (expected["samples"], expected["digest"])
    while probe(url, tmp_path / "cache", env)["shards"]:
        pass  # a short run may end before every shard has come
    assert len(list((tmp_path / "cache").glob("shard.*"))) == shard_count(folder)
    again = probe(url, tmp_path / "cache", env, epochs=3)
    assert (again["bytes"], again["digest"]) == (0, expected["digest"])


def test_the_first_batch_reads_ranges(cloud, tmp_path):
    folder = write_set(tmp_path / "large", count=400, sample_bytes=20_000, shard_bytes=2_000_000)
    url = cloud.put_set("large", folder)
    found = probe(url, tmp_path / "cache", clean(**cloud.environment()), batch=16, batches=1)
    assert found["ranged"] >= 1 and 0 < found["first_bytes"] <= 2 * 16 * 15_000


def test_tables_are_listed_and_read(cloud, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    folder = tmp_path / "table"
    for part in range(2):
        (folder / f"day={part}").mkdir(parents=True)
        rows = range(part * 100, part * 100 + 100)
        pyarrow.parquet.write_table(pyarrow.table({"x": rows, "t": [f"t{i}" for i in rows]}), folder / f"day={part}" / "a.parquet")
    url = cloud.put_set("table", folder)
    env = clean(**cloud.environment())
    [there] = json.loads(tune_data("inspect", url, "--json", env=env))
    [here] = json.loads(tune_data("inspect", folder, "--json"))
    assert there["samples"] == 200 and {**there, "directory": ""} == {**here, "directory": ""}
    tune_data("convert", url, tmp_path / "there", env=env)
    tune_data("convert", folder, tmp_path / "here")
    assert probe(tmp_path / "there", "")["digest"] == probe(tmp_path / "here", "")["digest"]


def test_a_set_is_written_there(cloud, tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n" + "".join(f"{i},x{i}\n" for i in range(200)))
    env = clean(**cloud.environment())
    url = f"{cloud.put_set('written', tmp_path)}/out"
    tune_data("convert", tmp_path / "rows.csv", url, "--size-limit", "2kb", env=env)
    tune_data("convert", tmp_path / "rows.csv", tmp_path / "out", "--size-limit", "2kb")
    assert "200 samples good" in tune_data("verify", url, env=env)
    assert probe(url, tmp_path / "cache", env)["digest"] == probe(tmp_path / "out", "")["digest"]


def test_what_is_missing_is_named(cloud, folder, tmp_path):
    url = cloud.put_set("holes", folder)
    env = clean(**cloud.environment())
    error = probe(f"{url}/none", tmp_path / "none", env, expect=1)
    assert f"there is no data set: no '{url}/none/index.json'" in error
    bucket = url.replace("//data/", "//nobody/")
    error = probe(bucket, tmp_path / "bucket", env, expect=1)
    assert f"there is no data set: no '{bucket}/index.json'" in error
    assert "attempts" not in error


@pytest.mark.parametrize("fault", ["503", "cut", "short"])
def test_faults_that_pass_cost_time_and_nothing_else(cloud, folder, tmp_path, fault):
    url = cloud.put_set("faulty", folder)
    dice, lock = random.Random(3), threading.Lock()

    def broken(*_):
        with lock:
            return fault if dice.random() < 0.1 else None

    proxy = FaultProxy(cloud.url, broken)
    found = probe(url, tmp_path / "cache", clean(**cloud.environment(proxy.url)), epochs=2, retry=30)
    expected = probe(folder, "", epochs=2)
    assert (found["samples"], found["digest"]) == (expected["samples"], expected["digest"])


def test_a_fault_that_stays_is_named_with_the_number_of_attempts(cloud, folder, tmp_path):
    url = cloud.put_set("broken", folder)
    proxy = FaultProxy(cloud.url, lambda _, path, __: "503" if "shard" in path else None)
    error = probe(url, tmp_path / "cache", clean(**cloud.environment(proxy.url)), expect=1, retry=1)
    assert "shard.0" in error and "2 attempts" in error and "503" in error


def test_refused_credentials_are_named_at_once(cloud, folder, tmp_path):
    """Google's emulator takes everybody, so that the refusal comes from the proxy; Azurite's is its own."""
    url = cloud.put_set("closed", folder)
    proxy = FaultProxy(cloud.url, lambda *_: "401" if isinstance(cloud, emulators.Google) else None)
    wrong = {"key": "d3Jvbmc="} if isinstance(cloud, emulators.Azure) else {}
    error = probe(url, tmp_path / "cache", clean(**cloud.environment(proxy.url, **wrong)), expect=1, retry=5)
    assert f"{url}/index.json' cannot be read" in error and "attempts" not in error
    assert len(proxy.requests) <= 5  # of one attempt


def test_azures_other_ways_to_name_an_account(azure, folder, tmp_path):
    azure.put_set("named", folder)
    digest = probe(folder, "")["digest"]
    place = f"BlobEndpoint={azure.url}/{emulators.ACCOUNT}"
    granted = azure.signature()
    signature = f"AccountName={emulators.ACCOUNT};SharedAccessSignature={granted};{place}"
    assert probe("az://data/named", tmp_path / "sas", clean(AZURE_STORAGE_CONNECTION_STRING=signature))["digest"] == digest
    url = f"abfss://data@{emulators.ACCOUNT}.dfs.core.windows.net/named"
    assert probe(url, tmp_path / "abfss", clean(**azure.environment()))["digest"] == digest
    assert probe("azure://data/named", tmp_path / "azure", clean(**azure.environment()))["digest"] == digest
    wrong = signature.replace(granted, azure.signature("d3Jvbmc="))
    error = probe("az://data/named", tmp_path / "wrong", clean(AZURE_STORAGE_CONNECTION_STRING=wrong), expect=1)
    assert "az://data/named/index.json' cannot be read" in error
    assert "AZURE_STORAGE_CONNECTION_STRING" in probe("az://data/named", tmp_path / "none", clean(), expect=1)
    odd = f"AccountName=a;AccountKey=d3Jvbmc=;BlobEndpoint={azure.url}/other"
    assert "is neither of the account 'a'" in probe("az://data/named", tmp_path / "odd", clean(AZURE_STORAGE_CONNECTION_STRING=odd), expect=1)
