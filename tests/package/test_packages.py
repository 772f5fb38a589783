"""Each package, installed where nothing of the build is, runs a study there.

The tarball is unpacked in a scratch folder and run with an empty environment. The .deb is unpacked into a root of its own that holds
only a libc, a shell and /bin/echo besides, and runs under chroot. The wheel is installed by pip into a new environment.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import venv

import pytest

from conftest import ROOT, STUDY, only

TIMEOUT_S = 120


def run(command, **more):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=TIMEOUT_S, **more)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


def check_study(shown):
    trials = json.loads(shown)["trials"]
    assert len(trials) == 6
    assert {trial["state"] for trial in trials} == {"complete"}
    assert all(trial["value"] == trial["params"]["x"] for trial in trials)


@pytest.fixture
def tarball_root(packages, tmp_path):
    run(["tar", "-xzf", only(packages, "tune-*.tar.gz"), "-C", tmp_path])
    (root,) = tmp_path.iterdir()
    return root


def test_tarball_runs_a_study_from_any_folder(tarball_root, tmp_path):
    moved = tmp_path / "elsewhere" / "deep"
    moved.parent.mkdir()
    tarball_root.rename(moved)
    (tmp_path / "study.yaml").write_text(STUDY)
    environment = {"PATH": "/usr/bin:/bin"}
    tune = moved / "bin" / "tune"
    run([tune, "run", "study.yaml", "--data", "data"], cwd=tmp_path, env=environment)
    check_study(run([tune, "show", "packaged", "--data", "data", "--json"], cwd=tmp_path, env=environment))


def test_tarball_brings_its_libraries(tarball_root):
    """Nothing but libc and what the kernel gives is found outside of the tree."""
    listing = run(["ldd", tarball_root / "bin" / "tune"], env={"PATH": "/usr/bin:/bin"})
    outside = [
        line.split()[0]
        for line in listing.splitlines()
        if "=>" in line and str(tarball_root) not in os.path.realpath(line.split()[2])
    ]
    assert not [name for name in outside if not re.match(r"lib(c|m|dl|rt|pthread)\.so", name)], listing
    assert "not found" not in listing


def test_tarball_holds_manual_completions_and_unit(tarball_root):
    assert (tarball_root / "share/man/man1/tune.1").read_text().startswith(".")
    assert "complete" in (tarball_root / "share/bash-completion/completions/tune").read_text()
    assert "#compdef" in (tarball_root / "share/zsh/vendor-completions/_tune").read_text()
    assert "complete" in (tarball_root / "share/fish/vendor_completions.d/tune.fish").read_text()
    unit = (tarball_root / "lib/systemd/system/tune.service").read_text()
    assert "ExecStart=/usr/bin/tune server" in unit


def unnamed_libraries(tree):
    """Files of lib/tune that others wrote and that the notices of this package do not name."""
    notices = (tree / "share/doc/tune/copyright").read_text()
    table = notices.partition("## Linked as shared libraries")[2].partition("\n## ")[0]
    named = {name for row in re.findall(r"^\|.*\|$", table, re.MULTILINE) for name in re.split(r"[ ,]+", row.split("|")[4].strip())}
    brought = {re.sub(r"(-[\d.]+)?\.so.*", "", file.name) for file in (tree / "lib/tune").glob("*.so*")}
    others = {name for name in brought if not name.startswith("libtune")}
    assert len(others) > 5
    return others - named


def test_every_library_of_the_tarball_is_named_in_its_notices(tarball_root):
    assert unnamed_libraries(tarball_root) == set()
    for licence in ("Apache-2.0", "GPL-3.0-with-GCC-exception", "MPL-2.0"):
        assert (tarball_root / f"share/doc/tune/{licence}.txt").stat().st_size > 10_000


def copy_with_libraries(program, root):
    """Puts a program of this machine and the libraries it names into another root."""
    for file in [program, *re.findall(r"(/\S+)", run(["ldd", program]))]:
        target = root / file.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)


@pytest.fixture
def bare_root(tmp_path):
    """A root with a shell, echo and libc, no more."""
    if os.geteuid() != 0:
        pytest.skip("chroot needs root")
    root = tmp_path / "root"
    for folder in ("tmp", "work", "bin", "dev", "proc"):
        (root / folder).mkdir(parents=True)
    for program in ("/bin/sh", "/bin/echo"):
        copy_with_libraries(program, root)
    for library in ("libm.so.6", "libc.so.6"):
        shutil.copy(f"/lib/x86_64-linux-gnu/{library}", root / "lib/x86_64-linux-gnu")
    for device in ("null", "urandom"):
        status = os.stat(f"/dev/{device}")
        os.mknod(root / "dev" / device, status.st_mode, status.st_rdev)
    return root


def test_deb_runs_a_study_in_a_bare_root(packages, bare_root):
    package = only(packages, "tune_*.deb")
    control = run(["dpkg-deb", "--field", package])
    assert re.search(r"^Depends: libc6 \(>= 2\.36\)$", control, re.MULTILINE)
    run(["dpkg-deb", "--extract", package, bare_root])
    (bare_root / "work" / "study.yaml").write_text(STUDY)
    inside = ["chroot", bare_root, "/bin/sh", "-c"]
    mounted = bare_root / "proc"
    if subprocess.run(["mount", "-t", "proc", "proc", mounted], capture_output=True).returncode != 0:
        pytest.skip("this container may not mount /proc")
    try:
        run([*inside, "cd /work && /usr/bin/tune run study.yaml --data data"], env={"PATH": "/usr/sbin:/usr/bin:/bin"})
        check_study(run([*inside, "cd /work && /usr/bin/tune show packaged --data data --json"],
                        env={"PATH": "/usr/sbin:/usr/bin:/bin"}))
    finally:
        run(["umount", mounted])


def test_deb_names_only_folders_of_usr(packages):
    listing = run(["dpkg-deb", "--contents", only(packages, "tune_*.deb")])
    paths = {line.split()[5] for line in listing.splitlines()}
    assert "./usr/bin/tune" in paths
    assert "./usr/lib/systemd/system/tune.service" in paths
    assert all(path.startswith("./usr/") for path in paths), paths


@pytest.fixture(scope="module")
def environment(packages, tmp_path_factory):
    """A new virtual environment with the wheel and nothing else."""
    folder = tmp_path_factory.mktemp("wheel") / "env"
    venv.create(folder, with_pip=True, symlinks=True)
    run([folder / "bin" / "pip", "install", "--quiet", "--no-index", "--no-deps", only(packages, "tune-*.whl")])
    return folder


def test_wheel_puts_tune_on_the_path(environment, tmp_path):
    (tmp_path / "study.yaml").write_text(STUDY)
    path = {"PATH": f"{environment}/bin:/usr/bin:/bin"}
    run(["sh", "-c", "tune run study.yaml --data data"], cwd=tmp_path, env=path)
    check_study(run(["sh", "-c", "tune show packaged --data data --json"], cwd=tmp_path, env=path))


def test_every_library_of_the_wheel_is_named_in_its_notices(environment):
    assert unnamed_libraries(environment) == set()


def test_wheel_brings_the_python_client(environment, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("""
import subprocess
import tune_client as tune

server = subprocess.Popen(["tune", "server", "--port", "0", "--data", "data", "--json"], stdout=subprocess.PIPE, text=True)
try:
    import json
    url = json.loads(server.stdout.readline())["url"]
    study = tune.create_study("from-python", metric="loss", goal="min", trials=5, space={"x": {"float": [0, 1]}}, server=url)
    study.optimize(lambda trial: trial.params["x"])
    print(study.best_value == study.best_params["x"])
finally:
    server.terminate()
    server.wait()
""")
    path = {"PATH": f"{environment}/bin:/usr/bin:/bin"}
    assert run([environment / "bin" / "python", script], cwd=tmp_path, env=path).strip() == "True"


def test_wheel_brings_the_loader(environment, packages, tmp_path):
    """In an environment without numpy: the module asks for it when it makes an array of it, not before."""
    if not list((packages.parent / "python" / "tuneloader").glob("_core*.so")):
        pytest.skip("the module tuneloader is not built")
    code = """if True:
        import tuneloader
        with tuneloader.MDSWriter(out="data", columns={"x": "int", "t": "str"}, compression="zstd") as out:
            for i in range(100):
                out.write({"x": i, "t": f"sample {i}"})
        texts, numbers = [], []
        for batch in tuneloader.Dataset("data", batch_size=7, arrays="dlpack"):
            texts += batch["t"]
            numbers += memoryview(batch["x"]).tolist()
        assert numbers == list(range(100)) and texts[99] == "sample 99"
    """
    run([environment / "bin" / "python", "-c", code], cwd=tmp_path, env={"PATH": "/usr/bin:/bin"})


def test_wheel_is_tagged_with_what_its_files_need(packages):
    wheel = only(packages, "tune-*.whl")
    major, minor = map(int, re.search(r"manylinux_(\d+)_(\d+)_x86_64\.whl$", wheel.name).groups())
    assert (2, 17) <= (major, minor) <= (2, 36), "Debian 12 has glibc 2.36"
    run([sys.executable, "-m", "zipfile", "--test", wheel])


def words_of_container(variables):
    """ENTRYPOINT and CMD of the Containerfile, and what its other instructions set."""
    text = re.sub(r"\\\n", "", (ROOT / "cmake/package/Containerfile").read_text())
    words = []
    for instruction in ("ENTRYPOINT", "CMD"):
        (line,) = re.findall(rf"^{instruction} (.*)$", text, re.MULTILINE)
        words += json.loads(line)
    variables["user"] = re.findall(r"^USER (\S+)$", text, re.MULTILINE)
    return words


IN_CONTAINER = """
import base64, json, sys, urllib.error, urllib.request
def status(path, login=None, body=None):
    headers = {"Content-Type": "application/json"}
    if login: headers["Authorization"] = "Basic " + base64.b64encode(login.encode()).decode()
    request = urllib.request.Request("http://127.0.0.1:5000" + path, data=body, headers=headers)
    try: return urllib.request.urlopen(request, timeout=60).status
    except urllib.error.HTTPError as error: return error.code
search = ("/api/2.0/mlflow/experiments/search?max_results=1",)
print(json.dumps([status("/health"), status(*search), status(*search, "admin:password1234"),
                  status(*search, "admin:" + sys.argv[1])]))
"""


def test_container_starts_as_its_file_says(tarball_root, bare_root):
    """The words of ENTRYPOINT and CMD, as the image's user, in a root and a network of their own."""
    said = {}
    words = words_of_container(said)
    assert said["user"] == ["tune"], "not as root"
    shutil.copytree(tarball_root, bare_root / "usr", symlinks=True, dirs_exist_ok=True)
    (bare_root / "data").mkdir()
    os.chown(bare_root / "data", 999, 999)
    (bare_root / "tmp").chmod(0o1777)
    # With /proc, by which the loader finds the libraries beside the program.
    program = ["unshare", "--net", "--mount", "sh", "-c",
               'mount -t proc proc "$0/proc" && ip link set lo up && exec chroot --userspec=999:999 "$0" "$@"', str(bare_root), *words]
    if subprocess.run(["unshare", "--net", "ip", "link", "set", "lo", "up"], capture_output=True).returncode != 0:
        pytest.skip("this container may make no network")
    server = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"})
    try:
        lines = []
        while not (lines and "password of 'admin'" in lines[-1]):
            lines.append(server.stdout.readline())
            assert lines[-1], "".join(lines)
        password = re.search(r"password of 'admin' is (\S+)", lines[-1])[1]
        seen = run(["nsenter", "--net", "--target", server.pid, sys.executable, "-c", IN_CONTAINER, password])
        assert json.loads(seen) == [200, 401, 401, 200]
    finally:
        server.terminate()
        server.communicate(timeout=TIMEOUT_S)
    assert server.returncode == 0


def test_what_is_copied_into_the_image_holds_no_secrets():
    patterns = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    assert {".git", ".venv", "build", "**/node_modules", "**/tune-data"} <= set(patterns)
    assert (ROOT / ".containerignore").read_text() == (ROOT / ".dockerignore").read_text()
    kept = {"setup.sh", "CMakeLists.txt", "CMakePresets.json", "cmake", "base", "tracker", "tuner", "worker", "loader", "web"}
    assert not kept & set(patterns) and all((ROOT / name).exists() for name in kept)


def test_containerfile_names_files_and_targets_that_exist():
    root = pathlib.Path(__file__).resolve().parents[2]
    text = (root / "cmake/package/Containerfile").read_text()
    assert "./setup.sh" in text and (root / "setup.sh").exists()
    assert re.search(r"cmake --preset release .*--target package", re.sub(r"\\\n", "", text))
    instructions = [line.split()[0] for line in re.sub(r"\\\n", "", text).splitlines() if line and line[0] not in "# "]
    known = {"FROM", "COPY", "WORKDIR", "RUN", "USER", "VOLUME", "EXPOSE", "ENTRYPOINT", "CMD"}
    assert set(instructions) <= known
    assert instructions[0] == "FROM"
