// The first charts of many, and more on request: ten thousand metrics must not stop the page.
import { useState } from "preact/hooks";
import type { ComponentChildren } from "preact";

/// Cards at first, and with each request more. A card that is out of sight draws nothing, but it has its elements.
const kCardsAtOnce = 100;

/// The metrics to show, and what stands below their charts while there are more.
export function useFirstCharts(metrics: readonly string[]): [readonly string[], ComponentChildren] {
    const [limit, setLimit] = useState(kCardsAtOnce);
    const rest = metrics.length - limit;
    if (rest <= 0) return [metrics, null];
    const more = (
        <p class="status-line">
            {limit} of {metrics.length} metrics; find others by name above, or{" "}
            <button class="button small" type="button" onClick={() => setLimit(limit + kCardsAtOnce)}>
                show {Math.min(rest, kCardsAtOnce)} more
            </button>
        </p>
    );
    return [metrics.slice(0, limit), more];
}
