// A study and all its trials, read once and kept up to date by events.
import { signal, type Signal } from "@preact/signals";
import { decodeSeries } from "../curves/series.ts";
import { mergeTrial, type Study, type Trial, type WireTrial } from "./study.ts";
import { getJson, postJson, remove, tuneApi, type WireSeries } from "../wire.ts";

/// Curves that may have gaps are read anew at most this often, and this many at once.
const kRepair_ms = 1000;
const kRepairRunsMax = 100;
const kCurveBuckets = 1000;

const studyUrl = (name: string) => `${tuneApi}/studies/${encodeURIComponent(name)}`;

/// Brings back a deleted study with its runs.
export async function restoreStudy(name: string): Promise<void> {
    await postJson(`${studyUrl(name)}/restore`, {});
}

export class StudyStore {
    readonly study: Signal<Study | undefined> = signal(undefined);
    /// In the order of their numbers. A new array whenever one changed.
    readonly trials: Signal<readonly Trial[]> = signal([]);
    readonly error: Signal<unknown> = signal(undefined);
    private readonly url: string;
    private reading: AbortController | undefined;
    private broken = new Set<number>();
    private timer: ReturnType<typeof setTimeout> | undefined;

    constructor(private readonly name: string) {
        this.url = studyUrl(name);
    }

    async read(): Promise<void> {
        this.reading?.abort();
        const abort = new AbortController();
        this.reading = abort;
        try {
            const answer = await getJson<Study & { study?: Study }>(this.url, abort.signal);
            const trials: Trial[] = [];
            let token = "";
            do {
                const page = await getJson<{ trials?: WireTrial[]; next_page_token?: string }>(
                    `${this.url}/trials?fields=intermediate${token && `&page_token=${encodeURIComponent(token)}`}`,
                    abort.signal,
                );
                for (const wire of page.trials ?? []) trials[wire.number] = mergeTrial(undefined, wire);
                token = page.next_page_token ?? "";
            } while (token !== "");
            this.study.value = answer.study ?? answer;
            this.trials.value = trials.filter((trial) => trial !== undefined);
            this.error.value = undefined;
        } catch (error) {
            if (!abort.signal.aborted) this.error.value = error;
        }
    }

    close(): void {
        this.reading?.abort();
        clearTimeout(this.timer);
    }

    apply(type: string, data: unknown): void {
        const study = this.study.peek();
        if (!study) return;
        if (type === "study" && (data as Study).name === this.name) {
            this.study.value = { ...study, ...(data as Partial<Study>) };
        } else if (type === "trial" && (data as { study: string }).study === this.name) {
            this.applyTrial((data as { trial: WireTrial }).trial);
        }
    }

    async act(action: "pause" | "resume" | "stop"): Promise<void> {
        const answer = await postJson<Study & { study?: Study }>(`${this.url}/${action}`, {});
        const next = answer.study ?? answer;
        const study = this.study.peek();
        if (study && next.state) this.study.value = { ...study, ...next };
    }

    /// The study is read by its new name afterwards: by another store.
    async rename(name: string): Promise<void> {
        await postJson(`${this.url}/rename`, { name });
    }

    /// The study and its runs can be restored by its name.
    async erase(): Promise<void> {
        await remove(this.url);
    }

    private applyTrial(wire: WireTrial): void {
        const trials = this.trials.peek();
        const at = trials.findIndex((trial) => trial.number === wire.number);
        const old = at < 0 ? undefined : trials[at];
        const next = mergeTrial(old, wire);
        const copy = [...trials];
        if (at >= 0) copy[at] = next;
        else copy.push(next);
        this.trials.value = at >= 0 ? copy : copy.sort((a, b) => a.number - b.number);
        // Events are coalesced, so the steps between two of them may be missing here.
        const hasEnded = next.state !== "running" && next.state !== "queued";
        const before = old?.steps.length ?? 0;
        const isGap = next.steps.length > before && before > 0 && next.steps.at(-1)! - next.steps.at(-2)! > 1;
        if ((isGap || (hasEnded && old?.state !== next.state)) && next.runId) this.repair(next.number);
    }

    private repair(number: number): void {
        this.broken.add(number);
        this.timer ??= setTimeout(() => {
            this.timer = undefined;
            void this.readCurves();
        }, kRepair_ms);
    }

    private async readCurves(): Promise<void> {
        const study = this.study.peek();
        if (!study) return;
        const numbers = [...this.broken].slice(0, kRepairRunsMax);
        for (const number of numbers) this.broken.delete(number);
        const byRun = new Map(this.trials.peek().filter((trial) => numbers.includes(trial.number)).map((trial) => [trial.runId, trial.number]));
        const query = `run_ids=${[...byRun.keys()].join()}&metric=${encodeURIComponent(study.metric.name)}&buckets=${kCurveBuckets}`;
        try {
            const answer = await getJson<{ metrics: { series: WireSeries[] }[] }>(`/api/ui/series?${query}`);
            const curves = new Map(answer.metrics[0]!.series.map((wire) => [byRun.get(wire.run_id), decodeSeries(wire)]));
            this.trials.value = this.trials.peek().map((trial) => {
                const curve = curves.get(trial.number);
                return curve && curve.step.length >= trial.steps.length ? { ...trial, steps: curve.step, values: curve.last } : trial;
            });
        } catch {
            // The curves stay as they are until the next event or reload.
        }
        if (this.broken.size > 0) this.repair([...this.broken][0]!);
    }
}
