"""Several tune-trainer processes that train one model, started as torchrun starts them."""

import socket
import subprocess

from trainer_support import TIMEOUT_S, Finished, clean_environment, command


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start_ranks(size, port=None, only=None, environment=None, **parameters):
    """Popen objects by rank; `only`: the ranks that are started; `environment`: more variables, for all of them."""
    port = port or free_port()
    processes = []
    for rank in range(size) if only is None else only:
        variables = dict(RANK=rank, LOCAL_RANK=rank, WORLD_SIZE=size, LOCAL_WORLD_SIZE=size, MASTER_ADDR="127.0.0.1",
                         MASTER_PORT=port)
        variables = {**{name: str(value) for name, value in variables.items()}, **(environment or {})}
        processes.append(subprocess.Popen(command(**parameters), env=clean_environment(**variables), stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE, text=True))
    return processes


def finish(processes):
    """Waits for all; by rank."""
    ends = []
    for process in processes:
        process.stdout, process.stderr = process.communicate(timeout=TIMEOUT_S)
        ends.append(Finished(process))
    return ends


def train_ranks(size, **parameters):
    return finish(start_ranks(size, **parameters))
