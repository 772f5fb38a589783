// Light, dark, or what the system says; kept in this browser. `?theme=dark` overrides it for one visit.
import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
const kKey = "tune.theme";

function stored(): Theme {
    const asked = new URLSearchParams(location.search).get("theme") ?? readStored();
    return asked === "light" || asked === "dark" ? asked : "system";
}
function readStored(): string | null {
    try {
        return localStorage.getItem(kKey);
    } catch {
        return null; // storage is switched off
    }
}

export const theme = signal<Theme>(stored());
/// Grows whenever colours may have changed: canvases redraw.
export const themeVersion = signal(0);

export function chooseTheme(next: Theme): void {
    theme.value = next;
    try {
        localStorage.setItem(kKey, next);
    } catch {
        // storage is switched off: the choice holds for this visit
    }
}

effect(() => {
    if (theme.value === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme.value;
    themeVersion.value = themeVersion.peek() + 1;
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    themeVersion.value++;
});

let probe: HTMLElement | undefined;
/// The colour that a token has now, e.g. token("--accent") -> "rgb(0, 98, 155)".
export function token(name: string): string {
    if (!probe) {
        probe = document.createElement("span");
        probe.hidden = true;
        document.body.append(probe);
    }
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
}
