"""One rank of a training, run by source: `python -c SOURCE --function FOLDER` or `python -c SOURCE FILE WORDS...`.

Its standard input is a pipe that only its parent has the other end of: when that closes, the parent is gone, and this rank, which leads a
process group of its own, ends with all that it started.
"""

import gc
import os
import pickle
import runpy
import signal
import sys
import threading


def end_with_parent() -> None:
    """Ends this process group when nobody holds the other end of standard input any more."""
    pipe = os.dup(0)
    os.set_inheritable(pipe, False)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def watch() -> None:
        os.read(pipe, 1)
        os.killpg(os.getpgid(0), signal.SIGKILL)

    threading.Thread(target=watch, name="tune-parent", daemon=True).start()


def main() -> None:
    """Runs the file as a script, or the function, whose value goes to the folder."""
    if os.environ.pop("TUNE_GANG_PARENT", None):
        end_with_parent()
    if sys.argv[1] != "--function":
        sys.argv = sys.argv[1:]
        sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
        runpy.run_path(sys.argv[0], run_name="__main__")
        return
    folder = sys.argv[2]
    with open(os.path.join(folder, "function"), "rb") as file:
        path, data = pickle.load(file)
    sys.path.extend(each for each in path if each not in sys.path)
    function, args, kwargs = pickle.loads(data)
    value = function(*args, **kwargs)
    try:
        import cloudpickle  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        from pyspark import cloudpickle  # type: ignore[import-untyped,import-not-found,no-redef,unused-ignore]
    target = os.path.join(folder, f"output-{os.environ['RANK']}")
    with open(target + ".new", "wb") as file:
        file.write(cloudpickle.dumps(value))
    os.replace(target + ".new", target)


if __name__ == "__main__":
    main()
    # A model of DistributedDataParallel is a cycle that holds its process group. Freed only as the interpreter ends, Gloo's
    # threads would want a GIL that nobody gives any more, and torch aborts a rank that is done (one in seven, torch 2.15).
    gc.collect()
