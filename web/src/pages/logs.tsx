// The tail of a run's output; grows as the run writes.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { listFiles, type FileEntry } from "../data/files/artifacts.ts";
import { bytes } from "../data/format.ts";
import { cleanLog } from "../data/files/logs.ts";
import type { RunState, RunView } from "../data/runs/run_page.ts";
import { artifactUrl, getBytes } from "../data/wire.ts";
import { Empty, Fault } from "../parts/feedback.tsx";
import { Toggle } from "../parts/fields.tsx";
import { DownloadIcon } from "../parts/icons.tsx";

const kFolder = "logs";
/// What is kept in the page of one file.
const kTailBytes = 256 * 1024;

/// Reads a growing file piece by piece; only what is new is asked for.
class Tail {
    text = "";
    size = 0;
    first = 0;
    private decoder = new TextDecoder();

    constructor(readonly url: string) {}

    async follow(sizeHint: number, signal: AbortSignal): Promise<void> {
        if (sizeHint < this.size) this.reset();
        if (this.size === 0) this.size = this.first = Math.max(0, sizeHint - kTailBytes);
        for (;;) {
            const piece = await getBytes(this.url, this.size, kTailBytes, signal);
            if (piece.bytes.length === 0) return;
            this.size += piece.bytes.length;
            this.text = (this.text + this.decoder.decode(piece.bytes, { stream: true })).slice(-kTailBytes);
            if (this.size >= piece.size) return;
        }
    }

    private reset(): void {
        this.text = "";
        this.size = this.first = 0;
        this.decoder = new TextDecoder();
    }
}

interface Props {
    run: RunView;
    state: RunState;
    file: string;
    onFile: (path: string) => void;
}

export function Logs({ run, state, file, onFile }: Props) {
    const version = state.artifactVersion.value;
    const [files, setFiles] = useState<FileEntry[]>();
    const [error, setError] = useState<unknown>();
    useEffect(() => {
        let isGone = false;
        listFiles(run.id, kFolder).then(
            (found) => {
                if (!isGone) setFiles(found.filter((entry) => !entry.isFolder));
            },
            (fault) => {
                if (!isGone) setError(fault);
            },
        );
        return () => {
            isGone = true;
        };
    }, [run.id, version]);
    if (error !== undefined) return <Fault error={error} />;
    if (!files) return null;
    if (files.length === 0)
        return (
            <section class="card" aria-label="No logs">
                <Empty title="No logs">
                    Trials started by an agent show their output here, live. Other runs can log files to <code>logs/</code>.
                </Empty>
            </section>
        );
    const current = files.find((entry) => entry.path === file) ?? files.find((entry) => entry.name.startsWith("stdout")) ?? files[0]!;
    return <LogView key={current.path} run={run} files={files} current={current} onFile={onFile} />;
}

function LogView({ run, files, current, onFile }: { run: RunView; files: FileEntry[]; current: FileEntry; onFile: (path: string) => void }) {
    const url = artifactUrl(run.artifactUri, current.path);
    const tail = useMemo(() => new Tail(url), [url]);
    const [text, setText] = useState("");
    const [error, setError] = useState<unknown>();
    const [isFollowing, setFollowing] = useState(true);
    const box = useRef<HTMLPreElement>(null);
    // `files` is a new list whenever an artifact changed, so this follows each upload.
    useEffect(() => {
        const abort = new AbortController();
        tail.follow(current.size, abort.signal).then(
            () => {
                setText(cleanLog(tail.text));
                setError(undefined);
            },
            (fault) => {
                if (!abort.signal.aborted) setError(fault);
            },
        );
        return () => abort.abort();
    }, [tail, files]);
    useEffect(() => {
        if (isFollowing && box.current) box.current.scrollTop = box.current.scrollHeight;
    }, [text, isFollowing]);
    const onScroll = () => {
        const { scrollTop, scrollHeight, clientHeight } = box.current!;
        setFollowing(scrollHeight - scrollTop - clientHeight < 24);
    };
    return (
        <section class="card" aria-label="Logs">
            <header>
                <div class="segments" role="group" aria-label="Log files">
                    {files.map((entry) => (
                        <button key={entry.path} type="button" aria-pressed={entry.path === current.path} onClick={() => onFile(entry.path)}>
                            {entry.name}
                        </button>
                    ))}
                </div>
                <span class="faint num">{bytes(current.size)}{tail.first > 0 && `, the last ${bytes(kTailBytes)}`}</span>
                <span class="grow" />
                <Toggle on={isFollowing} onChange={setFollowing} title="Keep the end in view">follow</Toggle>
                <a class="button small" href={url} download={current.name}><DownloadIcon /> Download</a>
            </header>
            {error !== undefined && <Fault error={error} />}
            <pre class="log" ref={box} tabIndex={0} role="log" aria-label={current.name} onScroll={onScroll}>{text || "(empty)"}</pre>
        </section>
    );
}
