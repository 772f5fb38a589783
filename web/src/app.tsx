import "./app.css";
import { render } from "preact";
import { useLive } from "./data/live/live.ts";
import { login } from "./data/page/login.ts";
import { route } from "./data/page/router.ts";
import { base } from "./data/base.ts";
import { homePath } from "./data/page/url.ts";
import { mlflow } from "./data/wire.ts";
import { ExperimentPage } from "./pages/experiment.tsx";
import { HomePage } from "./pages/home.tsx";
import { LoginPage } from "./pages/login.tsx";
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
            <p>This page shows experiments, runs and studies.</p>
            <a href={homePath()}>All experiments</a>
        </Empty>
    );
}

/// Registered models have no page yet; what the server knows about them is a link away.
function ModelsPage({ name, version }: { name: string; version: string }) {
    usePlace({ text: "models" });
    useLive("models", ["experiments"], { read: () => {}, event: () => {} });
    const of = `?name=${encodeURIComponent(name)}`;
    const query = version ? `model-versions/get${of}&version=${encodeURIComponent(version)}` : name ? `registered-models/get${of}` : "registered-models/search";
    const url = `${base}${mlflow}/${query}`;
    const call = version ? `get_model_version("${name}", "${version}")` : name ? `get_registered_model("${name}")` : "search_registered_models()";
    return (
        <Empty isPage title="There is no page for registered models yet" command={`mlflow.MlflowClient().${call}`}>
            <p>This server keeps registered models and serves them to MLflow's clients:</p>
            <p><a href={url}>{name ? `${name}${version && ` version ${version}`}` : "All registered models"} as JSON</a> · <a href={homePath()}>All experiments</a></p>
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
        case "models": return <ModelsPage name={at.name} version={at.version} />;
        case "lost": return <LostPage path={at.path} />;
    }
}

function App() {
    if (login.value === "unknown" || login.value === "needed") return <LoginPage />;
    return (
        <Shell fill={route.value.page === "experiment"}>
            <Page />
        </Shell>
    );
}

render(<App />, document.getElementById("app")!);
