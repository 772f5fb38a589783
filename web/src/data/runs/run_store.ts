// The runs of one experiment, read once and kept up to date by events.
import { signal, type Signal } from "@preact/signals";
import { applyMetrics, applyParams, applyRun, decodeRuns, type MetricsEvent, type ParamsEvent, type RunEvent, type RunTable } from "./columns.ts";
import { getJson, type WireRuns } from "../wire.ts";

export class RunStore {
    readonly table: Signal<RunTable | undefined> = signal(undefined);
    /// Grows whenever the content of the table changed.
    readonly version = signal(0);
    readonly error: Signal<unknown> = signal(undefined);
    /// Told about each metric that got new points.
    onMetrics: (runId: string, keys: string[]) => void = () => {};
    private reading: AbortController | undefined;

    constructor(
        private readonly experimentId: string,
        private readonly view: string,
    ) {}

    async read(): Promise<void> {
        this.reading?.abort();
        const abort = new AbortController();
        this.reading = abort;
        try {
            const url = `/api/ui/experiments/${encodeURIComponent(this.experimentId)}/runs?view=${this.view}`;
            this.table.value = decodeRuns(await getJson<WireRuns>(url, abort.signal));
            this.error.value = undefined;
            ++this.version.value;
        } catch (error) {
            if (!abort.signal.aborted) this.error.value = error;
        }
    }

    close(): void {
        this.reading?.abort();
    }

    apply(type: string, data: unknown): void {
        const table = this.table.peek();
        if (!table) return;
        if (type === "run" && (data as RunEvent).experiment_id === this.experimentId) {
            applyRun(table, data as RunEvent);
        } else if (type === "metrics" && (data as MetricsEvent).latest) {
            const event = data as MetricsEvent;
            applyMetrics(table, event);
            this.onMetrics(event.run_id, Object.keys(event.latest));
        } else if (type === "params") {
            applyParams(table, data as ParamsEvent);
        } else if (type === "experiment" && (data as { experiment_id: string }).experiment_id === this.experimentId) {
            table.experiment.name = (data as { name: string }).name;
        } else {
            return;
        }
        ++this.version.value;
    }
}
