import "./app.css";
import { render } from "preact";

render(<p>tune</p>, document.getElementById("app")!);
