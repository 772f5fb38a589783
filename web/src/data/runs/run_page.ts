// One run, read once and kept up to date by events.
import { signal, type Signal } from "@preact/signals";
import type { RunEvent } from "./columns.ts";
import type { SeriesBook } from "../curves/series_book.ts";
import { fromWire, getJson, mlflow, type WireNumber, type WireRun } from "../wire.ts";

export interface RunView {
    id: string;
    experimentId: string;
    name: string;
    status: string;
    user: string;
    start: number;
    end: number | undefined;
    artifactUri: string;
    isDeleted: boolean;
    params: Map<string, string>;
    /// Latest values.
    metrics: Map<string, { value: number; step: number }>;
    tags: Map<string, string>;
    datasets: { name: string; digest: string }[];
}

function decode(wire: WireRun): RunView {
    const { info, data = {}, inputs = {} } = wire;
    const pairs = (list: { key: string; value: string }[] = []) => new Map(list.map((entry) => [entry.key, entry.value]));
    return {
        id: info.run_id,
        experimentId: info.experiment_id,
        name: info.run_name ?? "",
        status: info.status,
        user: info.user_id ?? "",
        start: Number(info.start_time ?? 0),
        end: info.end_time ? Number(info.end_time) : undefined,
        artifactUri: info.artifact_uri ?? "",
        isDeleted: info.lifecycle_stage === "deleted",
        params: pairs(data.params),
        metrics: new Map((data.metrics ?? []).map((m) => [m.key, { value: fromWire(m.value), step: Number(m.step) }])),
        tags: pairs(data.tags),
        datasets: (inputs.dataset_inputs ?? []).map((input) => ({ name: input.dataset?.name ?? "", digest: input.dataset?.digest ?? "" })),
    };
}

type Points = [key: string, step: number, timestamp: number, value: WireNumber][];

export class RunState {
    readonly run: Signal<RunView | undefined> = signal(undefined);
    readonly error: Signal<unknown> = signal(undefined);
    /// Grows when an artifact was added or replaced; `lastPath` says which.
    readonly artifactVersion = signal(0);
    lastPath = "";

    constructor(
        private readonly id: string,
        private readonly book: SeriesBook,
    ) {}

    async read(): Promise<void> {
        try {
            const answer = await getJson<{ run: WireRun }>(`${mlflow}/runs/get?run_id=${encodeURIComponent(this.id)}`);
            this.run.value = decode(answer.run);
            this.error.value = undefined;
            this.book.refreshAll();
            ++this.artifactVersion.value;
        } catch (error) {
            this.error.value = error;
        }
    }

    apply(type: string, data: unknown): void {
        const run = this.run.peek();
        if (!run || (data as { run_id?: string }).run_id !== this.id) return;
        if (type === "run") this.applyRun(run, data as RunEvent);
        else if (type === "metrics") this.applyPoints(run, (data as { points?: Points }).points ?? []);
        else if (type === "params")
            this.run.value = { ...run, params: new Map([...run.params, ...Object.entries((data as { params: Record<string, string> }).params)]) };
        else if (type === "artifacts") {
            this.lastPath = (data as { path?: string }).path ?? "";
            ++this.artifactVersion.value;
        }
    }

    private applyRun(run: RunView, event: RunEvent): void {
        const tags = new Map(run.tags);
        for (const [key, value] of Object.entries(event.tags ?? {}))
            if (value === null) tags.delete(key);
            else tags.set(key, value);
        this.run.value = {
            ...run,
            tags,
            name: event.name ?? run.name,
            status: event.status ?? run.status,
            start: event.start_time ?? run.start,
            end: event.end_time === undefined ? run.end : (event.end_time ?? undefined),
            isDeleted: event.lifecycle_stage === undefined ? run.isDeleted : event.lifecycle_stage === "deleted",
        };
    }

    private applyPoints(run: RunView, points: Points): void {
        if (points.length === 0) return;
        const metrics = new Map(run.metrics);
        for (const [key, step, timestamp, value] of points) {
            const old = metrics.get(key);
            if (!old || step >= old.step) metrics.set(key, { value: fromWire(value), step });
            this.book.append(this.id, key, step, timestamp, value);
        }
        this.run.value = { ...run, metrics };
    }
}
