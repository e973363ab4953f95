// Every view, in a real browser, against a real coordinator and worker that ran the jobs.
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { expectAccessible } from "./accessibility.js";
import { picture } from "./pictures.js";
import { Stack, until, writeGeneration } from "./stack.js";

const stack = new Stack();
const job: Record<"passed" | "failed" | "rule" | "model" | "reference" | "generation", string> = {
  passed: "",
  failed: "",
  rule: "",
  model: "",
  reference: "",
  generation: "",
};
const pages: Page[] = [];

async function open(at: string): Promise<Page> {
  const page = await stack.page(at);
  pages.push(page);
  page.on("pageerror", (error) => {
    throw error;
  });
  return page;
}

beforeAll(async () => {
  await stack.start();
  job.passed = await stack.submit("block-replay", "--checkpoint=synthetic:tiny", "--layouts=tiny", "--backward", "--label=team=norms");
  job.failed = await stack.submit("block-replay", "--checkpoint=synthetic:tiny", "--layouts=tiny", "--inject=last-keys", "--label=team=attention");
  const rule = `${stack.folder}/rule.json`;
  job.rule = await stack.submit("full-model", "--checkpoint=checkpoint", "--layout=tiny", `--freeze-rule=${rule}`);
  job.model = await stack.submit("full-model", "--checkpoint=checkpoint", "--layout=tiny", `--rule=${rule}`, "--ablation");
  const { contract, conditioning } = await writeGeneration(stack.folder, 8);
  const generation = ["generation", "--checkpoint=checkpoint", `--contract=${contract}`, `--conditioning=${conditioning}`];
  job.reference = await stack.submit(...generation, "--composition=provider");
  job.generation = await stack.submit(...generation, "--preflight", `--against=jobs/${job.reference}`);
  for (const name of Object.values(job)) await stack.wait(name);
});

afterEach(async () => {
  for (const page of pages.splice(0)) await page.context().close();
});

afterAll(() => stack.stop());

describe("jobs", () => {
  it("lists them with state, verdict, labels; a filter is in the address and outlives a reload", async () => {
    const page = await open("/jobs");
    const rows = page.getByRole("table", { name: "Jobs" }).getByRole("row");
    await until("all jobs are listed", async () => (await rows.count()) === 7);
    await page.getByText("FAILED: tiny: first failure attention").waitFor();
    await picture(page, "jobs");
    await expectAccessible(page);
    await page.getByRole("combobox", { name: /^Verdict/ }).selectOption("failed");
    await until("one job is left", async () => (await rows.count()) === 2);
    expect(page.url()).toContain("verdict=failed");
    await page.reload();
    await until("one job is still left", async () => (await rows.count()) === 2);
    await page.goto(`${stack.url}/jobs?label=team%3Dnorms`);
    await page.getByText(job.passed).waitFor();
    expect(await rows.count()).toBe(2);
  });

  it("compares two marked ones", async () => {
    const page = await open("/jobs?kind=block-replay");
    await page.getByLabel(`Compare ${job.passed}`).check();
    await page.getByLabel(`Compare ${job.failed}`).check();
    await page.getByRole("button", { name: "Compare the two marked" }).click();
    await page.getByRole("table", { name: "Measures" }).waitFor();
    await page.getByRole("rowheader", { name: /inject/ }).waitFor();
    await picture(page, "compare");
    await expectAccessible(page);
  });

  it("appears while it is submitted elsewhere, and after the coordinator restarted nothing is missing", async () => {
    const page = await open("/jobs?label=test%3Drestart");
    await page.getByText("No job matches.").waitFor();
    const words = ["block-replay", "--checkpoint=synthetic:tiny", "--layouts=tiny", "--label=test=restart"];
    await page.getByText(await stack.submit(...words)).waitFor();
    await stack.stopServer();
    await page.getByText("Connection to the server lost").waitFor();
    await stack.startServer();
    const late = await stack.submit(...words);
    await page.getByText(late).waitFor();
    await page.getByText("Connection to the server lost").waitFor({ state: "detached" });
    expect(await page.getByRole("table", { name: "Jobs" }).getByRole("row").count()).toBe(3);
  });
});

describe("submission", () => {
  it("takes a form to a verdict, live", async () => {
    const page = await open("/submit");
    await page.getByLabel("Layouts").fill("tiny");
    await page.getByLabel("Labels").fill("test=form");
    await page.getByText("plumbline submit block-replay --checkpoint=synthetic:tiny --layouts=tiny --backward --label=test=form").waitFor();
    await picture(page, "submit");
    await expectAccessible(page);
    await page.getByRole("button", { name: "Submit" }).click();
    await page.getByText("PASSED: tiny: all 48 tensors pass every gate.").waitFor();
    expect(page.url()).toMatch(/\/jobs\/\w+/);
  });

  it("says what is wrong with a field as the server does, before anything is submitted", async () => {
    const page = await open("/submit");
    await page.getByLabel("Layouts").fill("huge");
    await page.getByRole("alert").filter({ hasText: "huge" }).waitFor();
    expect(await page.getByRole("button", { name: "Submit" }).isDisabled()).toBe(true);
    await page.getByLabel("Layouts").fill("tiny");
    await page.getByLabel("Block").fill("first");
    await page.getByText("'first' is no whole number").waitFor();
    await page.getByLabel("Block").fill("");
    await until("the form is right again", () => page.getByRole("button", { name: "Submit" }).isEnabled());
  });

  it("fills the form with another job's specification", async () => {
    const page = await open(`/submit?like=${job.failed}`);
    await until("the fault is in the form", async () => (await page.getByLabel("Fault to put in").inputValue()) === "last-keys");
  });
});

describe("block replay", () => {
  it("calls out the first failure and drift, and shows a node that a link names", async () => {
    const page = await open(`/jobs/${job.failed}`);
    await page.getByRole("button", { name: /^attention: failing.*first failure/ }).waitFor();
    await page.getByLabel("Details of attention").waitFor();
    await picture(page, "block-replay");
    await expectAccessible(page);
    await page.getByRole("button", { name: /^o_proj:/ }).press("Enter");
    await page.getByLabel("Details of o_proj").waitFor();
    expect(page.url()).toContain("node=o_proj");
    await page.getByLabel("Fed").selectOption("isolated");
    await page.getByRole("button", { name: /^o_proj: (bitwise|within)/ }).waitFor();
    await page.goto(`${stack.url}/jobs/${job.passed}?direction=backward&node=q_proj.grad`);
    await page.getByLabel("Details of q_proj.grad").waitFor();
    await page.getByText("Time, candidate against provider").waitFor();
    // Each node of the report has its place in the graph.
    expect(await page.locator(".node.absent").count()).toBe(0);
  });

  it("saves a table as CSV and the graph as SVG", async () => {
    const page = await open(`/jobs/${job.passed}`);
    const [csv] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save as CSV", exact: true }).click()]);
    const lines = readFileSync(await csv.path(), "utf8").trim().split("\r\n");
    expect(lines[0]).toMatch(/^Entry,Implementation,Drift/);
    expect(lines).toHaveLength(49);
    const [svg] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save as SVG" }).click()]);
    expect(readFileSync(await svg.path(), "utf8")).toMatch(/^<svg[^]*residual_mlp[^]*<\/svg>$/);
  });
});

describe("full model", () => {
  it("shows the map, the spread, the tensor that a link names, the rule and the ablation", async () => {
    const page = await open(`/jobs/${job.model}?tensor=parameter.transformer_blocks.1.attn.to_q.weight`);
    await page.getByLabel("Details of parameter.transformer_blocks.1.attn.to_q.weight").waitFor();
    const map = page.getByRole("application", { name: /Error over bound of 92 tensors/ });
    await map.press("ArrowDown");
    await map.press("Enter");
    expect(page.url()).toContain("tensor=nodes.token_refiner");
    await page.getByText("Ablation: one group of nodes replaced").waitFor();
    await page.getByText("Each provider left out and judged by the others").waitFor();
    await page.getByRole("img", { name: /Relative L2 error against golden/ }).waitFor();
    await picture(page, "full-model");
    await expectAccessible(page);
  });

  it("of a frozen rule judges no tensor", async () => {
    const page = await open(`/jobs/${job.rule}`);
    await page.getByText("No candidate was judged").waitFor();
    expect(await page.getByRole("table", { name: "Tensors" }).getByText("failed").count()).toBe(0);
  });
});

describe("generation", () => {
  it("shows seeds, steps and where the steps are kept", async () => {
    const page = await open(`/jobs/${job.generation}?seed=43`);
    await page.getByRole("heading", { name: "Seed 43" }).waitFor();
    await page.getByText("8 steps: 8 computed, 0 replayed").waitFor();
    await picture(page, "generation");
    await expectAccessible(page);
    await page.getByRole("row", { name: /^43/ }).getByRole("link").click();
    await page.getByRole("heading", { name: /Runs/ }).waitFor();
    await page.getByRole("button", { name: "Verify" }).click();
    await page.getByText("every digest is right").waitFor();
    await expectAccessible(page);
  });
});

describe("videos", () => {
  const times = (page: Page) =>
    page.locator("video").evaluateAll((videos) => (videos as HTMLVideoElement[]).map(({ currentTime }) => currentTime));

  it("play, scrub and step in sync, at the frame that a link names, beside each frame's quality", async () => {
    const page = await open(`/jobs/${job.generation}?seed=43&frame=7`);
    await page.getByText("Frame 7 of 22").waitFor();
    await until("both are at frame 7", async () => (await times(page)).every((time) => Math.floor(time * 24) === 7));
    expect(await page.locator("video").count()).toBe(2);
    await page.getByRole("group", { name: "Players" }).evaluate((players) => players.scrollIntoView());
    await picture(page, "videos");
    await page.getByRole("button", { name: "Frame on" }).click();
    await page.getByText("Frame 8 of 22").waitFor();
    await until("the address names the frame", () => page.url().includes("frame=8"));
    await until("both are at frame 8", async () => (await times(page)).every((time) => Math.floor(time * 24) === 8));
    await page.getByLabel("Loop").check();
    await page.getByRole("button", { name: "Play", exact: true }).first().click();
    await until("both play", async () => (await times(page)).every((time) => Math.floor(time * 24) !== 8));
    await page.getByRole("button", { name: "Pause" }).first().click();
    const [first, second] = (await times(page)) as [number, number];
    expect(Math.abs(first - second)).toBeLessThan(1 / 24);
    for (const mode of ["swipe", "difference"]) {
      await page.getByLabel("Shown").selectOption(mode);
      await page.getByRole("slider", { name: mode === "swipe" ? "Swipe" : "Gain" }).waitFor();
    }
    await page.getByRole("img", { name: "PSNR by frame; a click shows the frame" }).waitFor();
    await page.getByText("Quality by seed").waitFor({ state: "attached" });
    await page.getByRole("img", { name: "Waveform and spectrogram, difference" }).waitFor();
    await expectAccessible(page);
  });
});

describe("the service", () => {
  it("shows workers, and drains one", async () => {
    stack.startWorker("spare", "--label=spare=yes");
    const page = await open("/workers");
    const rows = page.getByRole("table", { name: "Workers" }).getByRole("row");
    await until("the spare worker is listed", async () => (await rows.count()) >= 3);
    await picture(page, "workers");
    await expectAccessible(page);
    page.on("dialog", (dialog) => void dialog.accept());
    await page.getByRole("button", { name: "Drain" }).last().click();
    await until("the drained worker is said to drain or has left", async () => {
      return (await rows.count()) === 2 || (await page.getByText(/draining|gone/).count()) > 0;
    });
  });

  it("shows runs and audit events", async () => {
    const page = await open("/runs");
    await until("the runs of six seeds are listed", async () => (await page.getByRole("row", { name: /8 of 8/ }).count()) === 6);
    await picture(page, "runs");
    await expectAccessible(page);
    await page.getByRole("link", { name: "Audit" }).click();
    await page.getByRole("table", { name: "Audit events" }).waitFor();
    await picture(page, "audit");
    await expectAccessible(page);
  });

  it("says so where nothing is", async () => {
    const page = await open("/jobs/nosuchjob");
    await page.getByText("Cannot read job nosuchjob.").waitFor();
    await page.goto(`${stack.url}/nowhere`);
    await page.getByRole("heading", { name: "Nothing is at this address" }).waitFor();
    await expectAccessible(page);
  });
});
