"""Completion in shells."""

import os
import shutil
import subprocess

import pytest

from study_support import OK, TUNE, tune


def candidates(*words, cwd):
    done = tune("__complete", *words, cwd=cwd)
    assert done.returncode == OK, done.stderr
    return [line.split("\t")[0] for line in done.stdout.splitlines()]


def test_completion_knows_verbs_options_values_and_studies(studies, tmp_path):
    url, _ = studies
    assert {"run", "plot", "top"} <= set(candidates("", cwd=tmp_path))
    assert candidates("pl", cwd=tmp_path) == ["plan", "plot"]
    assert candidates("plot", "--th", cwd=tmp_path) == ["--theme"]
    assert candidates("plot", "--theme", "", cwd=tmp_path) == ["light", "dark"]
    assert {"full", "empty", "one"} <= set(candidates("plot", "--server", url, "", cwd=tmp_path))
    assert candidates("show", "--server", url, "fu", cwd=tmp_path) == ["full"]
    assert candidates("plot", "--server", url, "full", "pa", cwd=tmp_path) == ["parallel", "pareto"]
    samplers = ["random", "grid", "qmc", "tpe", "gp", "cmaes", "auto", "nsga2", "nsga3", "pbt"]
    # In the order of errors and help; shells sort them.
    assert sorted(candidates("run", "--sampler", "", cwd=tmp_path)) == sorted(samplers)
    assert candidates("run", "--sampler", "ns", cwd=tmp_path) == ["nsga2", "nsga3"]
    for words in (["plan"], ["run", "study.yaml"], ["pruners", "full"]):
        assert {"none", "asha", "hyperband", "any"} <= set(candidates(*words, "--pruner", "", cwd=tmp_path))
    keys = candidates("run", "--pruner", "asha,min=1,", cwd=tmp_path)
    assert keys == [f"asha,min=1,{key}=" for key in ("max", "eta", "rate", "bootstrap")]
    assert candidates("run", "--pruner", "patience,w", cwd=tmp_path) == ["patience,wait="]
    assert candidates("space", "--from", "k", cwd=tmp_path) == ["katib"]
    assert candidates("plot", "--theme=d", cwd=tmp_path) == ["--theme=dark"]
    assert candidates("plot", "--theme", "=", cwd=tmp_path) == ["light", "dark"]  # as bash splits words
    assert candidates("plot", "--theme", "=", "d", cwd=tmp_path) == ["dark"]
    assert candidates("plot", f"--server={url}", "fu", cwd=tmp_path) == ["full"]
    assert candidates("export", "x.db", "--server", url, "--optuna", "fu", cwd=tmp_path) == ["full"]
    assert candidates("run", "--server", url, "--warm-start", "fu", cwd=tmp_path) == ["full"]
    assert candidates("alert", "", cwd=tmp_path) == ["add", "ls", "rm"]
    assert candidates("run", "--", "py", cwd=tmp_path) == []
    assert candidates("no-such-verb", "x", cwd=tmp_path) == []
    assert candidates(cwd=tmp_path) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_valid(tmp_path, shell):
    script = tune("completion", shell, cwd=tmp_path)
    assert script.returncode == OK and "__complete" in script.stdout
    if shutil.which(shell):
        subprocess.run([shell, "-n", "/dev/stdin"], input=script.stdout, text=True, check=True)


def test_bash_completes_a_study(studies, tmp_path):
    url, _ = studies
    script = tune("completion", "bash", cwd=tmp_path).stdout
    asked = f'{script}\nCOMP_WORDS=(tune best --server {url} fu)\nCOMP_CWORD=4\n_tune\necho "${{COMPREPLY[@]}}"'
    path = f"{TUNE.parent}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-c", asked], env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert done.stdout.strip() == "full", done.stderr
