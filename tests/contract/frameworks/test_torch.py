"""PyTorch through mlflow.pytorch: log_model and load_model, state dicts, autologging of Lightning, on the CPU."""

import importlib.util
import tempfile

import absent_cuda
import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("setup.sh ran with --no-torch", allow_module_level=True)
# While tests are collected, not when they run: in other tests MLflow tries `import torch`, which works only after this, and which
# a process can try once.
with tempfile.TemporaryDirectory(prefix="absent-cuda-") as _folder:
    absent_cuda.prepare(_folder)
    import torch as imported


@pytest.fixture(scope="module")
def torch():
    imported.manual_seed(0)
    imported.set_num_threads(1)
    return imported


def network(torch):
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))


def test_models_are_logged_and_loaded(mlflow, client, experiment, torch):
    model = network(torch)
    example = torch.randn(2, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with mlflow.start_run(experiment_id=experiment) as run:
        mlflow.log_params({"lr": 0.1, "layers": 2})
        for epoch in range(3):
            loss = model(example).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mlflow.log_metric("loss", loss.item(), step=epoch)
        info = mlflow.pytorch.log_model(model, name="net", serialization_format="pickle", step=2,
                                         pip_requirements=["torch"])
        mlflow.pytorch.log_state_dict(model.state_dict(), "checkpoint")
    expected = model(example)
    for address in (f"models:/{info.model_id}", f"runs:/{run.info.run_id}/net"):
        assert torch.equal(mlflow.pytorch.load_model(address)(example), expected), address
    state = mlflow.pytorch.load_state_dict(f"runs:/{run.info.run_id}/checkpoint")
    assert torch.equal(state["0.weight"], model[0].weight)
    assert [point.step for point in client.get_metric_history(run.info.run_id, "loss")] == [0, 1, 2]
    logged = client.get_logged_model(info.model_id)
    assert logged.params["layers"] == "2"
    assert {metric.key for metric in logged.metrics} == {"loss"}


def test_a_registered_model_is_loaded_by_its_alias(mlflow, client, experiment, torch):
    model = network(torch)
    name = f"torch-{experiment}"
    with mlflow.start_run(experiment_id=experiment):
        mlflow.pytorch.log_model(model, name="net", serialization_format="pickle", registered_model_name=name,
                                  pip_requirements=["torch"])
    client.set_registered_model_alias(name, "best", "1")
    example = torch.randn(5, 4)
    assert torch.equal(mlflow.pytorch.load_model(f"models:/{name}@best")(example), model(example))
    predicted = mlflow.pyfunc.load_model(f"models:/{name}/1").predict(example.numpy())
    assert torch.allclose(torch.tensor(predicted), model(example))


def test_autologging_of_lightning(mlflow, client, experiment, torch, tmp_path):
    import pytorch_lightning as lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = network(torch)

        def forward(self, x):
            return self.net(x)

        def training_step(self, batch, _):
            loss = torch.nn.functional.cross_entropy(self(batch[0]), batch[1])
            self.log("train_loss", loss, on_epoch=True, on_step=False)
            return loss

        def validation_step(self, batch, _):
            self.log("val_loss", torch.nn.functional.cross_entropy(self(batch[0]), batch[1]))

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.05)

    inputs = torch.randn(32, 4)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, inputs.argmax(1) % 3), batch_size=8)
    module = Module()
    mlflow.pytorch.autolog(silent=True, checkpoint_monitor="val_loss")
    try:
        with mlflow.start_run(experiment_id=experiment) as run:
            trainer = lightning.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_progress_bar=False,
                                        enable_model_summary=False, default_root_dir=tmp_path)
            trainer.fit(module, loader, loader)
    finally:
        mlflow.pytorch.autolog(disable=True)
    read = client.get_run(run.info.run_id)
    assert read.data.params["optimizer_name"] == "Adam" and read.data.params["lr"] == "0.05"
    assert read.data.params["epochs"] == "3"
    history = client.get_metric_history(run.info.run_id, "train_loss")
    assert len(history) == 3 and history[2].value < history[0].value
    assert [point.step for point in client.get_metric_history(run.info.run_id, "val_loss")]
    files = [each.path for each in client.list_artifacts(run.info.run_id)]
    assert "model_summary.txt" in files and "checkpoints" in files
    model = read.outputs.model_outputs[0].model_id
    loaded = mlflow.pytorch.load_model(f"models:/{model}")
    assert torch.equal(loaded(inputs), module(inputs))
