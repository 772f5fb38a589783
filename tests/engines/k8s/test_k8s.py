"""The engine `k8s` against an API server of the test (apiserver.py): nothing here has run on a cluster."""

import base64
import json
import os
import pathlib
import subprocess
import sys

import kubernetes_validate
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from launching import BIN_DIR, FAILED, OK, USAGE, Scene, free_port, wait_for

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from apiserver import TOKEN, Cluster, Server

VERSIONS = ("1.26", "1.28", "1.31", "1.34", "1.37")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", folder / "key.pem", "-out", folder / "cert.pem", "-days", "2", "-subj", "/CN=test",
                    "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    return folder


class KubeScene(Scene):
    def serve(self, certificate, **cluster):
        (self.folder / "pods").mkdir()
        os.environ["POD_PATH"] = f"{BIN_DIR}:{os.environ['PATH']}"
        self.cluster = Cluster(self.folder / "pods", **cluster)
        self.api = Server(self.cluster, certificate / "cert.pem", certificate / "key.pem")
        self.write_config(certificate)

    def write_config(self, certificate, user=None, **cluster):
        authority = base64.b64encode((certificate / "cert.pem").read_bytes()).decode()
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "test",
                  "contexts": [{"name": "test", "context": {"cluster": "c", "user": "ann", "namespace": "ml"}}],
                  "clusters": [{"name": "c", "cluster": {"server": self.api.url,
                                                         "certificate-authority-data": authority, **cluster}}],
                  "users": [{"name": "ann", "user": user or {"token": TOKEN}}]}
        (self.home / ".kube").mkdir(exist_ok=True)
        (self.home / ".kube" / "config").write_text(json.dumps(config))

    def settings(self, **settings):
        self.port = free_port()
        self.engines(farm={"type": "k8s", "image": "tune:1", "agents": 2, "slots": 1, "poll": "200ms",
                           "server": f"http://127.0.0.1:{self.port}", "state": str(self.folder / "state"), **settings})

    def run_words(self, trials=6):
        return ["run", "--port", self.port, "--on", "farm", *self.study(trials)]

    def check_quiet(self):
        wait_for(lambda: not self.cluster.processes, "the end of all pods")
        kinds = self.cluster.objects
        assert not kinds["secrets"], "the token stayed in the cluster"
        assert all("conditions" in unit["status"] for kind in ("jobs", "jobsets") for unit in kinds[kind].values())
        self.check_nothing_left()


@pytest.fixture
def scene(tmp_path, certificate):
    with KubeScene(tmp_path) as scene:
        scene.certificate = certificate
        scene.serve(certificate)
        scene.settings()
        yield scene
        scene.cluster.stop()
        scene.api.shutdown()


def start_study(scene, trials=6, running=2):
    scene.gate.touch()
    run = scene.start(*scene.run_words(trials))
    wait_for(lambda: len(scene.starts()) >= running, f"{running} trials that run; {run.output}")
    return run


def test_a_study_runs_in_pods_and_nothing_is_left(scene):
    run = start_study(scene)
    jobs = list(scene.cluster.objects["jobs"].values())
    assert len(jobs) == 2 and all(job["spec"]["parallelism"] == 1 for job in jobs)
    assert all(job["metadata"]["annotations"] == {"tune.dev/study": "s"} for job in jobs)
    shown = scene.tune_json("agents", "ls", "--on", "farm")["agents"]
    assert {(agent["state"], agent["host"]) for agent in shown} == {("running", "node-a"), ("running", "node-b")}
    scene.gate.unlink()
    assert run.wait(60) == OK, run.output.read_text()
    scene.check_whole(6)
    assert len(scene.starts()) == 6
    logs = "".join(path.read_text() for path in scene.cluster.folder.glob("*/log"))
    assert "kubernetes job tune-" in logs
    scene.check_quiet()


def test_progress_says_that_no_node_has_room(scene):
    scene.cluster.room = 1
    run = start_study(scene, running=1)
    words = b"1 agent running, 1 pending: no node has room: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    wait_for(lambda: words in run.output.read_bytes(), "the reason")
    scene.gate.unlink()
    assert run.wait(60) == OK
    scene.check_whole(6)
    scene.check_quiet()


def test_an_image_that_cannot_be_pulled_is_said(scene):
    scene.settings(image="nosuch:7")
    run = scene.start(*scene.run_words())
    words = b"its image cannot be pulled: nosuch:7 (ErrImagePull: pull access denied for nosuch:7)"
    wait_for(lambda: words in run.output.read_bytes(), "the reason")
    run.terminate()
    assert run.wait(60) == 130
    scene.check_quiet()


def test_kueue_admits_what_waits_in_its_queue(scene):
    scene.settings(queue="team")
    run = scene.start(*scene.run_words())
    wait_for(lambda: b"2 agents pending: queue team has not admitted it (Kueue)" in run.output.read_bytes(), "the reason")
    labels = [job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] for job in scene.cluster.objects["jobs"].values()]
    assert labels == ["team", "team"]
    scene.cluster.admit()
    assert run.wait(60) == OK
    scene.check_whole(6)
    scene.check_quiet()


def test_a_pod_that_is_evicted_costs_no_trial(scene):
    run = start_study(scene)
    scene.cluster.evict(next(iter(scene.cluster.processes)))
    wait_for(lambda: len(scene.starts()) >= 3, "the trial's next attempt")
    scene.gate.unlink()
    assert run.wait(60) == OK, run.output.read_text()
    scene.check_whole(6)
    scene.check_quiet()


def test_a_gang_is_a_jobset(scene):
    scene.settings(nodes=2)
    run = start_study(scene)
    [jobset] = scene.cluster.objects["jobsets"].values()
    job = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert (job["parallelism"], job["completionMode"]) == (2, "Indexed")
    wait_for(lambda: b"2 agents running" in run.output.read_bytes(), "both agents of the gang")
    scene.gate.unlink()
    assert run.wait(60) == OK, run.output.read_text()
    scene.check_whole(6)
    scene.check_quiet()


def test_a_watch_that_ends_and_an_api_that_restarts_lose_nothing(scene):
    scene.cluster.watch_s = 0.2
    run = start_study(scene)
    wait_for(lambda: sum("watch=1" in path for _, path in scene.cluster.calls) > 3, "several watches")
    scene.gate.unlink()
    assert run.wait(60) == OK
    scene.check_whole(6)
    scene.check_quiet()


def test_a_launcher_that_was_killed_finds_its_agents_again(scene):
    first = start_study(scene)
    first.kill()
    first.wait()
    jobs = set(scene.cluster.objects["jobs"])
    second = scene.start(*scene.run_words())
    wait_for(lambda: b"2 agents running" in second.output.read_bytes(), "the agents of the first")
    assert set(scene.cluster.objects["jobs"]) == jobs
    scene.gate.unlink()
    assert second.wait(90) == OK, second.output.read_text()
    scene.check_whole(6)
    scene.check_quiet()


def test_agents_down_ends_what_a_killed_launcher_left(scene):
    run = start_study(scene)
    run.kill()
    run.wait()
    scene.gate.unlink()
    assert scene.tune_json("agents", "down", "--on", "farm")["ended"] == 2
    assert not scene.cluster.objects["jobs"] and not scene.cluster.processes
    scene.check_nothing_left()


@pytest.mark.parametrize("version", VERSIONS)
def test_manifests_meet_the_published_schemas(scene, version):
    """The server checks what it is sent; here with everything that can be set."""
    scene.cluster.version = version
    scene.settings(cpus=1, gpus=1, memory="1Gi", queue="team", priority_class="low", service_account="tuner",
                   volumes=["data:/data"], pod={"nodeSelector": {"zone": "a"}, "tolerations": [{"operator": "Exists"}]})
    url = scene.server()
    done = scene.tune("agents", "up", "--on", "farm", "--server", url, "--agents", 1)
    assert done.returncode == OK, done.stderr
    [job] = scene.cluster.objects["jobs"].values()
    pod = job["spec"]["template"]["spec"]
    assert pod["containers"][0]["resources"]["limits"] == {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert [volume["name"] for volume in pod["volumes"]] == ["token", "claim-data"]
    wrong = json.loads(json.dumps(job))
    wrong["spec"]["template"]["spec"]["containers"][0]["imaje"] = "x"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, version, strict=True)
    assert scene.tune_json("agents", "down", "--on", "farm", "--server", url)["ended"] == 1


@pytest.mark.parametrize("settings, sentence", [
    ({"namespace": "prod"}, 'the cluster refuses these agents: jobs is forbidden: User "ann" cannot use the namespace'),
    ({"server": ""}, "can only be reached from this machine, not from pods"),
    ({"context": "other"}, "it has no context 'other'"),
    ({"kubeconfig": "/nowhere"}, "/nowhere"),
    ({"volumes": ["data"]}, "expected CLAIM:/path, found 'data'"),
    ({"pod": {"nodeSelectr": {}}}, "the cluster refuses these agents: strict decoding error"),
    ({"imag": "x"}, "did you mean 'image'"),
])
def test_what_cannot_work_is_refused_at_once(scene, settings, sentence):
    scene.settings(**settings)
    done = scene.tune(*scene.run_words())
    assert done.returncode in (FAILED, USAGE)
    assert sentence in done.stderr
    assert not scene.cluster.objects["jobs"] and not scene.cluster.objects["secrets"]


def test_an_image_must_be_named(scene):
    done = scene.tune("run", "--port", 0, "--on", "k8s", *scene.study(2))
    assert "'image' is missing: an image that holds `tune`" in done.stderr


def test_expired_credentials_and_old_or_bare_clusters_are_refused(scene):
    scene.cluster.version = "1.20"
    assert "Kubernetes v1.20.0 is not supported" in scene.tune(*scene.run_words()).stderr
    scene.cluster.version = "1.31"
    scene.cluster.has_jobset = False
    scene.settings(nodes=2)
    assert "the cluster has no JobSet" in scene.tune(*scene.run_words()).stderr
    scene.settings()
    scene.write_config(scene.certificate, user={"token": "of-yesterday"})
    assert "they may have expired; log in again" in scene.tune(*scene.run_words()).stderr
    scene.api.shutdown()
    scene.api.socket.close()
    assert "the cluster cannot be reached" in scene.tune(*scene.run_words()).stderr


def test_credentials_that_expire_in_the_middle_are_asked_for_again(scene):
    program = scene.folder / "login.sh"
    program.write_text(f"#!/bin/sh\necho '{{\"status\": {{\"token\": \"'$(cat {scene.folder}/now)'\"}}}}'\n")
    program.chmod(0o755)
    (scene.folder / "now").write_text(scene.cluster.token)
    scene.write_config(scene.certificate, user={"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": str(program)}})
    run = start_study(scene)
    (scene.folder / "now").write_text("token-of-the-next-quarter")
    scene.cluster.token = "token-of-the-next-quarter"
    scene.gate.unlink()
    assert run.wait(60) == OK, run.output.read_text()
    scene.check_whole(6)
    scene.check_quiet()


def test_pods_cannot_be_drained(scene):
    run = start_study(scene)
    done = scene.tune("agents", "down", "--drain", "--on", "farm")
    assert done.returncode != OK and "cannot ask its pods to take no more trials" in done.stderr
    scene.gate.unlink()
    assert run.wait(60) == OK, run.output.read_text()
    scene.check_whole(6)


def test_a_credential_program_gives_the_token(scene):
    program = scene.folder / "login.sh"
    program.write_text("#!/bin/sh\necho '{\"status\": {\"token\": \"'$PART'-of-ann\"}}'\n")
    program.chmod(0o755)
    scene.write_config(scene.certificate, user={"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": str(program), "args": ["x"],
        "env": [{"name": "PART", "value": "token"}]}})
    assert scene.tune_json("agents", "ls", "--on", "farm")["agents"] == []
    program.write_text("#!/bin/sh\necho 'no session: log in' >&2; exit 1\n")
    assert "no session: log in" in scene.tune("agents", "ls", "--on", "farm").stderr
