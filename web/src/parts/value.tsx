// What scripts log, as it fits: names break between their parts, a long value is one line of it that opens.

const kShortLength = 36;
/// What a closed value holds of the text; more never fits on its line.
const kPreviewLength = 160;

/// A name that breaks after its parts when it has to: "system/gpu_0_memory".
export const Name = ({ text }: { text: string }) => <>{text.split(/(?<=[/_.-])/).map((part) => [part, <wbr />])}</>;

/// The text as it is when it is short, else its beginning, which opens on a click or with Enter.
export function Value({ text }: { text: string }) {
    if (text.length <= kShortLength && !text.includes("\n")) return <>{text}</>;
    return (
        <details class="value">
            <summary><span class="clip">{text.slice(0, kPreviewLength)}</span></summary>
            <div>{text}</div>
        </details>
    );
}
