// What the page says: states, empty lists, errors, short messages.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { ApiError } from "../data/wire.ts";

export function State({ name, pill = false }: { name: string; pill?: boolean }) {
    const text = name.toLowerCase();
    return (
        <span class={`state ${text} ${pill ? "pill" : ""}`}>
            <i />
            {text}
        </span>
    );
}

/// An empty list says why it is empty and what to type next. `isPage`: there is nothing else on the page.
export function Empty({ title, children, command, isPage = false }: { title: string; children?: ComponentChildren; command?: string; isPage?: boolean }) {
    return (
        <div class="empty">
            {isPage ? <h1>{title}</h1> : <strong>{title}</strong>}
            {children && <div>{children}</div>}
            {command && <pre tabIndex={0}>{command}</pre>}
        </div>
    );
}

export function Fault({ error, retry }: { error: unknown; retry?: () => void }) {
    const text = error instanceof Error ? error.message : String(error);
    return (
        <div class="notice" role="alert">
            <span class="grow">{text}</span>
            {retry && (
                <button class="button small" type="button" onClick={retry}>
                    Try again
                </button>
            )}
        </div>
    );
}

export const isMissing = (error: unknown) => error instanceof ApiError && error.status === 404;

export function Loading({ label = "Loading" }: { label?: string }) {
    return (
        <div class="loading" role="status">
            <span class="hidden">{label}</span>
        </div>
    );
}

/// A way back from what a message says was done.
interface Undo {
    label: string;
    act: () => void;
}

const toasts = signal<{ id: number; text: string; undo?: Undo }[]>([]);
let nextToast = 0;
const kToast_ms = 5000;
/// Long enough to notice a mistake and reach for the button.
const kUndoToast_ms = 20_000;

function close(id: number): void {
    toasts.value = toasts.value.filter((entry) => entry.id !== id);
}

/// A short message that goes by itself; read aloud by screen readers.
export function toast(text: string, undo?: Undo): void {
    const id = ++nextToast;
    toasts.value = [...toasts.value, { id, text, undo }];
    setTimeout(() => close(id), undo ? kUndoToast_ms : kToast_ms);
}

export function Toasts() {
    return (
        <div class="toasts" role="status" aria-live="polite">
            {toasts.value.map((entry) => (
                <div class="toast" key={entry.id}>
                    {entry.text}
                    {entry.undo && (
                        <button
                            class="button small"
                            type="button"
                            onClick={() => {
                                close(entry.id);
                                entry.undo!.act();
                            }}
                        >
                            {entry.undo.label}
                        </button>
                    )}
                </div>
            ))}
        </div>
    );
}

export async function copy(text: string, what: string): Promise<void> {
    try {
        await navigator.clipboard.writeText(text);
        toast(`Copied ${what}.`);
    } catch {
        toast("The browser did not allow copying.");
    }
}
