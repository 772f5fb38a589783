// A small table of runs in the shape that the server answers.
import { load } from "./load.mjs";

const columns = await load("data/runs/columns.ts");

export function wireRuns() {
    return {
        experiment: { experiment_id: "1", name: "digits", lifecycle_stage: "active", artifact_location: "", created_ms: 1, tags: {} },
        truncated: false,
        count: 5,
        attributes: {
            run_id: ["a", "b", "c", "d", "e"],
            name: ["Ann", "bob", "Cy", "dan_1", "eve%"],
            user: ["u1", "u1", "u2", "u2", ""],
            status: [3, 1, 4, 5, 3],
            start_ms: [5000, 4000, 3000, 2000, 1000],
            end_ms: [6000, null, 3500, 2100, 9000],
            artifact_uri: ["x", "x", "x", "x", "x"],
            deleted: [4],
        },
        params: { lr: ["0.1", "1e-3", "0.01", null, "0.1"], opt: ["sgd", "adamw", "sgd", "adamw", "it's"], rare: { rows: [2], values: ["x,y"] } },
        metrics: { loss: [0.5, 0.25, "NaN", null, 2], "val/acc %": { rows: [0, 1], values: [0.9, 0.95] } },
        tags: { team: ["vision", null, "Vision-2", null, null], "tune.state": { rows: [3], values: ["pruned"] } },
    };
}

export const makeTable = () => columns.decodeRuns(wireRuns());
export { columns };
