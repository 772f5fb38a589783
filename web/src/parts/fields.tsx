// Input fields that several pages use.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { FilterIcon, SearchIcon } from "./icons.tsx";

interface TextProps {
    value: string;
    onInput: (text: string) => void;
    label: string;
    placeholder: string;
    /// A sentence when the text is wrong; shown below the field.
    fault?: string;
    /// The field that `/` goes to.
    isMain?: boolean;
    isCode?: boolean;
}

export function TextFilter({ value, onInput, label, placeholder, fault, isMain = false, isCode = false }: TextProps) {
    return (
        <div class={`search ${isCode ? "code" : ""}`}>
            {isCode ? <FilterIcon /> : <SearchIcon />}
            <input
                class="input"
                type="text"
                value={value}
                placeholder={placeholder}
                aria-label={label}
                aria-invalid={fault ? "true" : "false"}
                spellcheck={false}
                autocomplete="off"
                data-main-filter={isMain ? "" : undefined}
                onInput={(event) => onInput(event.currentTarget.value)}
            />
            {isMain && value === "" && <kbd aria-hidden="true">/</kbd>}
            {fault && <div class="fault" role="alert">{fault}</div>}
        </div>
    );
}

export function Select<T extends string>(props: { label: string; isLabelHidden?: boolean; value: T; options: readonly (readonly [T, string])[]; onChange: (value: T) => void }) {
    return (
        <label class="field">
            <span class={props.isLabelHidden ? "hidden" : ""}>{props.label}</span>
            <select value={props.value} onChange={(event) => props.onChange(event.currentTarget.value as T)}>
                {props.options.map(([value, text]) => (
                    <option key={value} value={value} selected={value === props.value}>
                        {text}
                    </option>
                ))}
            </select>
        </label>
    );
}

export function Toggle({ on, onChange, children, title }: { on: boolean; onChange: (on: boolean) => void; children: ComponentChildren; title?: string }) {
    return (
        <button class="button small" type="button" aria-pressed={on} title={title} onClick={() => onChange(!on)}>
            {children}
        </button>
    );
}

/// A button that opens a panel below itself; a click elsewhere or Escape closes it.
export function Popover({ label, title, children }: { label: ComponentChildren; title: string; children: ComponentChildren }) {
    const [isOpen, setOpen] = useState(false);
    const frame = useRef<HTMLDivElement>(null);
    useEffect(() => {
        if (!isOpen) return;
        const away = (event: PointerEvent) => {
            if (!frame.current?.contains(event.target as Node)) setOpen(false);
        };
        addEventListener("pointerdown", away);
        return () => removeEventListener("pointerdown", away);
    }, [isOpen]);
    return (
        <div
            class="popover"
            ref={frame}
            onKeyDown={(event) => {
                if (event.key === "Escape") setOpen(false);
            }}
        >
            <button class="button" type="button" aria-expanded={isOpen} aria-haspopup="dialog" onClick={() => setOpen(!isOpen)}>
                {label}
            </button>
            {isOpen && (
                <div class="panel" role="dialog" aria-label={title}>
                    {children}
                </div>
            )}
        </div>
    );
}

interface PickerProps {
    all: readonly string[];
    shown: readonly string[];
    onChange: (shown: string[]) => void;
    onReset: () => void;
}

function matcher(text: string): (id: string) => boolean {
    try {
        const pattern = new RegExp(text, "i");
        return (id) => pattern.test(id);
    } catch {
        return (id) => id.includes(text);
    }
}

/// Chooses columns; the box takes a regular expression over ids such as "metrics.val_loss".
export function ColumnPicker({ all, shown, onChange, onReset }: PickerProps) {
    const [text, setText] = useState("");
    const matches = all.filter(matcher(text));
    const picked = new Set(shown);
    // The order of the table is kept; new ones come last.
    const change = (id: string, on: boolean) => onChange(on ? [...shown, id] : shown.filter((other) => other !== id));
    return (
        <>
            <TextFilter value={text} onInput={setText} label="Find columns (regular expression)" placeholder="Regex, e.g. loss|acc" />
            <div class="toolbar">
                <button class="button small" type="button" onClick={() => onChange([...shown, ...matches.filter((id) => !picked.has(id))])}>
                    Show {text ? "matches" : "all"}
                </button>
                <button class="button small" type="button" onClick={() => onChange(shown.filter((id) => !matches.includes(id)))}>
                    Hide {text ? "matches" : "all"}
                </button>
                <span class="grow" />
                <button class="button quiet small" type="button" onClick={onReset}>
                    Reset
                </button>
            </div>
            <ul>
                {matches.slice(0, 500).map((id) => {
                    const dot = id.indexOf(".");
                    return (
                        <li key={id}>
                            <label>
                                <input type="checkbox" checked={picked.has(id)} onChange={(event) => change(id, event.currentTarget.checked)} />
                                <span class="clip">{dot < 0 ? id.replace("_", " ") : id.slice(dot + 1)}</span>
                                <span class="kind">{dot < 0 ? "attribute" : id.slice(0, dot - 1)}</span>
                            </label>
                        </li>
                    );
                })}
            </ul>
            {matches.length === 0 && <p class="faint">No column matches.</p>}
        </>
    );
}
