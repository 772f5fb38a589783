"""TRL's packing of documents, the peer of our PackedDataset: Hugging Face's own, over Arrow. It packs a whole data set once; what is timed is that
and reading the packed sequences in batches of 8 as numpy arrays, as ours packs and gives them in one go."""

import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import types

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = ROOT / "build" / "peers" / "loader-packing"
PACKAGE = "trl==1.16.0"


def import_packing():
    """trl.data_utils by itself: the package asks for torch, transformers and accelerate, of which packing needs nothing."""
    if not FOLDER.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(FOLDER)]
        subprocess.run([*pip, PACKAGE], check=True)
    is_absent = importlib.util.find_spec("transformers") is None
    if is_absent:  # two names in annotations, and only until it is read: others look whether it is there
        sys.modules["transformers"] = types.SimpleNamespace(PreTrainedTokenizerBase=type("Nobody", (), {}), ProcessorMixin=type("Nothing", (), {}))
    spec = importlib.util.spec_from_file_location("trl_data_utils", FOLDER / "trl" / "data_utils.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if is_absent:
        del sys.modules["transformers"]
    return module


def measure_all():
    import datasets
    from documents import LENGTH, documents

    trl = import_packing()
    datasets.disable_progress_bars()
    with tempfile.TemporaryDirectory() as folder:
        datasets.Dataset.from_dict({"input_ids": [document.astype("int64") for document in documents()]}).save_to_disk(folder)
        source = datasets.load_from_disk(folder)
        tokens = sum(len(row["input_ids"]) for row in source.with_format("numpy"))
        for name, strategy in (("concat", "wrapped"), ("best_fit", "bfd_split")):
            begin = time.perf_counter()
            packed = trl.pack_dataset(source, LENGTH, strategy, {"load_from_cache_file": False, "keep_in_memory": True})
            given = sum(len(row) for batch in packed.select_columns(["input_ids"]).with_format("numpy").iter(8) for row in batch["input_ids"])
            seconds = time.perf_counter() - begin
            assert given == tokens
            for title, value, unit, better in (
                    (f"pack documents into sequences of 2,048 tokens, {name}", tokens / seconds, "tokens/s", "higher"),
                    (f"padding of these, {name}", 100 * (1 - tokens / (len(packed) * LENGTH)), "%", "lower")):
                print(json.dumps({"name": title, "value": value, "unit": unit, "better": better, "peer": PACKAGE.replace("==", " ")}), flush=True)


if __name__ == "__main__":
    measure_all()
