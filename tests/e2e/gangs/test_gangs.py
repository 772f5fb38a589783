"""Trials of several processes, on one agent and on two: what they find, how they end, and that nothing is left."""

import json
import os
import pathlib
import signal

import pytest

from agent_support import PYTHON, TUNE, Farm, Process, lives, wait_for
from gangs.gang_scripts import MEETS, WAITS
from study_support import OK, tune


@pytest.fixture
def farm(tmp_path):
    with Farm(tmp_path, lease_ttl="6s") as made:
        yield made


def start_agent(farm, name, *flags, slots=1):
    farm.agents[name] = Process(
        [TUNE, "agent", "--server", farm.url, "--state", str(farm.folder / name), "--slots", str(slots), "--no-gpus",
         *flags], farm.folder / (name + ".log"))


def create(farm, resources, held=False, trials=1, **more):
    """A study of trials that wait, where `held`, until the gate goes."""
    if held:
        (farm.folder / "gate").touch()
    (farm.folder / "trial.py").write_text(WAITS)
    farm.create("s", [PYTHON, str(farm.folder / "trial.py")], trials=trials, resources=resources, env={"FOLDER": str(farm.folder)}, **more)


def pid(farm, attempt, rank):
    path = farm.folder / f"pid-{attempt}-{rank}"
    wait_for(path.exists, f"process {rank} of attempt {attempt}")
    return int(path.read_text())


def found(farm, attempt, rank):
    return json.loads((farm.folder / f"env-{attempt}-{rank}.json").read_text())


def test_two_agents_run_one_trial(farm):
    start_agent(farm, "a")
    start_agent(farm, "b")
    create(farm, {"nproc": 2, "nnodes": 2})
    trial, = farm.wait_for_end("s")
    assert trial["state"] == "complete"
    assert trial["value"] == 10, "rank 0 alone reports"
    variables = [found(farm, 1, rank) for rank in range(4)]
    assert [v["RANK"] for v in variables] == ["0", "1", "2", "3"]
    assert [v["LOCAL_RANK"] for v in variables] == ["0", "1", "0", "1"]
    assert [v["GROUP_RANK"] for v in variables] == ["0", "0", "1", "1"]
    assert {v["WORLD_SIZE"] for v in variables} == {"4"}
    assert {v["MASTER_ADDR"] for v in variables} == {"127.0.0.1"}
    assert len({v["MASTER_PORT"] for v in variables}) == 1
    clusters = [json.loads(v["TF_CONFIG"]) for v in variables]
    assert len({json.dumps(c["cluster"]) for c in clusters}) == 1
    assert len(set(clusters[0]["cluster"]["worker"])) == 4
    assert [c["task"]["index"] for c in clusters] == [0, 1, 2, 3]
    # The output of each is with the run.
    for name in ("stdout.log", "rank-1.log", "node-1/stdout.log", "node-1/rank-3.log"):
        assert "tune:" in wait_for(lambda name=name: farm.artifact(trial, "logs/" + name), name)


def test_the_processes_of_horovod_meet(farm):
    start_agent(farm, "a", slots=2)
    start_agent(farm, "b", slots=2)
    (farm.folder / "trial.py").write_text(MEETS)
    farm.create("s", [PYTHON, str(farm.folder / "trial.py")], trials=2, resources={"nproc": 2, "nnodes": 2})
    trials = farm.wait_for_end("s")
    assert [(trial["state"], trial["value"]) for trial in trials] == [("complete", 0)] * 2
    met = [wait_for(lambda trial=trial: farm.artifact(trial, "logs/stdout.log"), "the output").split()[-1] for trial in trials]
    assert [address.partition("/")[2] for address in met] == [f"{trial['run_id']}-1" for trial in trials], "each attempt has a path"


def test_a_gang_that_cannot_be_placed_says_why(farm):
    start_agent(farm, "a")
    create(farm, {"nnodes": 2})
    why = wait_for(lambda: farm.study("s").get("waits_for"), "the reason")
    wait_for(lambda: "1 is registered" in farm.study("s").get("waits_for", ""), "the agent")
    assert "2 agents at once" in why or "no agent" in why
    queue, = farm.get("tune/queue")["studies"]
    assert "2 agents at once" in queue["waits_for"]
    start_agent(farm, "b")
    trial, = farm.wait_for_end("s")
    assert trial["state"] == "complete"


@pytest.mark.parametrize("victim", ["rank", "supervisor"])
def test_killed_on_one_of_two_agents(farm, victim):
    start_agent(farm, "a")
    start_agent(farm, "b")
    create(farm, {"nproc": 2, "nnodes": 2}, held=True, retry={"max": 2, "on": ["failed"]})
    pids = [pid(farm, 1, rank) for rank in range(4)]
    if victim == "rank":
        os.kill(pids[3], signal.SIGKILL)
    else:
        for name in ("a", "b"):
            supervisor, = farm.supervisors(name)
            leader = os.getpgid(pids[2])
            if pathlib.Path(f"/proc/{leader}/stat").read_text().split()[3] == str(supervisor):
                os.kill(supervisor, signal.SIGKILL)
    wait_for(lambda: not any(map(lives, pids)), "the end of all processes")
    (farm.folder / "gate").unlink()
    trial, = farm.wait_for_end("s")
    assert (trial["state"], trial["attempt"], trial["value"]) == ("complete", 2, 10)
    for name in ("a", "b"):
        wait_for(lambda name=name: not list((farm.state_dir(name) / "attempts").iterdir()), "an empty folder")
    for agent in farm.get("tune/queue")["agents"]:
        assert agent["free_slots"] == agent["slots"]


def test_a_killed_agent_is_not_waited_for(farm):
    start_agent(farm, "a")
    start_agent(farm, "b")
    create(farm, {"nnodes": 2}, held=True)
    pids = [pid(farm, 1, rank) for rank in range(2)]
    hosts = farm.get("tune/queue")["agents"]
    assert all(agent["leases"][0]["nodes"] == 2 for agent in hosts)
    farm.agents["b"].kill()
    # After the time to live the attempt is lost, and the other agent's part is ended.
    own = set(farm.supervisors("a"))
    of_a = [p for p in pids if int(pathlib.Path(f"/proc/{os.getpgid(p)}/stat").read_text().split()[3]) in own]
    assert len(of_a) == 1
    wait_for(lambda: not lives(of_a[0]), "the end of the other part")
    (farm.folder / "gate").unlink()
    start_agent(farm, "b")  # adopts what is left, learns that it is lost, and takes part in the next attempt
    trial, = farm.wait_for_end("s")
    assert (trial["state"], trial["attempt"]) == ("complete", 2)
    wait_for(lambda: not any(map(lives, pids)), "the end of all processes")


def test_the_server_is_killed(farm):
    start_agent(farm, "a")
    start_agent(farm, "b")
    create(farm, {"nnodes": 2}, held=True)
    pids = [pid(farm, 1, rank) for rank in range(2)]
    farm.server.kill()
    farm.start_server()
    wait_for(lambda: sum(len(agent["leases"]) for agent in farm.get("tune/queue")["agents"]) == 2, "both agents")
    assert all(map(lives, pids))
    (farm.folder / "gate").unlink()
    trial, = farm.wait_for_end("s")
    assert (trial["state"], trial["attempt"], trial["value"]) == ("complete", 1, 10)


def test_stop_ends_all_ranks(farm):
    start_agent(farm, "a")
    start_agent(farm, "b")
    create(farm, {"nproc": 2, "nnodes": 2}, held=True)
    pids = [pid(farm, 1, rank) for rank in range(4)]
    farm.post("tune/studies/s/stop", {})
    wait_for(lambda: not any(map(lives, pids)), "the end of all processes")
    wait_for(lambda: farm.trials("s")[0]["state"] == "cancelled", "the trial's end")


def test_a_failing_rank_is_named(farm):
    start_agent(farm, "a", slots=2)
    farm.create("s", [PYTHON, "-c", "import os, sys, time\n"
                      "if os.environ['RANK'] == '1': sys.exit('rank one is broken')\n"
                      "time.sleep(600)"], trials=1, resources={"nproc": 2})
    wait_for(lambda: farm.trials("s") and farm.trials("s")[0]["state"] == "failed", "the failure")
    trial, = farm.trials("s")
    assert trial["reason"].startswith("rank 1: exit code 1")
    assert "rank one is broken" in trial["reason"]


def test_processes_share_the_places_of_an_agent(farm):
    start_agent(farm, "a", slots=2)
    create(farm, {"nproc": 2}, held=True, trials=2)
    pids = [pid(farm, 1, rank) for rank in range(2)]
    agent, = farm.get("tune/queue")["agents"]
    assert agent["free_slots"] == 0
    queue, = farm.get("tune/queue")["studies"]
    assert queue["waits_for"] == "no agent has room for a trial now"
    (farm.folder / "gate").unlink()
    assert [trial["state"] for trial in farm.wait_for_end("s")] == ["complete"] * 2
    assert not any(map(lives, pids))


def test_tune_run_and_top(farm):
    """`tune run --nproc` alone is enough; `tune top` shows who has what."""
    start_agent(farm, "a", "--label", "zone=eu", slots=2)
    create(farm, {"nproc": 2, "labels": ["zone=eu"]}, held=True)
    for rank in range(2):
        pid(farm, 1, rank)
    shown = tune("top", "--server", farm.url, cwd=farm.folder)
    assert shown.returncode == OK, shown.stderr
    assert "zone=eu" in shown.stdout and "2/2" in shown.stdout and "s #0" in shown.stdout
    assert "\033" not in shown.stdout, "plain where it is no terminal"
    view = json.loads(tune("top", "--json", "--server", farm.url, cwd=farm.folder).stdout)
    agent, = view["queue"]["agents"]
    assert agent["leases"][0]["nproc"] == 2 and agent["labels"] == ["zone=eu"]
    (farm.folder / "gate").unlink()
    farm.wait_for_end("s")


def test_what_an_agent_does_not_use_any_more_is_shown(farm):
    start_agent(farm, "a", "--log-rule", "exclude_host:disk I/O error")
    farm.create("s", ["sh", "-c", "echo sda: disk I/O error; exit 1"], trials=1)
    agent = wait_for(lambda: next((a for a in farm.get("tune/queue")["agents"] if a["excluded"]), None), "the exclusion")
    assert agent["slots"] == 0 and agent["excluded"][0].startswith("this machine: ")
    shown = tune("top", "--server", farm.url, cwd=farm.folder)
    assert "does not use this machine: " in shown.stdout and "disk I/O error" in shown.stdout, shown.stdout


def test_tune_run_nproc(tmp_path):
    script = tmp_path / "trial.py"
    script.write_text(WAITS)
    done = tune("run", "-n", 2, "-m", "loss:min", "--port", 0, "--nproc", 3, "lr=0..1", "--", PYTHON, script,
                cwd=tmp_path, env={**os.environ, "FOLDER": str(tmp_path)})
    assert done.returncode == OK, done.stderr
    assert json.loads((tmp_path / "env-1-2.json").read_text())["WORLD_SIZE"] == "3"
