// Reports and lists of the sizes that users have. What takes how long is printed; no test passes by it.
import { fromBinary } from "@bufbuild/protobuf";
import { readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { JobKind, JobSchema, JobState } from "../src/gen/proto/plumbline/v1/job_pb.js";
import {
  GetReportResponseSchema,
  ListJobsRequestSchema,
  ListJobsResponseSchema,
  WatchJobsResponseSchema,
} from "../src/gen/proto/plumbline/v1/job_service_pb.js";
import { Outcome } from "../src/gen/proto/plumbline/v1/drift_pb.js";
import { answer } from "./grpc_web.js";
import { Stack, until } from "./stack.js";

const stack = new Stack();
beforeAll(() => stack.start());
afterAll(() => stack.stop());

const PROVIDERS = ["default", "sdpa-flash", "sdpa-efficient", "sdpa-math", "blas-cublaslt"];
type Measured = [number, number];
const captured = JSON.parse(
  readFileSync(path.resolve(import.meta.dirname, "../../tests/golden/full_model_h200.json"), "utf8"),
) as { tensors: Record<string, { norm: number } & Record<string, Measured>> };

function modelReport() {
  const tensors = Object.entries(captured.tensors).map(([name, measured], order) => {
    const errors = PROVIDERS.map((provider) => ({ relativeL2: measured[provider]?.[0] ?? 0, maxAbs: measured[provider]?.[1] ?? 0 }));
    const bound = Math.max(...errors.map(({ relativeL2 }) => relativeL2), 1e-3) * 1.05;
    const candidate = errors[1]?.relativeL2 ?? 0;
    return {
      name,
      order,
      goldenNorm: measured.norm,
      providerErrors: errors,
      candidateError: { relativeL2: candidate },
      bound,
      boundRatio: candidate / bound,
      passed: candidate <= bound,
      gates: [{ gate: "bound", value: candidate, bound, passed: candidate <= bound }],
    };
  });
  return {
    job: "jobs/large",
    kind: JobKind.FULL_MODEL,
    state: JobState.SUCCEEDED,
    tasks: [
      {
        task: "jobs/large/tasks/small",
        title: "layout small",
        verdict: { outcome: Outcome.PASSED, sentence: "PASSED" },
        kind: {
          case: "fullModel" as const,
          value: {
            layout: { name: "small" },
            rows: 925,
            blocks: 50,
            tensors,
            worstTensor: tensors[0]?.name ?? "",
            providers: PROVIDERS.map((name) => ({ name, kept: true })),
          },
        },
      },
    ],
  };
}

const FULL_JOB = { name: "jobs/large", kind: JobKind.FULL_MODEL, state: JobState.SUCCEEDED, verdict: { outcome: Outcome.PASSED, sentence: "PASSED" } };

it("opens a report of 764 tensors and 6 compositions, and scrolls through it", async () => {
  const page = await stack.page("/workers");
  await answer(page, "plumbline.v1.JobService/GetReport", GetReportResponseSchema, () => [{ report: modelReport() }]);
  await answer(page, "plumbline.v1.JobService/GetJob", JobSchema, () => [FULL_JOB]);
  await answer(page, "plumbline.v1.JobService/WatchJobs", WatchJobsResponseSchema, () => [
    { update: { case: "job" as const, value: FULL_JOB }, resumeToken: "1" },
    { update: { case: "snapshotComplete" as const, value: true }, resumeToken: "1" },
  ]);
  const start = performance.now();
  await page.goto(`${stack.url}/jobs/large`);
  await page.getByRole("application", { name: /Error over bound of 764 tensors: 52 blocks down/ }).waitFor();
  await page.getByRole("table", { name: "Tensors" }).getByRole("row").nth(5).waitFor();
  console.log(`report of 764 tensors opened in ${Math.round(performance.now() - start)} ms`);

  const frames = await page.getByRole("table", { name: "Tensors" }).evaluate(async (table) => {
    const scroll = table as HTMLElement;
    const times: number[] = [];
    let before = performance.now();
    for (let top = 0; top < scroll.scrollHeight; top += 300) {
      scroll.scrollTop = top;
      await new Promise(requestAnimationFrame);
      const now = performance.now();
      times.push(now - before);
      before = now;
    }
    return times;
  });
  frames.sort((a, b) => a - b);
  console.log(`scrolled through it in ${frames.length} frames, median ${Math.round(frames[frames.length >> 1] ?? 0)} ms, slowest ${Math.round(frames.at(-1) ?? 0)} ms`);
  // Whatever the number of tensors, the page holds the rows in view.
  expect(await page.getByRole("table", { name: "Tensors" }).getByRole("row").count()).toBeLessThan(60);
  await page.context().close();
});

it("pages through 100,000 jobs as they are scrolled to, and holds those in view", async () => {
  const page = await stack.page("/workers");
  const TOTAL = 100_000;
  const jobAt = (index: number) => ({
    name: `jobs/number${index}`,
    kind: JobKind.BLOCK_REPLAY,
    state: JobState.SUCCEEDED,
    verdict: { outcome: Outcome.PASSED, sentence: `job number ${index}` },
    createTime: { seconds: BigInt(1_700_000_000 + TOTAL - index) },
  });
  await answer(page, "plumbline.v1.JobService/WatchJobs", WatchJobsResponseSchema, () => [
    ...Array.from({ length: 200 }, (_, index) => ({ update: { case: "job" as const, value: jobAt(index) }, resumeToken: "1" })),
    { update: { case: "snapshotComplete" as const, value: true }, resumeToken: "1" },
  ]);
  let asked = 0;
  await answer(page, "plumbline.v1.JobService/ListJobs", ListJobsResponseSchema, (body) => {
    const { pageToken, pageSize } = fromBinary(ListJobsRequestSchema, body);
    const from = Number(pageToken || 0);
    asked = Math.max(asked, from);
    return [
      {
        jobs: Array.from({ length: Math.min(pageSize, TOTAL - from) }, (_, index) => jobAt(from + index)),
        nextPageToken: from + pageSize < TOTAL ? String(from + pageSize) : "",
      },
    ];
  });
  await page.goto(`${stack.url}/jobs`);
  await page.getByText("job number 0", { exact: true }).waitFor();
  const start = performance.now();
  await until("all jobs have been scrolled to", async () => {
    await page.evaluate(() => {
      const scroll = document.querySelector(".table-scroll") as HTMLElement;
      scroll.scrollTop = scroll.scrollHeight;
    });
    const shown = /(\d+) shown/.exec((await page.getByText(/\d+ shown/).textContent()) ?? "");
    return Number(shown?.[1]) === TOTAL;
  });
  console.log(`100,000 jobs paged in ${Math.round(performance.now() - start)} ms`);
  await page.getByText("job number 99999", { exact: true }).waitFor();
  expect(asked).toBe(TOTAL - 500);
  expect(await page.getByRole("table", { name: "Jobs" }).getByRole("row").count()).toBeLessThan(80);
  await page.context().close();
});
