// A value that a script logged: as it is when it is short, else one line of it that opens on a click or with Enter.

const kShortLength = 48;
/// What a closed value holds of the text; more never fits on its line.
const kPreviewLength = 160;

export function Value({ text }: { text: string }) {
    if (text.length <= kShortLength && !text.includes("\n")) return <>{text}</>;
    return (
        <details class="value">
            <summary><span class="clip">{text.slice(0, kPreviewLength)}</span></summary>
            <div>{text}</div>
        </details>
    );
}
