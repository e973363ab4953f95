import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { expect, it } from "vitest";
import { Stack } from "./stack.js";

const DIST = path.resolve(import.meta.dirname, "../dist");
const BUDGET_BYTES = 500_000;

it("loads under 500 kB, compressed, before the first view is there", async () => {
  const stack = new Stack();
  try {
    await stack.start();
    const page = await stack.page("/workers");
    const loaded = new Set<string>();
    page.on("response", (response) => loaded.add(new URL(response.url()).pathname));
    await page.goto(`${stack.url}/jobs`);
    await page.getByRole("table", { name: "Jobs" }).waitFor();
    const files = ["index.html", ...readdirSync(path.join(DIST, "assets")).map((name) => `assets/${name}`)];
    const bytes = files
      .filter((name) => loaded.has(`/${name}`) || name === "index.html")
      .reduce((sum, name) => sum + gzipSync(readFileSync(path.join(DIST, name))).length, 0);
    console.log(`first load: ${bytes} bytes compressed`);
    expect(bytes).toBeGreaterThan(50_000);
    expect(bytes).toBeLessThan(BUDGET_BYTES);
  } finally {
    await stack.stop();
  }
});
