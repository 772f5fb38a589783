"""Searches of the model registry that registry_script.py plays: filters, orders, pages."""

from registry_player import PROMPT

FILTERS = [
    "",
    "name = 'a'",
    "name != 'a'",
    "name LIKE 'a%'",
    "name LIKE 'A%'",
    "name ILIKE 'A%'",
    "name IN ('a', 'b')",
    "name NOT IN ('a', 'b')",
    "attribute.name = 'a'",
    "attributes.name = 'a'",
    'name = "a"',
    "`name` = 'a'",
    "\"name\" = 'a'",
    "attribute.`name` = 'a'",
    "name > 'a'",
    "name = a",
    "name = 1",
    "name = 'a' AND name = 'b'",
    "tags.k = '2'",
    "tag.k = '2'",
    "tags.k != '2'",
    "tags.k LIKE '2%'",
    "tags.k ILIKE '2%'",
    "tags.`k` = '2'",
    "tags.\"k\" = '2'",
    "tags.k > '2'",
    "tags.k IN ('2')",
    "tags.k = 2",
    "tags.k = '2' AND tags.l = ''",
    "tags.k = '2' AND tags.k LIKE '%2'",
    "params.k = '2'",
    "metrics.k = 2",
    "nothing = 'a'",
    "run_id = '$run'",
    "run_id IN ('$run', 'x')",
    "run_id NOT IN ('$run')",
    "run_id != '$run'",
    "run_id LIKE '%'",
    "source_path = 's3://b/p'",
    "source_path LIKE 's3://b%'",
    "source_path IN ('a')",
    "version_number = 1",
    "version_number > 5",
    "version_number = '1'",
    "version_number = 1.5",
    "version_number = 'x'",
    "version_number != 1",
    "version_number IN (1)",
    "version_number LIKE '1'",
    "version_number <= 2 AND name = 'b'",
    "creation_timestamp > 1",
    "last_updated_timestamp > 1",
    "version = 1",
    "name IS NULL",
    "tags.k IS NOT NULL",
    "name = 'a';",
    "name = 'a'; name = 'b'",
    "name",
    "name =",
    "= 'a'",
    "(name = 'a')x",
    "name IN ()",
    "name IN ('a',)",
    "name IN (1)",
    "name IN 'a'",
    "name = ('a')",
    "name NOT LIKE 'a'",
    "name like 'a%'",
    "  name   =   'a'  ",
    "name = 'a' AND",
    "AND name = 'a'",
    "name = 'a''b\"c'",
    "name = '%'",
    "name LIKE 'a_b'",
    "name = '' AND tags.x = ''",
    "' OR 1=1 --",
    "name = 'x' UNION SELECT 1",
    f"tags.`{PROMPT}` = 'true'",
    f"tag.`{PROMPT}` = 'true'",
    f"tags.`{PROMPT}` = 'True'",
    f"tags.`{PROMPT}` = 'TRUE'",
    f"tags.`{PROMPT}` != 'true'",
    f"tags.`{PROMPT}` = 'false'",
    f"tags.`{PROMPT}` != 'false'",
    f"tags.`{PROMPT}` LIKE 'true'",
    f"tags.`{PROMPT}` = 'x'",
    f"name = 'p' AND tags.`{PROMPT}` = 'true'",
    f"name = 'a' AND tag.`{PROMPT}` != 'true'",
    f"tags.`{PROMPT}` != 'true' AND tags.`{PROMPT}` = 'true'",
    f"tags.`{PROMPT}` = 'true' AND tags.`{PROMPT}` != 'x'",
    "name = 'p'",
    "name LIKE '%' AND tags.k = '2' AND name != 'z'",
]
ORDERS = [
    ["name"],
    ["name ASC"],
    ["name DESC"],
    ["timestamp"],
    ["timestamp DESC"],
    ["last_updated_timestamp desc"],
    ["creation_timestamp"],
    ["creation_timestamp DESC", "name"],
    ["name", "name"],
    ["name", "name DESC"],
    ["timestamp", "last_updated_timestamp"],
    ["version_number"],
    ["version_number DESC", "name DESC"],
    ["name asc desc"],
    ["name upwards"],
    [""],
    ["tags.k"],
    ["tags.name"],
    ["attribute.name"],
    ["metrics.k"],
    ["`name`"],
    ['"name" DESC'],
    ["name DESC", "version_number ASC"],
    ["x"],
    ["version_number, name"],
    "name DESC",
]


def searches():
    for call in ["registered-models/search", "model-versions/search"]:
        for text in FILTERS:
            yield "GET", call, {"filter": text, "order_by": ["name DESC"]}
        for order in ORDERS:
            yield "GET", call, {"order_by": order, "filter": "name != 'no'"}
        yield "GET", call, {}
        for limit in ["1001", "200001", "x", "1.5", "", "1000", "200000", "-5"]:
            yield "GET", call, {"max_results": limit, "filter": "name = 'a'"}
        yield "GET", call, {"page_token": "???", "max_results": "1"}
        yield "GET", call, {"max_results": "2", "order_by": ["name"]}, {"token": "next_page_token"}
        yield "GET", call, {"max_results": "2", "order_by": ["name"], "page_token": "$token"}, {
            "token": "next_page_token"
        }
        yield "GET", call, {"max_results": "200", "order_by": ["name"], "page_token": "$token"}
    yield "GET", "model-versions/search", {"max_results": "0"}
    for call in ["registered-models", "model-versions"]:
        yield "POST", f"{call}/search", {"filter": ""}
        yield "POST", f"{call}/get", {"name": "a"}
        yield "GET", f"{call}/list", {}
