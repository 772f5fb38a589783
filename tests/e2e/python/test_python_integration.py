"""tune_client.integration with the real libraries: what they report arrives, a trial that falls behind ends their training."""

import importlib.util
import sys
import tempfile

import numpy
import pytest

import tune_client as tune
from study_support import ROOT

HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="setup.sh ran with --no-torch")
if HAS_TORCH:
    # While tests are collected: a process can try `import torch` once, and it works only after this.
    sys.path.append(str(next((ROOT / "tests" / "contract").rglob("absent_cuda.py")).parent))
    import absent_cuda

    with tempfile.TemporaryDirectory(prefix="absent-cuda-") as _folder:
        absent_cuda.prepare(_folder)
        import torch

        torch.set_num_threads(1)

ROUNDS = 6
GENERATOR = numpy.random.default_rng(7)
X = GENERATOR.normal(size=(200, 4)).astype("float32")
Y = (X @ numpy.array([1, -2, 3, 0.5], "float32") + 0.1 * GENERATOR.normal(size=200)).astype("float32")
TRAIN, VALID = slice(0, 150), slice(150, 200)
GOOD, BAD = 0.1, 1e-9  # a learning rate, and one with which nothing is learnt


def run_two(url, name, train):
    """Trains with GOOD, then with BAD, under a pruner. `train(trial, rate)` gives the library's own history of the metric."""
    study = tune.create_study(name, space={"rate": {"float": [0, 1]}}, metric="loss", direction="minimize", n_trials=2,
                              pruner={"type": "median", "startup": 1}, sampler="random", server=url)
    study.enqueue_trial({"rate": GOOD})
    study.enqueue_trial({"rate": BAD})
    histories = []

    def objective(trial):
        histories.append(train(trial, trial.params["rate"]))
        return histories[-1][-1]

    study.optimize(objective)
    good, bad = study.trials
    assert [good.state.name, bad.state.name] == ["COMPLETE", "PRUNED"]
    [history] = histories  # the other training was ended by what the callback raised
    assert len(history) == ROUNDS
    assert good.intermediate_values == pytest.approx(dict(enumerate(map(float, history))))
    assert 1 <= len(bad.intermediate_values) < ROUNDS
    return study


def test_lightgbm(url):
    import lightgbm

    from tune_client.integration import LightGBMPruningCallback

    def train(trial, rate):
        history = {}
        data = lightgbm.Dataset(X[TRAIN], Y[TRAIN])
        lightgbm.train({"objective": "l2", "learning_rate": rate, "verbose": -1, "num_threads": 1}, data, ROUNDS,
                       valid_sets=[lightgbm.Dataset(X[VALID], Y[VALID], reference=data)],
                       callbacks=[lightgbm.record_evaluation(history), LightGBMPruningCallback(trial, "l2")])
        return history["valid_0"]["l2"]

    run_two(url, "lightgbm", train)


def test_lightgbm_in_scikit_learns_form_and_in_folds(url):
    import lightgbm

    from tune_client.integration.lightgbm import LightGBMPruningCallback

    def fit(trial, rate):
        model = lightgbm.LGBMRegressor(n_estimators=ROUNDS, learning_rate=rate, verbose=-1, n_jobs=1)
        model.fit(X[TRAIN], Y[TRAIN], eval_set=[(X[VALID], Y[VALID])], eval_metric="l2",
                  callbacks=[LightGBMPruningCallback(trial, "l2")])
        return model.evals_result_["valid_0"]["l2"]

    run_two(url, "lightgbm-sklearn", fit)

    def folds(trial, rate):
        found = lightgbm.cv({"objective": "l2", "learning_rate": rate, "verbose": -1, "num_threads": 1},
                            lightgbm.Dataset(X, Y), ROUNDS, nfold=2, stratified=False, seed=7,
                            callbacks=[LightGBMPruningCallback(trial, "l2", valid_name="valid")])
        return found["valid l2-mean"]

    run_two(url, "lightgbm-cv", folds)


def test_xgboost(url):
    import xgboost

    from tune_client.integration import XGBoostPruningCallback

    def train(trial, rate):
        history = {}
        valid = xgboost.DMatrix(X[VALID], Y[VALID])
        xgboost.train({"eta": rate, "nthread": 1}, xgboost.DMatrix(X[TRAIN], Y[TRAIN]), ROUNDS, evals=[(valid, "valid")],
                      evals_result=history, verbose_eval=False, callbacks=[XGBoostPruningCallback(trial, "valid-rmse")])
        return history["valid"]["rmse"]

    run_two(url, "xgboost", train)

    def folds(trial, rate):
        return list(xgboost.cv({"eta": rate, "nthread": 1}, xgboost.DMatrix(X, Y), ROUNDS, nfold=2, seed=7,
                               callbacks=[XGBoostPruningCallback(trial, "test-rmse")])["test-rmse-mean"])

    run_two(url, "xgboost-cv", folds)

    def fit(trial, rate):
        model = xgboost.XGBRegressor(n_estimators=ROUNDS, learning_rate=rate, n_jobs=1,
                                     callbacks=[XGBoostPruningCallback(trial, "validation_0-rmse")])
        model.fit(X[TRAIN], Y[TRAIN], eval_set=[(X[VALID], Y[VALID])], verbose=False)
        return model.evals_result()["validation_0"]["rmse"]

    run_two(url, "xgboost-sklearn", fit)


@needs_torch
def test_keras(url, tmp_path, monkeypatch):
    if "keras" not in sys.modules:
        monkeypatch.setenv("KERAS_HOME", str(tmp_path))  # it writes its settings there
        monkeypatch.setenv("KERAS_BACKEND", "torch")
    import keras

    from tune_client.integration import KerasPruningCallback

    def train(trial, rate):
        keras.utils.set_random_seed(7)
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
        model.compile(optimizer=keras.optimizers.SGD(rate), loss="mse")
        done = model.fit(X[TRAIN], Y[TRAIN], epochs=ROUNDS, batch_size=50, verbose=0,
                         validation_data=(X[VALID], Y[VALID]), callbacks=[KerasPruningCallback(trial, "val_loss")])
        return done.history["val_loss"]

    run_two(url, "keras", train)


@needs_torch
@pytest.mark.filterwarnings("ignore")
def test_lightning(url, tmp_path):
    import pytorch_lightning as lightning

    from tune_client.integration import PyTorchLightningPruningCallback

    assert issubclass(PyTorchLightningPruningCallback, lightning.Callback)

    class Module(lightning.LightningModule):
        def __init__(self, rate):
            super().__init__()
            self.net, self.rate, self.history = torch.nn.Linear(4, 1), rate, []

        def loss(self, batch):
            return torch.nn.functional.mse_loss(self.net(batch[0])[:, 0], batch[1])

        def training_step(self, batch, _):
            return self.loss(batch)

        def validation_step(self, batch, _):
            self.log("val_loss", self.loss(batch))

        def on_validation_epoch_end(self):
            if not self.trainer.sanity_checking:
                self.history.append(float(self.trainer.callback_metrics["val_loss"]))

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=self.rate)

    def loader(part):
        data = torch.utils.data.TensorDataset(torch.tensor(X[part]), torch.tensor(Y[part]))
        return torch.utils.data.DataLoader(data, batch_size=50)

    def trainer_of(trial, **more):
        return lightning.Trainer(max_epochs=ROUNDS, accelerator="cpu", logger=False, enable_checkpointing=False,
                                 enable_progress_bar=False, enable_model_summary=False, default_root_dir=tmp_path,
                                 callbacks=[PyTorchLightningPruningCallback(trial, "val_loss")], **more)

    def train(trial, rate):
        lightning.seed_everything(7, verbose=False)
        module = Module(rate)
        trainer_of(trial).fit(module, loader(TRAIN), loader(VALID))
        return module.history

    study = run_two(url, "lightning", train)

    class Several:
        world_size = 2

    with pytest.raises(ValueError, match="for a training in one process, and this one has 2"):
        PyTorchLightningPruningCallback(study.trials[0], "val_loss").setup(Several(), None, "fit")


def test_a_metric_that_the_training_does_not_have_is_said_once(url):
    import xgboost

    from tune_client.integration import XGBoostPruningCallback

    study = tune.create_study("misspelt", space={"rate": {"float": [0, 1]}}, metric="loss", n_trials=1, server=url)
    trial = study.ask()
    data = xgboost.DMatrix(X, Y)
    with pytest.warns(UserWarning, match="the training has no 'valid-rsme' at step 0, so nothing is reported; "
                                         "it has valid-rmse$") as warned:
        xgboost.train({"nthread": 1}, data, 3, evals=[(data, "valid")], verbose_eval=False,
                      callbacks=[XGBoostPruningCallback(trial, "valid-rsme")])
    assert len([one for one in warned if "valid-rsme" in str(one.message)]) == 1
    trial.tell(1.0)


def test_an_interval_reports_each_so_many_steps(url):
    import lightgbm

    from tune_client.integration import LightGBMPruningCallback

    study = tune.create_study("interval", space={"rate": {"float": [0, 1]}}, metric="loss", n_trials=1, server=url)
    with study.ask() as trial:
        data = lightgbm.Dataset(X, Y)
        lightgbm.train({"objective": "l2", "verbose": -1, "num_threads": 1}, data, ROUNDS, valid_sets=[data],
                       valid_names=["valid_0"], callbacks=[LightGBMPruningCallback(trial, "l2", report_interval=3)])
    assert list(study.trials[0].intermediate_values) == [2, 5]
    with pytest.raises(ValueError, match="the interval must be at least 1, found 0"):
        LightGBMPruningCallback(trial, "l2", report_interval=0)


def test_what_there_is_no_callback_for():
    import tune_client.integration as integration

    assert set(integration.__all__) == set(integration._MODULES)
    with pytest.raises(AttributeError, match="has no attribute 'CatBoost'"):
        integration.CatBoost
