import "./app.css";
import { render } from "preact";
import { useLive } from "./data/live/live.ts";
import { route } from "./data/page/router.ts";
import { homePath } from "./data/page/url.ts";
import { ExperimentPage } from "./pages/experiment.tsx";
import { HomePage } from "./pages/home.tsx";
import { RunPage } from "./pages/run.tsx";
import { StudyPage } from "./pages/study.tsx";
import { Empty } from "./parts/feedback.tsx";
import { Shell, usePlace } from "./parts/shell.tsx";

function LostPage({ path }: { path: string }) {
    usePlace({ text: "not found" });
    useLive("lost", ["experiments"], { read: () => {}, event: () => {} });
    return (
        <Empty isPage title="There is no such page">
            <p><code>{path}</code></p>
            <a href={homePath()}>All experiments</a>
        </Empty>
    );
}

function Page() {
    const at = route.value;
    switch (at.page) {
        case "home": return <HomePage />;
        case "experiment": return <ExperimentPage key={at.id} id={at.id} />;
        case "run": return <RunPage key={at.id} id={at.id} />;
        case "study": return <StudyPage key={at.name} name={at.name} />;
        case "lost": return <LostPage path={at.path} />;
    }
}

function App() {
    return (
        <Shell fill={route.value.page === "experiment"}>
            <Page />
        </Shell>
    );
}

render(<App />, document.getElementById("app")!);
