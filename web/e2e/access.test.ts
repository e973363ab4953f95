// A server that wants tokens: signing in, what a viewer may not, and where the token is kept.
import { execFileSync } from "node:child_process";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { program, Stack } from "./stack.js";

const stack = new Stack();
const token = (name: string, role: string) =>
  execFileSync(program("client/plumbline"), ["token", "create", `--file=${path.join(stack.folder, "access.json")}`, `--name=${name}`, `--role=${role}`], {
    encoding: "utf8",
  }).trim();
const tokens = { viewer: "" };

beforeAll(async () => {
  tokens.viewer = token("visitor", "viewer");
  await stack.startBrowser();
  await stack.startServer(`--access-file=${path.join(stack.folder, "access.json")}`);
});
afterAll(() => stack.stop());

it("asks for a token, shows a viewer what a viewer may see, and says what it may not do", async () => {
  const page = await stack.page("/jobs");
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await page.getByLabel("Token").fill("plumbline_wrong_token");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await page.getByLabel("Token").fill(tokens.viewer);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("No job matches.").waitFor();

  await page.getByRole("link", { name: "Submit" }).click();
  await page.getByText("Your token may not do this.").waitFor();
  await page.getByRole("link", { name: "Audit" }).click();
  await page.getByText("Your token may not do this.").waitFor();

  const kept = await page.evaluate(() => [JSON.stringify(window.localStorage), document.cookie, window.location.href].join());
  expect(kept).not.toContain(tokens.viewer);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("link", { name: "Jobs" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await page.context().close();
});
