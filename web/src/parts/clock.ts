// The time that "5 min ago" and durations of running runs are counted to; moves once in a while.
import { signal } from "@preact/signals";

export const nowMs = signal(Date.now());
setInterval(() => {
    if (!document.hidden) nowMs.value = Date.now();
}, 5000);
