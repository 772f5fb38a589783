// The buttons that steer a study: pause, resume, stop; rename and delete.
import { useState } from "preact/hooks";
import { navigate } from "../data/page/router.ts";
import { homePath, studyPath } from "../data/page/url.ts";
import { restoreStudy, type StudyStore } from "../data/study/study_store.ts";
import type { Study } from "../data/study/study.ts";
import { toast } from "../parts/feedback.tsx";
import { Popover } from "../parts/fields.tsx";
import { MoreIcon, PauseIcon, PlayIcon, StopIcon } from "../parts/icons.tsx";

const say = (error: unknown) => toast(error instanceof Error ? error.message : String(error));

function Steering({ study, store }: { study: Study; store: StudyStore }) {
    const [isAsking, setAsking] = useState(false);
    const act = (action: "pause" | "resume" | "stop", done: string) => {
        setAsking(false);
        store.act(action).then(() => toast(`${study.name} ${done}.`), say);
    };
    return (
        <>
            {study.state === "running" ? (
                <button class="button" type="button" onClick={() => act("pause", "is paused: running trials continue, no new ones start")}><PauseIcon /> Pause</button>
            ) : (
                <button class="button" type="button" onClick={() => act("resume", "is running again")}><PlayIcon /> Resume</button>
            )}
            {study.state !== "stopped" &&
                (isAsking ? (
                    <>
                        <button class="button danger" type="button" onClick={() => act("stop", "is stopped")}>Stop all trials now</button>
                        <button class="button quiet" type="button" onClick={() => setAsking(false)}>Keep going</button>
                    </>
                ) : (
                    <button class="button danger" type="button" onClick={() => setAsking(true)}><StopIcon /> Stop</button>
                ))}
        </>
    );
}

function Rename({ study, store }: { study: Study; store: StudyStore }) {
    const [name, setName] = useState(study.name);
    const rename = (event: Event) => {
        event.preventDefault();
        store.rename(name).then(() => {
            toast(`${study.name} is now called ${name}.`);
            navigate(studyPath(name));
        }, say);
    };
    return (
        <form class="toolbar" onSubmit={rename}>
            <label class="field grow">
                <span>Name</span>
                <input class="input" type="text" value={name} spellcheck={false} autocomplete="off" onInput={(event) => setName(event.currentTarget.value)} />
            </label>
            <button class="button" type="submit" disabled={name === "" || name === study.name}>Rename</button>
        </form>
    );
}

function restore(study: Study): Promise<void> {
    return restoreStudy(study.name).then(() => {
        toast(`${study.name} is back.`);
        navigate(studyPath(study.name));
    }, say);
}

/// Of a study whose experiment an MLflow client has deleted: nothing else can be done with it.
function Restore({ study, store }: { study: Study; store: StudyStore }) {
    return (
        <button class="button" type="button" onClick={() => void restore(study).then(() => store.read())}><PlayIcon /> Restore the study and its experiment</button>
    );
}

/// A deleted study comes back with its runs, so it goes without a question and with a way back.
function Delete({ study, store }: { study: Study; store: StudyStore }) {
    const erase = () =>
        store.erase().then(() => {
            navigate(homePath());
            toast(`${study.name} is deleted.`, { label: "Restore", act: () => void restore(study) });
        }, say);
    return <button class="button danger" type="button" onClick={() => void erase()}>Delete study and its runs</button>;
}

export function StudyControls({ study, store }: { study: Study; store: StudyStore }) {
    const isDeleted = study.status === "deleted";
    return (
        <div class="toolbar">
            {isDeleted ? <Restore study={study} store={store} /> : study.state !== "completed" && <Steering study={study} store={store} />}
            <Popover label={<><MoreIcon /><span class="hidden">Rename or delete</span></>} title="Rename or delete">
                {!isDeleted && <Rename study={study} store={store} />}
                <Delete study={study} store={store} />
            </Popover>
        </div>
    );
}
