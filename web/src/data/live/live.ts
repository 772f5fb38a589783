// Live updates for pages: subscribe to topics, get events in batches of one frame, and be told when to read
// everything anew.
import { base } from "../base.ts";
import { batch, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { EventLink, type LinkMessage, type LiveState } from "./event_link.ts";
import type { TabMessage } from "./events_worker.ts";

export const liveState = signal<LiveState>("connecting");

/// The build puts the worker's file name here; empty: none.
declare const EVENTS_WORKER: string;

export interface Listener {
    /// Called for every event of any topic that a page of this browser reads: look at the ids.
    event(type: string, data: unknown): void;
    /// Called when the topics' connection first stands, and again whenever events were lost.
    read(): void;
}

interface Subscription {
    topics: readonly string[];
    listener: Listener;
    isOpen: boolean;
}

const subscriptions = new Set<Subscription>();
let queue: { type: string; data: unknown }[] = [];
let frame = 0;

function flush(): void {
    frame = 0;
    const events = queue;
    queue = [];
    batch(() => {
        for (const { type, data } of events)
            for (const subscription of subscriptions) subscription.listener.event(type, data);
    });
}

/// Hidden pages get no frames; a timer serves them once a second.
function schedule(): void {
    if (frame !== 0) return;
    frame = 1;
    if (document.hidden) setTimeout(flush, 1000);
    else requestAnimationFrame(flush);
}

function receive(message: LinkMessage | { kind: "ping" }): void {
    switch (message.kind) {
        case "ping":
            post?.({ kind: "pong" });
            return;
        case "state":
            liveState.value = message.state;
            return;
        case "event":
            queue.push(message);
            schedule();
            return;
        case "resync":
            queue = [];
            for (const subscription of subscriptions) subscription.listener.read();
            return;
        case "opened":
            for (const subscription of subscriptions) {
                if (subscription.isOpen || !subscription.topics.every((topic) => message.topics.includes(topic))) continue;
                subscription.isOpen = true;
                subscription.listener.read();
            }
    }
}

let post: ((message: TabMessage) => void) | undefined;

function connect(): (message: TabMessage) => void {
    if (typeof SharedWorker !== "undefined" && EVENTS_WORKER !== "") {
        try {
            const worker = new SharedWorker(base + EVENTS_WORKER, { type: "module", name: "tune-events" });
            worker.port.onmessage = (event: MessageEvent<LinkMessage>) => receive(event.data);
            return (message) => worker.port.postMessage(message);
        } catch {
            // Not allowed here (privacy settings): a connection of our own.
        }
    }
    const link = new EventLink(receive);
    return (message) => {
        if (message.kind === "topics") link.setTopics(message.topics);
    };
}

function announce(): void {
    post ??= connect();
    post({ kind: "topics", topics: [...subscriptions].flatMap((subscription) => [...subscription.topics]) });
}

addEventListener("pagehide", () => post?.({ kind: "bye" }));
addEventListener("pageshow", (event) => {
    if (event.persisted) announce();
});

/// Longest wait for the connection before the page reads its state without it.
const kOpenWait_ms = 400;

/// Starts listening. `listener.read` is called as soon as the connection stands, so that nothing happens
/// between the read and the first event; and after kOpenWait_ms in any case. Returns what ends it.
export function subscribe(topics: readonly string[], listener: Listener): () => void {
    const subscription: Subscription = { topics, listener, isOpen: false };
    subscriptions.add(subscription);
    announce();
    const timer = setTimeout(() => {
        if (!subscription.isOpen) listener.read();
    }, kOpenWait_ms);
    return () => {
        clearTimeout(timer);
        subscriptions.delete(subscription);
        queueMicrotask(announce);
    };
}

/// As subscribe, for a component's life; `key` says when the topics are others.
export function useLive(key: string, topics: readonly string[], listener: Listener): void {
    useEffect(() => subscribe(topics, listener), [key]);
}
