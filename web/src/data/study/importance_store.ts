// Which parameters matter, as the server computes it for one objective (PED-ANOVA, tuner/importance). It changes only
// when trials end, so it is read again then: one request at a time, and no more often than once a second.
import { signal, type Signal } from "@preact/signals";
import { getJson, tuneApi } from "../wire.ts";

/// Fewer complete trials say nothing about importance.
export const kImportanceTrialsMin = 10;
const kAgain_ms = 1000;

export interface Importance {
    name: string;
    /// Shares of 1, descending.
    share: number;
}

export interface WireImportance {
    metric: string;
    trials: number;
    importances: Importance[];
}

/// Empty when too few trials are complete.
export function rankingOf(answer: WireImportance): readonly Importance[] {
    return answer.trials < kImportanceTrialsMin ? [] : answer.importances.map(({ name, share }) => ({ name, share }));
}

export class ImportanceStore {
    readonly ranking: Signal<readonly Importance[]> = signal([]);
    private readonly url: string;
    private readonly abort = new AbortController();
    private metric = "";
    private wanted = "";
    private shown = "";
    private isBusy = false;

    constructor(
        study: string,
        private readonly read: (url: string, abort: AbortSignal) => Promise<WireImportance> = getJson,
        private readonly again_ms = kAgain_ms,
    ) {
        this.url = `${tuneApi}/studies/${encodeURIComponent(study)}/importance`;
    }

    /// `finished`: complete trials with a value. `space`: whatever changes when the space does.
    ask(metric: string, finished: number, space: string): void {
        if (metric !== this.metric || finished < kImportanceTrialsMin) this.ranking.value = [];
        this.metric = metric;
        this.wanted = finished < kImportanceTrialsMin ? "" : JSON.stringify([metric, finished, space]);
        if (!this.isBusy) void this.catchUp();
    }

    close(): void {
        this.abort.abort();
    }

    private async catchUp(): Promise<void> {
        this.isBusy = true;
        while (this.wanted !== this.shown && !this.abort.signal.aborted) {
            const asked = this.wanted;
            if (asked !== "") await this.readOnce();
            this.shown = asked;
        }
        this.isBusy = false;
    }

    private async readOnce(): Promise<void> {
        const metric = this.metric;
        try {
            const answer = await this.read(`${this.url}?metric=${encodeURIComponent(metric)}`, this.abort.signal);
            if (metric === this.metric && this.wanted !== "") this.ranking.value = rankingOf(answer);
        } catch {
            // The bars stay as they are until the next trial ends.
        }
        await new Promise((resolve) => setTimeout(resolve, this.again_ms));
    }
}
