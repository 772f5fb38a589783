"""Data sets on Google's storage and Azure's, as their emulators serve them, by the settings that each cloud's own tools take. What is broken
breaks on the way: a proxy stands between, and Azurite looks at every signature."""

import base64
import collections
import json
import pathlib
import random
import sys
import threading
import time
import urllib.parse

import pytest
from servers import FaultProxy, FileServer
from test_remote import check_same_samples_and_each_shard_once, environment, needs_arrow, probe, tune_data, write_set

sys.path.insert(0, str(pathlib.Path(__file__).with_name("clouds")))
import emulators  # noqa: E402

pytestmark = needs_arrow


@pytest.fixture(scope="module", params=["google", "azure"])
def cloud(request):
    started = {"google": emulators.Google, "azure": emulators.Azure}[request.param]()
    yield started
    started.close()


@pytest.fixture(scope="module")
def google():
    started = emulators.Google()
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
    check_same_samples_and_each_shard_once(url, folder, tmp_path / "cache", env)


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


@pytest.mark.parametrize("fault", ["503", "cut", "stall", "slow"])
def test_a_fault_that_stays_is_named_with_the_number_of_attempts(cloud, folder, tmp_path, fault):
    url = cloud.put_set(f"broken-{fault}", folder)
    proxy = FaultProxy(cloud.url, lambda _, path, __: fault if "shard.00003" in path else None)
    error = probe(url, tmp_path / "cache", clean(**cloud.environment(proxy.url)), expect=1, retry=1, timeout=1)
    proxy.release()
    assert f"'{url}/shard.00003.mds' cannot be read" in error and "2 attempts" in error
    if fault == "503":
        assert "503" in error
    if fault in ("stall", "slow"):
        assert "no byte came for 1 s" in error
    asked = collections.Counter(headers.get("Range") for _, path, headers in proxy.requests if "shard.00003" in path)
    # libcurl asks once more where a connection that was kept turns out to be cut.
    assert max(asked.values()) <= (4 if fault == "cut" else 2), "somebody else tries again as well"


def test_no_more_is_asked_for_than_is_read(cloud, folder, tmp_path):
    url = cloud.put_set("bytes", folder)
    proxy = FaultProxy(cloud.url)
    env = clean(**cloud.environment(proxy.url))
    while probe(url, tmp_path / "cache", env)["shards"]:
        pass
    shards = [headers.get("Range") for method, path, headers in proxy.requests if ".mds" in path and method == "GET"]
    assert shards and all(shards), "a whole object was asked for beside its ranges"


def test_a_fault_while_writing_passes_or_is_named(cloud, folder, tmp_path):
    url = cloud.put_set("sent", folder)
    writes = ("PUT", "POST")
    proxy = FaultProxy(cloud.url, lambda method, path, _: "503" if method in writes and "shard.00001" in path else None)
    env = clean(**cloud.environment(proxy.url), TMPDIR=str(tmp_path))
    arguments = ("convert", folder, f"{url}/out", "--size-limit", "10kb", "--jobs", "1")
    error = tune_data(*arguments, env=env, expect=1)
    assert f"'{url}/out/00000/shard.00001.mds' cannot be written" in error and "6 attempts" in error
    proxy.fault = lambda *_: None
    tune_data(*arguments, env=env)
    assert probe(f"{url}/out", tmp_path / "cache", env)["digest"] == probe(folder, "")["digest"]


class TokenServer(FileServer):
    """Gives tokens to who proves what `is_right` wants; everything else is Google's."""

    def __init__(self, is_right, answer=None):
        self.asked = []
        self.is_right = is_right
        self.given = answer or {"access_token": "good", "expires_in": 3600}
        super().__init__("/nonexistent", respond=self.token)

    def token(self, handler):
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0)).decode()
        self.asked.append((handler.path, body))
        is_right = self.is_right(handler, dict(urllib.parse.parse_qsl(body)))
        text = json.dumps(self.given if is_right else {"error": "invalid_grant"}).encode()
        handler.answer(200 if is_right else 401, text, Content_Type="application/json", Content_Length=str(len(text)))
        return True


def bearers(proxy):
    return {headers.get("Authorization") for _, _, headers in proxy.requests}


def service_account(tokens, folder):
    """(credentials, what a request for a token must hold): a signature by the account's key."""
    rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import padding

    key = rsa.generate_private_key(65537, 2048)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()

    def is_right(_, form):
        text, _, signature = form.get("assertion", "..").rpartition(".")
        claims = json.loads(base64.urlsafe_b64decode(text.split(".")[1] + "=="))
        key.public_key().verify(base64.urlsafe_b64decode(signature + "=="), text.encode(), padding.PKCS1v15(), hashes.SHA256())
        return claims["iss"] == "me@project" and claims["aud"] == tokens.url + "/token" and claims["exp"] > time.time()

    return {"type": "service_account", "client_email": "me@project", "private_key": pem, "token_uri": tokens.url + "/token"}, is_right


def user(tokens, folder):
    account = {"type": "authorized_user", "client_id": "id", "client_secret": "s/+", "refresh_token": "r", "token_uri": tokens.url}
    return account, lambda _, form: form == {
        "grant_type": "refresh_token", "client_id": "id", "client_secret": "s/+", "refresh_token": "r"
    }  # fmt: skip


def federation(tokens, folder):
    (folder / "subject").write_text('{"jwt": "of the cluster"}')
    source = {"file": str(folder / "subject"), "format": {"type": "json", "subject_token_field_name": "jwt"}}
    account = {"type": "external_account", "audience": "//iam", "token_url": tokens.url, "credential_source": source}
    return account, lambda _, form: form["subject_token"] == "of the cluster" and form["audience"] == "//iam"


@pytest.mark.parametrize("kind", [service_account, user, federation])
def test_google_is_asked_with_the_token_of_its_default_credentials(google, folder, tmp_path, kind):
    url = google.put_set("login", folder)
    tokens = TokenServer(lambda *_: False)
    account, tokens.is_right = kind(tokens, tmp_path)
    (tmp_path / "account.json").write_text(json.dumps(account))
    proxy = FaultProxy(google.url)
    env = clean(**google.environment(proxy.url), GOOGLE_APPLICATION_CREDENTIALS=str(tmp_path / "account.json"))
    assert probe(url, tmp_path / "cache", env)["digest"] == probe(folder, "")["digest"]
    # One for each source that is opened: the kind of data is looked for, then it is read.
    assert bearers(proxy) == {"Bearer good"} and len(tokens.asked) <= 2
    tokens.is_right = lambda *_: False
    error = probe(url, tmp_path / "refused", env, expect=1)
    assert f"{url}/index.json' cannot be asked for: with the credentials in '{tmp_path}/account.json'" in error and "401" in error


def test_googles_machines_have_a_token_of_their_own(google, folder, tmp_path):
    url = google.put_set("machine", folder)
    tokens = TokenServer(lambda handler, _: handler.headers.get("Metadata-Flavor") == "Google")
    proxy = FaultProxy(google.url)
    env = clean(**google.environment(proxy.url), GCE_METADATA_HOST=tokens.url.removeprefix("http://"), HOME=str(tmp_path))
    assert probe(url, tmp_path / "cache", env)["digest"] == probe(folder, "")["digest"]
    assert bearers(proxy) == {"Bearer good"}


@pytest.mark.parametrize("kind", ["secret", "workload", "service", "machine"])
def test_azure_is_asked_with_the_token_of_its_default_credentials(azure, tmp_path, kind):
    """Azurite takes no tokens without TLS: a server of our own shows what is sent."""
    folder = write_set(tmp_path / "data" / "me" / "box" / "set", count=50)
    server = FileServer(tmp_path / "data")
    (tmp_path / "federated").write_text("of the cluster\n")

    def is_right(handler, form):
        if kind == "secret":
            return handler.path == "/tenant/oauth2/v2.0/token" and form["client_secret"] == "s"
        if kind == "workload":
            return form["client_assertion"] == "of the cluster"
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(handler.path).query))
        header = handler.headers.get("X-IDENTITY-HEADER") if kind == "service" else handler.headers.get("Metadata")
        return asked["resource"] == "https://storage.azure.com/" and header == {"service": "h", "machine": "true"}[kind]

    tokens = TokenServer(is_right, {"access_token": "good", "expires_in": "3600"})
    client = {"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "c", "AZURE_AUTHORITY_HOST": tokens.url + "/"}
    settings = {
        "secret": {**client, "AZURE_CLIENT_SECRET": "s"},
        "workload": {**client, "AZURE_FEDERATED_TOKEN_FILE": str(tmp_path / "federated")},
        "service": {"IDENTITY_ENDPOINT": tokens.url, "IDENTITY_HEADER": "h"},
        "machine": {"AZURE_POD_IDENTITY_AUTHORITY_HOST": tokens.url, "PATH": "/usr/bin:/bin"},
    }[kind]
    place = f"AccountName=me;BlobEndpoint={server.url}/me"
    env = clean(AZURE_STORAGE_CONNECTION_STRING=place, **settings)
    assert probe("az://box/set", tmp_path / "cache", env)["digest"] == probe(folder, "")["digest"]
    assert {headers.get("Authorization") for _, _, headers in server.requests} == {"Bearer good"} and len(tokens.asked) <= 2


def test_refused_credentials_are_named_at_once(cloud, folder, tmp_path):
    """Google's emulator takes everybody, so that the refusal comes from the proxy; Azurite's is its own."""
    url = cloud.put_set("closed", folder)
    proxy = FaultProxy(cloud.url, lambda *_: "401" if isinstance(cloud, emulators.Google) else None)
    wrong = {"key": "d3Jvbmc="} if isinstance(cloud, emulators.Azure) else {}
    error = probe(url, tmp_path / "cache", clean(**cloud.environment(proxy.url, **wrong)), expect=1, retry=5)
    assert f"{url}/index.json' cannot be read" in error and "attempts" not in error
    assert len(proxy.requests) <= 2, "it was tried again"  # the kind of data is looked for, then its index


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
