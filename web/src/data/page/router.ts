// The address bar as signals. Pages read `route` and `query`; links navigate without a reload.
import { computed, signal } from "@preact/signals";
import { base } from "../base.ts";
import { fromMlflow, parsePath, readView, writeView, type View } from "./url.ts";

const path = signal(location.pathname);
const hash = signal("");
export const query = signal(location.search.slice(1));
export const route = computed(() => parsePath(path.value, hash.value));

function sync(): void {
    const ours = fromMlflow(location.hash);
    if (ours) history.replaceState(null, "", ours);
    path.value = location.pathname;
    hash.value = location.hash;
    query.value = location.search.slice(1);
}
addEventListener("popstate", sync);
addEventListener("hashchange", sync);
sync();

export function navigate(url: string): void {
    history.pushState(null, "", url);
    sync();
    scrollTo(0, 0);
}

/// Clicks on links to our own pages change the address only; those with a modifier stay the browser's.
addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    const link = (event.target as Element | null)?.closest?.("a");
    if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
    if (link.pathname.startsWith(`${base}/api/`) || link.getAttribute("href")?.startsWith("#")) return;
    event.preventDefault();
    navigate(link.pathname + link.search);
});

/// The fields of `defaults` as the address has them. `set` writes them back: as a new entry of the
/// history when `isStep`, else in place (typing in a filter).
export function viewState<T extends View>(defaults: T) {
    const current = computed(() => readView(query.value, defaults));
    const set = (change: Partial<T>, isStep = false) => {
        const text = writeView({ ...current.peek(), ...change } as T, defaults);
        const url = path.peek() + (text ? `?${text}` : "");
        if (isStep) history.pushState(null, "", url);
        else history.replaceState(null, "", url);
        query.value = text;
    };
    return { current, set };
}
