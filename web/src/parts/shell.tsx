// The frame around every page: where you are, whether the page is live, theme, help.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { liveState } from "../data/live/live.ts";
import { login, logOut } from "../data/page/login.ts";
import { chooseTheme, theme, type Theme } from "../data/page/theme.ts";
import { homePath } from "../data/page/url.ts";
import { toast, Toasts } from "./feedback.tsx";
import { CloseIcon, Logo, MoonIcon, SunIcon, SystemIcon } from "./icons.tsx";

export interface Crumb {
    text: string;
    href?: string;
}
const crumbs = signal<Crumb[]>([]);

/// Sets the breadcrumbs and the window's title for as long as the page is shown.
export function usePlace(...place: Crumb[]): void {
    const key = JSON.stringify(place);
    useEffect(() => {
        crumbs.value = place;
        document.title = [...place.map((crumb) => crumb.text).reverse(), "tune"].join(" · ");
    }, [key]);
}

const kLiveTexts = {
    connecting: ["", "Connecting", "Waiting for the server's event stream"],
    live: ["live-on", "Live", "Changes appear as they happen"],
    offline: ["live-off", "Offline", "The server is not responding; retrying"],
} as const;

function LiveBadge() {
    const [style, text, title] = kLiveTexts[liveState.value];
    return (
        <span class={`live ${style}`} role="status" title={title} data-live={liveState.value}>
            <i />
            <span>{text}</span>
        </span>
    );
}

const kThemes: [Theme, string, () => ComponentChildren][] = [
    ["system", "System theme", SystemIcon],
    ["light", "Light theme", SunIcon],
    ["dark", "Dark theme", MoonIcon],
];

function ThemeChoice({ style }: { style: string }) {
    return (
        <div class={`segments ${style}`} role="group" aria-label="Theme">
            {kThemes.map(([name, label, Icon]) => (
                <button key={name} type="button" title={label} aria-label={label} aria-pressed={theme.value === name} onClick={() => chooseTheme(name)}>
                    <Icon />
                </button>
            ))}
        </div>
    );
}

const kKeys: [string, string][] = [
    ["/", "go to the filter"],
    ["↑ ↓ ← →", "move in a table; also Page Up, Page Down, Home, End"],
    ["Enter", "open the run under the cursor"],
    ["Space", "select the run; Shift with arrows selects a range"],
    ["Esc", "leave a field"],
    ["?", "this help"],
];

const kFilterExamples: [string, string][] = [
    ["metrics.val_loss < 0.3", "the latest value of a metric"],
    ["params.optimizer = 'adamw' AND params.lr < 0.01", "conditions are joined by AND; numbers need no quotes"],
    ["tags.team LIKE 'vision%'", "% stands for any text; ILIKE ignores case"],
    ["status != 'FINISHED'", "attributes need no prefix"],
];

const isHelpOpen = signal(false);

function Help() {
    const dialog = useRef<HTMLDialogElement>(null);
    useEffect(() => {
        if (isHelpOpen.value) dialog.current?.showModal();
        else dialog.current?.close();
    }, [isHelpOpen.value]);
    return (
        <dialog ref={dialog} aria-labelledby="help-title" onClose={() => (isHelpOpen.value = false)}>
            <header>
                <h1 id="help-title" class="grow">Keys and filters</h1>
                <ThemeChoice style="phone-only" />
                <button class="button quiet" type="button" aria-label="Close" onClick={() => (isHelpOpen.value = false)}>
                    <CloseIcon />
                </button>
            </header>
            <div class="body">
                <dl class="keys">
                    {kKeys.map(([key, text]) => [<dt><kbd>{key}</kbd></dt>, <dd>{text}</dd>])}
                </dl>
                <h2>Filtering runs (MLflow's syntax)</h2>
                <table class="plain">
                    <tbody>
                        {kFilterExamples.map(([example, text]) => (
                            <tr key={example}>
                                <td><code>{example}</code></td>
                                <td class="muted">{text}</td>
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
        </dialog>
    );
}

function isTyping(target: EventTarget | null): boolean {
    return target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

function useGlobalKeys(): void {
    useEffect(() => {
        const onKey = (event: KeyboardEvent) => {
            if (event.ctrlKey || event.metaKey || event.altKey) return;
            if (event.key === "Escape" && isTyping(event.target)) (event.target as HTMLElement).blur();
            if (isTyping(event.target)) return;
            if (event.key === "?") {
                isHelpOpen.value = !isHelpOpen.value;
            } else if (event.key === "/") {
                const box = document.querySelector<HTMLInputElement>("[data-main-filter]");
                if (!box) return;
                event.preventDefault();
                box.focus();
                box.select();
            }
        };
        addEventListener("keydown", onKey);
        return () => removeEventListener("keydown", onKey);
    }, []);
}

/// The owner of the data folder, who came by a printed address, is user 0 and has no login to end.
function UserBadge() {
    const user = login.value;
    if (typeof user !== "object") return null;
    return (
        <span class="user">
            <span title={user.is_admin ? "You are an admin" : "You are logged in"}>{user.username}</span>
            {user.id !== 0 && (
                <button class="button small" type="button" onClick={() => logOut().catch((error) => toast(error.message))}>
                    Log out
                </button>
            )}
        </span>
    );
}

export function Shell({ children, fill }: { children: ComponentChildren; fill: boolean }) {
    useGlobalKeys();
    return (
        <>
            <a class="skip" href="#content">Skip to the content</a>
            <header class="bar">
                <a class="brand" href={homePath()} aria-label="tune: all experiments">
                    <Logo />
                    <span>tune</span>
                </a>
                <nav class="crumbs" aria-label="Breadcrumbs">
                    <ol>
                        {crumbs.value.map((crumb, i) => (
                            <li key={i}>
                                {crumb.href ? <a href={crumb.href}>{crumb.text}</a> : <span aria-current="page">{crumb.text}</span>}
                            </li>
                        ))}
                    </ol>
                </nav>
                <LiveBadge />
                <UserBadge />
                <ThemeChoice style="phone-hidden" />
                <button class="button quiet" type="button" aria-label="Keys and filters" title="Keys and filters (?)" onClick={() => (isHelpOpen.value = true)}>
                    ?
                </button>
            </header>
            <main id="content" class={fill ? "fill" : ""} tabIndex={-1}>
                {children}
            </main>
            <Help />
            <Toasts />
        </>
    );
}
