"""/metrics, read by Prometheus's own parser."""

import urllib.request

import requests
from prometheus_client.parser import text_string_to_metric_families


def families(server):
    answer = requests.get(f"{server.url}/metrics", timeout=30)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    found = {family.name: family for family in text_string_to_metric_families(answer.text)}
    assert len(found) == answer.text.count("# TYPE "), "each family once"
    return found


def value(found, family, sample=None, **labels):
    for one in found[family].samples:
        if one.name == (sample or family) and all(one.labels.get(key) == text for key, text in labels.items()):
            return one.value
    raise AssertionError(f"no sample {family} {labels}")


def test_the_stats_count_what_happened(own_server):
    import mlflow

    server = own_server()
    client = mlflow.MlflowClient(tracking_uri=server.url)
    run = client.create_run("0").info.run_id
    for step in range(20):
        client.log_metric(run, "m", step, step=step)
    assert requests.get(f"{server.url}/api/2.0/mlflow/runs/get?run_id=nosuch", timeout=30).status_code == 404
    assert requests.get(f"{server.url}/api/2.0/nosuch", timeout=30).status_code == 404
    found = families(server)
    requests_total = "tune_http_requests"
    assert value(found, requests_total, requests_total + "_total", group="runs/log-metric", status="200") == 20
    assert value(found, requests_total, requests_total + "_total", group="runs", status="200") >= 1
    assert value(found, requests_total, requests_total + "_total", group="runs", status="404") == 1
    assert value(found, requests_total, requests_total + "_total", group="unmatched", status="404") == 1
    seconds = found["tune_http_request_seconds"]
    assert seconds.type == "histogram"
    for one in seconds.samples:
        if one.name.endswith("_count") and one.labels["group"] == "runs":
            infinite = value(found, seconds.name, seconds.name + "_bucket", group="runs", le="+Inf")
            assert one.value == infinite >= 2
    buckets = [one.value for one in seconds.samples
               if one.name.endswith("_bucket") and one.labels["group"] == "runs/log-metric"]
    assert buckets == sorted(buckets), "buckets are cumulative"
    assert value(found, "tune_commits", "tune_commits_total") >= 21
    assert value(found, "tune_writer_group_commands", "tune_writer_group_commands_sum") >= 21
    assert value(found, "tune_commit_seconds", "tune_commit_seconds_sum") > 0
    for name in ("tune_writer_queue_commands", "tune_read_queue_jobs", "tune_webhook_queue_deliveries",
                 "tune_event_listeners", "tune_alert_rules"):
        assert value(found, name) == 0, name
    assert value(found, "tune_database_bytes", file="db") > 0
    assert value(found, "tune_database_bytes", file="wal") > 0
    # Memory is given back between two readings, so they are compared until they are near.
    rss_kb = lambda: value(families(server), "process_resident_memory_bytes") / 1024
    assert any(abs(rss_kb() - server.memory_kb()) < 4096 for _ in range(50))
    assert 5 < value(found, "process_open_fds") < 100 < value(found, "process_max_fds")
    assert value(found, "tune_build_info", mlflow="3.17.2") == 1


def test_listeners_and_connections_are_counted(own_server):
    server = own_server()
    stream = requests.get(f"{server.url}/api/ui/events?topics=experiments", stream=True, timeout=30)
    assert stream.status_code == 200
    found = families(server)
    assert value(found, "tune_event_listeners") == 1
    assert value(found, "tune_http_connections") >= 2
    stream.close()


def test_each_request_is_counted_once(own_server):
    server = own_server()
    families(server)
    for _ in range(3):
        assert requests.get(f"{server.url}/health", timeout=30).status_code == 200
    found = families(server)
    name = "tune_http_requests"
    assert value(found, name, name + "_total", group="server", status="200") == 4


def test_each_request_has_a_group(own_server):
    server = own_server()
    expected = {"/": "page", "/api/openapi.json": "docs", "/api/docs": "docs", "/health": "server",
                "/metrics": "server", "/api/ui/experiments": "ui", "/api/2.0/tune/studies": "tune/studies",
                "/api/3.0/mlflow/server-info": "server-info", "/api/2.0/mlflow-artifacts/artifacts": "artifacts"}
    name = "tune_http_requests"
    for path, group in expected.items():
        before = {one.labels["group"]: one.value for one in families(server)[name].samples if one.labels["status"] == "200"}
        with urllib.request.urlopen(server.url + path, timeout=30) as answer:  # the page is in no description
            assert answer.status == 200
        after = {one.labels["group"]: one.value for one in families(server)[name].samples if one.labels["status"] == "200"}
        assert all(each != "" for each in after), path
        if group != "server":  # reading the stats counts there
            assert after[group] == before.get(group, 0) + 1, path
    grouped = [one for family in families(server).values() for one in family.samples if "group" in one.labels]
    assert grouped and all(one.labels["group"] for one in grouped)


def test_the_host_check_holds_here_too(own_server):
    server = own_server()
    answer = requests.get(f"{server.url}/metrics", headers={"Host": "evil.example"}, timeout=30)
    assert answer.status_code == 403
    assert requests.post(f"{server.url}/metrics", timeout=30).status_code == 405
