// Loads a TypeScript module of src/ in Node: bundled by esbuild, imported from memory.
import { fileURLToPath } from "node:url";
import path from "node:path";
import * as esbuild from "esbuild";

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), "..");

export async function load(file) {
    const result = await esbuild.build({
        absWorkingDir: root,
        entryPoints: [path.join("src", file)],
        bundle: true,
        format: "esm",
        platform: "neutral",
        mainFields: ["module", "main"],
        jsx: "automatic",
        jsxImportSource: "preact",
        write: false,
        target: "es2022",
    });
    const text = Buffer.from(result.outputFiles[0].contents).toString("base64");
    return import(`data:text/javascript;base64,${text}`);
}
