// Every view is a path, loaded when it is first opened.
import type { ComponentType } from "react";
import { createBrowserRouter, redirect } from "react-router";
import { CrashPage, NotFound } from "./errors.js";
import { Shell } from "./shell.js";

const view = (load: () => Promise<{ default: ComponentType }>) => ({
  lazy: async () => ({ Component: (await load()).default }),
});

export const router = createBrowserRouter([
  {
    path: "/",
    Component: Shell,
    ErrorBoundary: CrashPage,
    HydrateFallback: () => <p role="status">Loading…</p>,
    children: [
      { index: true, loader: () => redirect("/jobs") },
      { path: "jobs", ...view(() => import("../views/jobs/jobs.js")) },
      { path: "jobs/:job", ...view(() => import("../views/job/job.js")) },
      { path: "compare/:a/:b", ...view(() => import("../views/compare/compare.js")) },
      { path: "submit", ...view(() => import("../views/submit/submit.js")) },
      { path: "workers", ...view(() => import("../views/workers/workers.js")) },
      { path: "runs", ...view(() => import("../views/runs/runs.js")) },
      { path: "runs/:run", ...view(() => import("../views/runs/run.js")) },
      { path: "audit", ...view(() => import("../views/audit/audit.js")) },
      { path: "*", Component: NotFound },
    ],
  },
]);
