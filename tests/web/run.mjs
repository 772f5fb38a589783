// All browser tests against the real `tune server`: node tests/web/run.mjs [FILE...]
// TUNE_BIN_DIR says where `tune` is (default: build/release/bin). Ends with node's summary; exit code 1 on a failure.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const chosen = process.argv.slice(2);
const files = chosen.length > 0 ? chosen : readdirSync(here).filter((name) => name.endsWith(".test.mjs")).map((name) => path.join(here, name));
const { status } = spawnSync(process.execPath, ["--test", "--test-reporter=spec", ...files], { stdio: "inherit" });
process.exit(status ?? 1);
