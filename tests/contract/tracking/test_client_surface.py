"""Every public method of MlflowClient and of the fluent API is called by a contract test, or listed with a reason."""

import ast
import inspect
import pathlib
import re

CONTRACT_TESTS = pathlib.Path(__file__).resolve().parents[1]

NOT_OURS = {
    "traces, spans, assessments, prompts, evaluation data sets, MCP servers, workspaces (MLflow's GenAI part: answered by 404)":
        r"trace|span|assessment|expectation|feedback|issue|session|prompt|mcp_|workspace|_dataset$|^(get|create|delete)_dataset"
        r"|dataset_tag|dataset_to|dataset_from|^search_datasets$|^gateway$|override_",
    "makes no request": r"^(tracking_uri|is_tracking_uri_set|get_tracking_uri|get_registry_uri|set_registry_uri|doctor|login|test|pyfunc|"
                        r"MlflowException|ActiveRun|ActiveModel|Image|validate_evaluation_results|get_model_version_stages|context)$",
    "of Databricks' Unity Catalog only": r"^(import_checkpoints|link_)",
    "the same function as mlflow.models.evaluate": r"^evaluate$",
}


def calls_of_tests():
    """Names of all functions and methods that the contract tests call."""
    names = set()
    for path in CONTRACT_TESTS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                names.add(node.func.attr)
    return names


def is_exempt(name):
    return any(re.search(pattern, name) for pattern in NOT_OURS.values())


def test_every_method_of_the_client_is_called(mlflow):
    methods = {name for name, _ in inspect.getmembers(mlflow.MlflowClient) if not name.startswith("_")}
    missing = {name for name in methods - calls_of_tests() if not is_exempt(name)}
    assert not missing, f"called by no test and not listed: {sorted(missing)}"


def test_every_fluent_function_is_called(mlflow):
    names = set(mlflow.__all__)
    missing = {name for name in names - calls_of_tests() if not is_exempt(name)}
    assert not missing, f"called by no test and not listed: {sorted(missing)}"


def test_the_exemptions_are_still_needed(mlflow):
    names = set(mlflow.__all__) | {name for name, _ in inspect.getmembers(mlflow.MlflowClient)}
    for reason, pattern in NOT_OURS.items():
        assert any(re.search(pattern, name) for name in names), reason
