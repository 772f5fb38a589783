"""What the tests of logged models share: torch without CUDA's libraries, and stock MLflow loading a model."""

import os
import subprocess
import sys

import numpy as np

from agent_support import PYTHON, ROOT

# Loads by both flavors and predicts, in a process of its own: torch of PyPI needs what `absent_cuda` gives it.
LOADER = """
import sys
import mlflow, numpy, torch
uri, model, samples, out = sys.argv[1:]
if uri:
    mlflow.set_tracking_uri(uri)
x = numpy.load(samples)
module = mlflow.pytorch.load_model(model)
assert isinstance(module, torch.jit.ScriptModule) and not module.training
with torch.no_grad():
    direct = module(torch.from_numpy(x)).numpy()
loaded = mlflow.pyfunc.load_model(model)
numpy.savez(out, pytorch=direct, pyfunc=loaded.predict(x), run=str(loaded.metadata.run_id),
            size=loaded.metadata.model_size_bytes, uuid=loaded.metadata.model_uuid,
            signature=str(loaded.metadata.signature.to_dict()))
"""


def make_torch_work(folder):
    """What the environment needs so that torch of PyPI starts where CUDA's libraries are not."""
    sys.path.append(str(ROOT / "tests" / "contract" / "frameworks"))
    import absent_cuda

    return absent_cuda.for_processes(folder)


def predict(model, samples, folder, environment, uri=""):
    """The predictions for `samples` that stock MLflow makes of the model at this URI or path."""
    np.save(folder / "samples.npy", samples)
    out = folder / "predictions.npz"
    done = subprocess.run([PYTHON, "-c", LOADER, uri, str(model), folder / "samples.npy", out], capture_output=True,
                          text=True, timeout=300, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    with np.load(out) as file:
        return dict(file)


def cross_entropy(scores, labels):
    scores = scores.astype(np.float64)
    top = scores.max(-1, keepdims=True)
    logs = scores - top - np.log(np.exp(scores - top).sum(-1, keepdims=True))
    return -np.take_along_axis(logs, np.asarray(labels)[..., None], -1).mean()
