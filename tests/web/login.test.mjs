// Where users log in: the form, who is shown, what each sees, logging out.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { axeFaults, Browser, TuneServer } from "./support.mjs";

const kPassword = "a password of twelve";
const server = new TuneServer();
const browser = new Browser();

async function post(path, body, authorization) {
    const headers = { "Content-Type": "application/json", Authorization: authorization };
    const answer = await fetch(server.url + path, { method: "POST", headers, body: JSON.stringify(body) });
    assert.equal(answer.status, 200, await answer.clone().text());
    return answer.json();
}
const basic = (name) => "Basic " + Buffer.from(`${name}:${kPassword}`).toString("base64");

before(async () => {
    await server.start(0, ["--auth", "basic", "--default-permission", "NO_PERMISSIONS"]);
    await browser.start(server);
    const owner = `Bearer ${server.token}`;
    for (const username of ["ann", "bob"]) await post("/api/2.0/mlflow/users/create", { username, password: kPassword }, owner);
    for (const name of ["ann", "bob"]) await post("/api/2.0/mlflow/experiments/create", { name: `digits of ${name}` }, basic(name));
});
after(async () => {
    await browser.close();
    await server.close();
});

test("the page asks for a login, shows what the user may see, and logs out", async () => {
    const page = await browser.open("/", { isGuest: true });
    await page.getByRole("heading", { name: "Log in to tune" }).waitFor();
    assert.deepEqual(await axeFaults(page), []);
    await page.getByLabel("User name").fill("ann");
    await page.getByLabel("Password").fill(kPassword);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByText("digits of ann").waitFor();
    assert.equal(await page.getByText("digits of bob").count(), 0);
    await page.locator(".user", { hasText: "ann" }).waitFor();
    assert.deepEqual(await axeFaults(page), []);
    const cookies = await page.context().cookies();
    const session = cookies.find((cookie) => cookie.name.startsWith("tune_user_"));
    assert.equal(session.httpOnly, true);
    assert.equal(session.sameSite, "Strict");
    await page.reload();
    await page.getByText("digits of ann").waitFor();
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByRole("heading", { name: "Log in to tune" }).waitFor();
    assert.equal((await page.context().cookies()).some((cookie) => cookie.name.startsWith("tune_user_")), false);
    await page.context().close();
});
