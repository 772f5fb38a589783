// One connection of server-sent events for any set of topics. Runs in the shared worker, so that all tabs of
// a browser use one connection (HTTP/1.1 allows six a host), or in the page where there is no such worker.
import { base } from "../base.ts";

export type LiveState = "connecting" | "live" | "offline";

export type LinkMessage =
    | { kind: "event"; type: string; data: unknown }
    | { kind: "state"; state: LiveState }
    /// A connection that carries these topics is open: what is read from now on has no gap.
    | { kind: "opened"; topics: string[] }
    /// Events were lost: read the state anew.
    | { kind: "resync" };

const kTypes = ["run", "metrics", "params", "artifacts", "trial", "study", "experiment", "activity"];
const kRetryFirst_ms = 1000;
const kRetryMax_ms = 10_000;
/// The server refuses more. Only a browser with dozens of open tabs gets there; the tabs that come last are not live.
const kTopicsMax = 64;
/// Ids remembered to drop what two overlapping connections both delivered.
const kSeenMax = 1024;

export class EventLink {
    private source: EventSource | undefined;
    private topics: string[] = [];
    private wanted: string[] = [];
    private seen = new Set<string>();
    private lastId = "";
    private retry_ms = kRetryFirst_ms;
    private timer: ReturnType<typeof setTimeout> | undefined;
    private scheduled = false;

    constructor(private readonly deliver: (message: LinkMessage) => void) {}

    /// Topics may change many times in one turn; the connection follows once, after it.
    setTopics(topics: readonly string[]): void {
        this.wanted = [...new Set(topics)].slice(0, kTopicsMax);
        if (this.scheduled) return;
        this.scheduled = true;
        queueMicrotask(() => {
            this.scheduled = false;
            this.follow();
        });
    }

    private follow(): void {
        const covered = this.wanted.every((topic) => this.topics.includes(topic));
        if (covered && this.source) {
            if (this.source.readyState === EventSource.OPEN) this.deliver({ kind: "opened", topics: this.topics });
            return;
        }
        if (this.wanted.length === 0) return;
        this.open(false);
    }

    /// Opens a connection for the wanted topics; the old one goes only when the new one stands.
    private open(afterFailure: boolean): void {
        clearTimeout(this.timer);
        const topics = this.wanted;
        const previous = this.source;
        // After a failure the server is asked for what was missed, and answers `resync` if it has that no more.
        const resume = afterFailure && this.lastId !== "" ? `&last_event_id=${this.lastId}` : "";
        const source = new EventSource(`${base}/api/ui/events?topics=${topics.map(encodeURIComponent).join("&topics=")}${resume}`);
        this.source = source;
        this.topics = topics;
        if (!previous) this.deliver({ kind: "state", state: afterFailure ? "offline" : "connecting" });
        // Without an id to resume from, the server cannot know that something was missed.
        let mayHaveMissed = afterFailure && resume === "";
        source.onopen = () => {
            previous?.close();
            this.retry_ms = kRetryFirst_ms;
            this.deliver({ kind: "state", state: "live" });
            if (mayHaveMissed) this.deliver({ kind: "resync" });
            mayHaveMissed = false;
            this.deliver({ kind: "opened", topics });
        };
        source.onerror = () => {
            if (source !== this.source) return;
            previous?.close();
            mayHaveMissed = !hasId;
            this.deliver({ kind: "state", state: "offline" });
            // The browser retries by itself while the state is CONNECTING; after a refusal it does not.
            if (source.readyState === EventSource.CLOSED) this.retryLater();
        };
        let hasId = resume !== "";
        for (const type of kTypes)
            source.addEventListener(type, (event) => {
                hasId = true;
                this.receive(type, event as MessageEvent<string>);
            });
        source.addEventListener("resync", () => this.deliver({ kind: "resync" }));
    }

    private retryLater(): void {
        this.source = undefined;
        this.topics = [];
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.open(true), this.retry_ms);
        this.retry_ms = Math.min(this.retry_ms * 2, kRetryMax_ms);
    }

    private receive(type: string, event: MessageEvent<string>): void {
        const id = event.lastEventId;
        if (id !== "") {
            if (this.seen.has(id)) return;
            if (this.seen.size >= kSeenMax) for (const old of [...this.seen].slice(0, kSeenMax / 2)) this.seen.delete(old);
            this.seen.add(id);
            this.lastId = id;
        }
        try {
            this.deliver({ kind: "event", type, data: JSON.parse(event.data) });
        } catch {
            this.deliver({ kind: "resync" });
        }
    }
}
