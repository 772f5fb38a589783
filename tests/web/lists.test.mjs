// The list of experiments and studies, and the runs table: filter, sort, columns, groups, selection, keyboard.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser, eventually, live, seedStudy, TuneServer } from "./support.mjs";

const server = new TuneServer();
const browser = new Browser();
let digits;
const runIds = [];

before(async () => {
    await server.start();
    await browser.start(server);
    digits = await server.experiment("digits");
    await server.experiment("other");
    for (let i = 0; i < 30; ++i)
        runIds.push((await server.run(digits, `run-${String(i).padStart(2, "0")}`, {
            params: { lr: 10 ** -(1 + (i % 3)), optimizer: i % 2 ? "adamw" : "sgd", constant: 1 },
            tags: { team: i < 10 ? "vision" : "nlp" },
            metrics: [["loss", 1 / (i + 1), 0], ["accuracy", i / 30, 0]],
            status: i < 28 ? (i === 5 ? "FAILED" : "FINISHED") : undefined,
        })).id);
    await seedStudy(server, "sweep", 3);
});
after(async () => {
    await browser.close();
    await server.close();
});

const grid = (page) => page.getByRole("grid", { name: "Runs" });
const rowCount = (page, text) => page.locator("[data-row-count]").filter({ hasText: text }).waitFor();
/// Texts of the first `count` cells of a column, found by its header.
async function columnTexts(page, title, count) {
    const headers = await grid(page).getByRole("columnheader").allTextContents();
    const at = headers.findIndex((text) => text.replace(/[▲▼]/g, "").trim() === title);
    if (at < 0) return `no column ${title} in ${headers}`;
    const cells = await grid(page).locator(`[role=row].data > :nth-child(${at + 1})`).allTextContents();
    return cells.slice(0, count);
}

test("experiments and studies with their counts", async () => {
    const page = await browser.open("/");
    const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: "digits", exact: true }) });
    await row.waitFor();
    const cells = await row.getByRole("cell").allTextContents();
    assert.deepEqual(cells.slice(0, 3), ["digits", "30", "2"]);
    const study = page.getByRole("row").filter({ has: page.getByRole("link", { name: "sweep", exact: true }) }).first();
    assert.match(await study.textContent(), /running.*3 \/ 500.*val_loss min/);
    await page.keyboard.press("/");
    await page.keyboard.type("oth");
    await page.getByRole("link", { name: "digits", exact: true }).waitFor({ state: "detached" });
    await page.getByRole("link", { name: "other" }).waitFor();
    await page.waitForURL((url) => url.search === "?q=oth");
    await page.context().close();
});

test("a new experiment and its runs appear without a reload", async () => {
    const page = await browser.open("/");
    await live(page);
    const id = await server.experiment("fresh");
    await page.getByRole("link", { name: "fresh" }).waitFor();
    await server.run(id, "one");
    const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: "fresh" }) });
    await row.getByRole("cell", { name: "1", exact: true }).first().waitFor();
    await page.context().close();
});

test("MLflow's filter keeps the runs that the server's search finds", async () => {
    const page = await browser.open(`/e/${digits}`);
    await rowCount(page, "30 runs");
    const filters = [
        "metrics.loss < 0.1", "metrics.accuracy >= 0.5 AND params.optimizer = 'sgd'", "tags.team LIKE 'vis%'",
        "status = 'FAILED'", `run_id IN ('${runIds[3]}', '${runIds[4]}') and metrics.loss < 0.9`, "attributes.run_name ILIKE 'RUN-1%'",
        "params.lr != '0.1'", "tags.team IS NULL",
    ];
    for (const filter of filters) {
        const answer = await server.mlflow("runs/search", { experiment_ids: [digits], filter, max_results: 100 });
        const found = answer.runs?.length ?? 0;
        await page.getByRole("textbox", { name: "Filter runs" }).fill(filter);
        await rowCount(page, found === 30 ? "30 runs" : `${found} of 30 runs`);
    }
    await page.context().close();
});

test("a wrong filter says where it is wrong and leaves the table usable", async () => {
    const page = await browser.open(`/e/${digits}?f=${encodeURIComponent("loss < 0.1")}`);
    assert.match(await page.getByRole("alert").textContent(), /no attribute 'loss'.*metrics\.loss.*column 1/);
    await rowCount(page, "30 runs");
    await page.context().close();
});

test("sorting by a metric, both ways, and the address keeps it", async () => {
    const page = await browser.open(`/e/${digits}`);
    await grid(page).getByRole("button", { name: "loss" }).click();
    await grid(page).locator('[aria-sort="descending"]', { hasText: "loss" }).waitFor();
    await eventually(() => columnTexts(page, "loss", 3), ["1", "0.5", "0.3333"]);
    await grid(page).getByRole("button", { name: "loss" }).click();
    await grid(page).locator('[aria-sort="ascending"]', { hasText: "loss" }).waitFor();
    await eventually(() => columnTexts(page, "loss", 2), ["0.03333", "0.03448"]);
    await page.reload();
    await grid(page).locator('[aria-sort="ascending"]', { hasText: "loss" }).waitFor();
    await eventually(() => columnTexts(page, "Run", 2), ["run-29", "run-28"]);
    await page.context().close();
});

test("columns: constants hidden at first, chosen by regular expression", async () => {
    const page = await browser.open(`/e/${digits}`);
    const headers = () => grid(page).getByRole("columnheader").allTextContents();
    await grid(page).getByRole("columnheader", { name: "loss" }).waitFor();
    assert.ok(!(await headers()).includes("constant"));
    await page.getByRole("button", { name: "Columns" }).click();
    await page.getByRole("textbox", { name: "Find columns" }).fill("const|team");
    await page.getByRole("button", { name: "Show matches" }).click();
    await grid(page).getByRole("columnheader", { name: "constant" }).waitFor();
    await page.getByRole("textbox", { name: "Find columns" }).fill("metrics");
    await page.getByRole("button", { name: "Hide matches" }).click();
    await grid(page).getByRole("columnheader", { name: "loss" }).waitFor({ state: "detached" });
    await page.reload();
    await grid(page).getByRole("columnheader", { name: "constant" }).waitFor();
    assert.ok(!(await headers()).some((text) => text.startsWith("loss")));
    await page.context().close();
});

test("groups show the mean of their runs and open", async () => {
    const page = await browser.open(`/e/${digits}?g=params.optimizer`);
    const head = grid(page).getByRole("row").filter({ hasText: "sgd" });
    await head.waitFor();
    const mean = Array.from({ length: 15 }, (_, i) => (2 * i) / 30).reduce((a, b) => a + b) / 15;
    assert.ok((await head.textContent()).includes(mean.toPrecision(4).replace(/0+$/, "")), await head.textContent());
    await eventually(() => grid(page).getByRole("row").count(), 3);
    await head.getByRole("button").click();
    await grid(page).getByRole("row").filter({ hasText: "run-00" }).waitFor();
    await eventually(() => grid(page).getByRole("row").count(), 18);
    await page.context().close();
});

test("selected runs are drawn together and stand in the address", async () => {
    const page = await browser.open(`/e/${digits}?sort=name`);
    await grid(page).getByRole("checkbox", { name: "Select", exact: true }).nth(0).click();
    await grid(page).getByRole("checkbox", { name: "Select", exact: true }).nth(2).click();
    await page.getByText("2 selected runs").waitFor();
    await eventually(() => page.getByRole("list", { name: "loss by run" }).getByRole("listitem").allTextContents(), ["run-001", "run-020.3333"]);
    await page.reload();
    await page.getByText("2 selected runs").waitFor();
    await page.context().close();
});

test("the grid by keyboard alone: move, select a range, open", async () => {
    const page = await browser.open(`/e/${digits}?sort=name&charts=0`);
    await grid(page).focus();
    for (const key of ["ArrowDown", "Space", "Shift+ArrowDown", "Shift+ArrowDown"]) await page.keyboard.press(key);
    await page.getByText("3 runs selected").waitFor();
    await eventually(() => grid(page).locator('[aria-selected="true"]').count(), 3);
    await page.keyboard.press("Control+End");
    await page.locator('[role="grid"][aria-activedescendant^="cell-29-"]').waitFor();
    await page.keyboard.press("Control+Home");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "run-00" }).waitFor();
    await page.goBack();
    await grid(page).waitFor();
    await page.context().close();
});

test("the help opens with ?, names the keys and closes", async () => {
    const page = await browser.open("/");
    await page.getByText("Live", { exact: true }).waitFor(); // the page listens to keys from here on
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys and filters" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await page.context().close();
});

test("five thousand runs: few rows in the document, scrolled to any place", async () => {
    const big = await server.experiment("big");
    const base = Date.now();
    const create = async (i) => server.mlflow("runs/create", { experiment_id: big, run_name: `r${i}`, start_time: base + i });
    for (let i = 0; i < 5_000; i += 100) await Promise.all(Array.from({ length: 100 }, (_, k) => create(i + k)));
    const page = await browser.open(`/e/${big}?charts=0`);
    await rowCount(page, "5,000 runs");
    assert.ok((await grid(page).getByRole("row").count()) <= 60);
    assert.equal(await grid(page).getAttribute("aria-rowcount"), "5001");
    await grid(page).evaluate((element) => (element.scrollTop = element.scrollHeight));
    await grid(page).getByRole("link", { name: "r0", exact: true }).waitFor();
    await page.getByRole("textbox", { name: "Find text" }).fill("r3777");
    await rowCount(page, "1 of 5,000 runs");
    await page.context().close();
});

test("empty places name the next command", async () => {
    const page = await browser.open("/");
    await page.getByRole("link", { name: "other" }).click();
    await page.getByText("No runs yet").waitFor();
    assert.match(await page.locator(".empty pre").textContent(), /MLFLOW_TRACKING_URI=http:\/\/127\.0\.0\.1:\d+\nexport MLFLOW_EXPERIMENT_NAME='other'/);
    for (const [route, text] of [["/e/999", "There is no experiment 999"], ["/r/abc", "There is no run abc"], ["/s/nope", "There is no study “nope”"], ["/x/y", "There is no such page"]]) {
        await page.goto(server.url + route);
        await page.getByText(text).waitFor();
    }
    browser.faults = browser.faults.filter((fault) => !/status of 404/.test(fault));
    await page.context().close();
});

test("nothing was written to the console and no other host was asked", () => {
    assert.deepEqual(browser.faults, []);
});
