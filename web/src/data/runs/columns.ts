// The runs of an experiment as columns, patched in place by live events. 100,000 runs x 20 columns are
// plain arrays: sorting, filtering and grouping need no round trip.
import { isInternal, orderMetrics } from "./metric_order.ts";
import { fromWire, type WireColumns, type WireNumber, type WireRuns } from "../wire.ts";

/// MLflow's run status by its number.
export const kStatusNames = ["", "RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED"] as const;
export type StatusName = (typeof kStatusNames)[number];

/// One entry a run; undefined: the run has no such key.
export type Column<T> = (T | undefined)[];

export interface RunTable {
    experiment: WireRuns["experiment"];
    truncated: boolean;
    ids: string[];
    rowOf: Map<string, number>;
    name: string[];
    user: string[];
    status: string[];
    start: number[];
    end: Column<number>;
    artifactUri: string[];
    deleted: boolean[];
    params: Map<string, Column<string>>;
    metrics: Map<string, Column<number>>;
    tags: Map<string, Column<string>>;
}

function decodeColumns<W, T>(wire: WireColumns<W>, count: number, decode: (value: W) => T): Map<string, Column<T>> {
    const columns = new Map<string, Column<T>>();
    for (const [key, block] of Object.entries(wire)) {
        const column: Column<T> = new Array(count).fill(undefined);
        if (Array.isArray(block)) {
            block.forEach((value, row) => {
                if (value !== null) column[row] = decode(value);
            });
        } else {
            block.rows.forEach((row, i) => {
                column[row] = decode(block.values[i] as W);
            });
        }
        columns.set(key, column);
    }
    return columns;
}

export function decodeRuns(wire: WireRuns): RunTable {
    const at = wire.attributes;
    const deleted = new Array<boolean>(wire.count).fill(false);
    for (const row of at.deleted) deleted[row] = true;
    const same = (text: string) => text;
    return {
        experiment: wire.experiment,
        truncated: wire.truncated,
        ids: at.run_id,
        rowOf: new Map(at.run_id.map((id, row) => [id, row])),
        name: at.name,
        user: at.user,
        status: at.status.map((code) => kStatusNames[code] ?? ""),
        start: at.start_ms,
        end: at.end_ms.map((ms) => ms ?? undefined),
        artifactUri: at.artifact_uri,
        deleted,
        params: decodeColumns(wire.params, wire.count, same),
        metrics: decodeColumns(wire.metrics, wire.count, fromWire),
        tags: decodeColumns(wire.tags, wire.count, same),
    };
}

// --- live events ---------------------------------------------------------------------------------

/// What changed of a run: all of it when it is new, else some fields; a tag that is null was deleted.
export interface RunEvent {
    run_id: string;
    experiment_id: string;
    name?: string;
    status?: string;
    start_time?: number | null;
    end_time?: number | null;
    lifecycle_stage?: string;
    tags?: Record<string, string | null>;
}
export interface MetricsEvent {
    run_id: string;
    latest: Record<string, { value: WireNumber; step: number; timestamp: number }>;
}
export interface ParamsEvent {
    run_id: string;
    params: Record<string, string>;
}

/// Params read as numbers; forgotten when the column changes.
const numbersOf = new WeakMap<Column<string>, (number | undefined)[] | "text">();

function put<T>(columns: Map<string, Column<T>>, key: string, row: number, value: T, count: number): void {
    let column = columns.get(key);
    if (!column) {
        column = new Array<T | undefined>(count).fill(undefined);
        columns.set(key, column);
    }
    column[row] = value;
    numbersOf.delete(column as Column<string>);
}

function addRow(table: RunTable, id: string): number {
    const row = table.ids.push(id) - 1;
    table.rowOf.set(id, row);
    table.name.push("");
    table.user.push("");
    table.status.push("RUNNING");
    table.start.push(0);
    table.end.push(undefined);
    table.artifactUri.push("");
    table.deleted.push(false);
    for (const columns of [table.params, table.metrics, table.tags])
        for (const column of columns.values()) column.push(undefined);
    return row;
}

/// A run that is new, or whose name, status, times, life cycle or tags changed.
export function applyRun(table: RunTable, event: RunEvent): void {
    const known = table.rowOf.get(event.run_id);
    if (known === undefined && event.status === undefined) return;
    const row = known ?? addRow(table, event.run_id);
    if (event.name !== undefined) table.name[row] = event.name;
    if (event.status !== undefined) table.status[row] = event.status;
    if (event.start_time !== undefined) table.start[row] = event.start_time ?? 0;
    if (event.end_time !== undefined) table.end[row] = event.end_time || undefined;
    if (event.lifecycle_stage !== undefined) table.deleted[row] = event.lifecycle_stage === "deleted";
    for (const [key, value] of Object.entries(event.tags ?? {}))
        if (value !== null) put(table.tags, key, row, value, table.ids.length);
        else if (table.tags.get(key)) table.tags.get(key)![row] = undefined;
}

/// Runs that are not in the table belong to another experiment: their events come over the same connection.
export function applyMetrics(table: RunTable, event: MetricsEvent): void {
    const row = table.rowOf.get(event.run_id);
    if (row === undefined) return;
    for (const [key, point] of Object.entries(event.latest))
        put(table.metrics, key, row, fromWire(point.value), table.ids.length);
}

export function applyParams(table: RunTable, event: ParamsEvent): void {
    const row = table.rowOf.get(event.run_id);
    if (row === undefined) return;
    for (const [key, value] of Object.entries(event.params)) put(table.params, key, row, value, table.ids.length);
}

// --- what the grid shows -------------------------------------------------------------------------

export type CellValue = string | number | undefined;

export interface ColumnSpec {
    /// "name", "status", "params.lr", "metrics.loss", "tags.team".
    id: string;
    title: string;
    kind: "text" | "number" | "time" | "duration" | "status";
    get: (row: number) => CellValue;
}

/// A text that is a number as people and Python write it.
export function parseNumber(text: string): number | undefined {
    if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text.trim())) return undefined;
    return Number(text);
}

/// The numbers of a column, or "text" if one of its values is none.
function readNumbers(column: Column<string>): (number | undefined)[] | "text" {
    const numbers: (number | undefined)[] = new Array(column.length);
    for (let row = 0; row < column.length; ++row) {
        const text = column[row];
        if (text === undefined) continue;
        const value = parseNumber(text);
        if (value === undefined) return "text";
        numbers[row] = value;
    }
    return numbers;
}

function paramSpec(table: RunTable, key: string): ColumnSpec {
    const column = table.params.get(key) ?? [];
    let numbers = numbersOf.get(column);
    if (!numbers) numbersOf.set(column, (numbers = readNumbers(column)));
    const known = numbers;
    if (known === "text") return { id: `params.${key}`, title: key, kind: "text", get: (r) => column[r] };
    return { id: `params.${key}`, title: key, kind: "number", get: (r) => known[r] };
}

const kAttributes: Record<string, (table: RunTable, nowMs: number) => ColumnSpec> = {
    name: (t) => ({ id: "name", title: "Run", kind: "text", get: (r) => t.name[r] }),
    status: (t) => ({ id: "status", title: "Status", kind: "status", get: (r) => t.tags.get("tune.state")?.[r] ?? t.status[r]?.toLowerCase() }),
    start: (t) => ({ id: "start", title: "Started", kind: "time", get: (r) => t.start[r] || undefined }),
    duration: (t, nowMs) => ({
        id: "duration",
        title: "Duration",
        kind: "duration",
        get: (r) => {
            const start = t.start[r];
            const end = t.end[r] ?? (t.status[r] === "RUNNING" ? nowMs : undefined);
            return start && end !== undefined ? Math.max(0, end - start) : undefined;
        },
    }),
    user: (t) => ({ id: "user", title: "User", kind: "text", get: (r) => t.user[r] || undefined }),
    run_id: (t) => ({ id: "run_id", title: "Run id", kind: "text", get: (r) => t.ids[r] }),
};

/// The column with this id, or undefined when the table has none (yet).
export function columnSpec(table: RunTable, id: string, nowMs: number): ColumnSpec | undefined {
    if (Object.hasOwn(kAttributes, id)) return kAttributes[id]!(table, nowMs);
    const dot = id.indexOf(".");
    const key = id.slice(dot + 1);
    if (id.startsWith("params.")) return table.params.has(key) ? paramSpec(table, key) : undefined;
    if (id.startsWith("metrics.")) {
        const column = table.metrics.get(key);
        return column && { id, title: key, kind: "number", get: (r) => column[r] };
    }
    if (id.startsWith("tags.")) {
        const column = table.tags.get(key);
        return column && { id, title: key, kind: "text", get: (r) => column[r] };
    }
    return undefined;
}

/// Every column that can be shown, attributes first. `metrics`: the table's, in the order of orderMetrics.
export function allColumnIds(table: RunTable, metrics: readonly string[] = orderMetrics(table.metrics.keys())): string[] {
    return [
        ...Object.keys(kAttributes),
        ...metrics.map((key) => `metrics.${key}`),
        ...[...table.params.keys()].sort().map((key) => `params.${key}`),
        ...[...table.tags.keys()].sort().map((key) => `tags.${key}`),
    ];
}

/// Params that differ between runs (all, with one run): constants are noise in a table.
function differing(table: RunTable): string[] {
    const keys = [...table.params.keys()].sort();
    if (table.ids.length < 2) return keys;
    return keys.filter((key) => {
        const column = table.params.get(key)!;
        return column.some((value) => value !== column[0]);
    });
}

export const kDefaultMetrics = 6;
export const kDefaultParams = 10;

/// The columns a reader sees before choosing: how it went and how good it is, what was tried, when.
export function defaultColumnIds(table: RunTable, metrics: readonly string[] = orderMetrics(table.metrics.keys())): string[] {
    // The machine's come last, unless the study names one.
    const end = metrics.map((key) => !isInternal(key)).lastIndexOf(true) + 1;
    return [
        "status",
        ...metrics.slice(0, Math.min(end, kDefaultMetrics)).map((key) => `metrics.${key}`),
        "start",
        "duration",
        ...differing(table).slice(0, kDefaultParams).map((key) => `params.${key}`),
    ];
}
