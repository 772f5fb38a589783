// The shared worker: one EventLink for all tabs. A tab posts the topics it wants; one that does not answer pings
// (it crashed, or the browser froze it) is forgotten and comes back with its next message.
import { EventLink, type LinkMessage, type LiveState } from "./event_link.ts";

export type TabMessage = { kind: "topics"; topics: string[] } | { kind: "bye" } | { kind: "pong" };

interface Tab {
    topics: string[];
    missedPings: number;
}

const kPing_ms = 20_000;
const kMissedPingsMax = 4;

const tabs = new Map<MessagePort, Tab>();
let state: LiveState = "connecting";

const link = new EventLink((message: LinkMessage) => {
    if (message.kind === "state") state = message.state;
    for (const port of tabs.keys()) port.postMessage(message);
});

function follow(): void {
    link.setTopics([...tabs.values()].flatMap((tab) => tab.topics));
}

function receive(port: MessagePort, message: TabMessage): void {
    if (message.kind === "bye") {
        tabs.delete(port);
    } else {
        const tab = tabs.get(port) ?? { topics: [], missedPings: 0 };
        tabs.set(port, tab);
        tab.missedPings = 0;
        if (message.kind === "pong") return;
        tab.topics = message.topics;
        port.postMessage({ kind: "state", state } satisfies LinkMessage);
    }
    follow();
}

setInterval(() => {
    for (const [port, tab] of tabs)
        if (++tab.missedPings > kMissedPingsMax) tabs.delete(port);
        else port.postMessage({ kind: "ping" });
}, kPing_ms);

addEventListener("connect", (event) => {
    const port = (event as MessageEvent).ports[0]!;
    port.onmessage = (message: MessageEvent<TabMessage>) => receive(port, message.data);
});
