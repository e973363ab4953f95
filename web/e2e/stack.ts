// Server, worker and command line as processes of their own, as tests/e2e has them, and a browser to look at them.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { type Browser, chromium, type Page } from "playwright-core";

const run = promisify(execFile);
const ROOT = path.resolve(import.meta.dirname, "../..");
const GOLDEN = path.join(ROOT, "tests/golden");
const DIST = path.join(ROOT, "web/dist");
const DEADLINE_MS = 60_000;

export const program = (name: string) => {
  const folder = process.env.PLUMBLINE_BIN;
  const found = folder ? path.join(folder, path.basename(name)) : path.join(ROOT, "bazel-bin", name);
  if (!existsSync(found)) throw new Error(`${found} is missing: ./dev build //server:plumbline-server //worker:plumbline-worker //client:plumbline`);
  return found;
};

// A loopback address that other programs, and other tests, hardly use: a port of it is still free when the server that
// had it is started again.
const ownHost = () => `127.${[0, 1, 2].map(() => 1 + Math.floor(Math.random() * 254)).join(".")}`;

export async function until<T>(what: string, condition: () => T | undefined | Promise<T | undefined>): Promise<T> {
  const deadline = Date.now() + DEADLINE_MS;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > deadline) throw new Error(`not within ${DEADLINE_MS / 1000} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export class Stack {
  readonly folder = mkdtempSync(path.join(tmpdir(), "plumbline-web-"));
  private readonly processes = new Set<ChildProcess>();
  private server: ChildProcess | undefined;
  private ports: { listen: string; http: string } | undefined;
  browser: Browser | undefined;

  async start(...serverFlags: string[]) {
    await this.startServer(...serverFlags);
    this.startWorker("worker");
    await this.startBrowser();
  }

  async startBrowser() {
    this.browser = await chromium.launch({
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--autoplay-policy=no-user-gesture-required",
      ],
    });
  }

  get url() {
    return `http://${this.ports?.http}`;
  }

  get address() {
    return this.ports?.listen as string;
  }

  // Again on the same ports and data: what a client sees of a restart is a lost connection.
  async startServer(...flags: string[]) {
    const ready = path.join(this.folder, "server.json");
    rmSync(ready, { force: true });
    const host = ownHost();
    this.server = this.spawn("server/plumbline-server", [
      `--listen=${this.ports?.listen ?? `${host}:0`}`,
      `--http=${this.ports?.http ?? `${host}:0`}`,
      `--data-dir=${path.join(this.folder, "data")}`,
      `--ready-file=${ready}`,
      `--web-dir=${DIST}`,
      ...flags,
    ]);
    const { server } = this;
    this.ports = await until("the server is ready", () => {
      if (server.exitCode !== null) throw new Error(`the server ended: ${this.log("plumbline-server")}`);
      return existsSync(ready) ? JSON.parse(readFileSync(ready, "utf8") || "null") : undefined;
    });
  }

  async stopServer() {
    this.server?.kill("SIGTERM");
    if (this.server && this.server.exitCode === null) await once(this.server, "exit");
  }

  startWorker(name: string, ...flags: string[]) {
    mkdirSync(path.join(this.folder, name), { recursive: true });
    return this.spawn("worker/plumbline-worker", [
      `--server=${this.address}`,
      `--checkpoint-root=${GOLDEN}`,
      "--metrics=127.0.0.1:0",
      "--grpc=127.0.0.1:0",
      `--state-dir=${path.join(this.folder, name)}`,
      ...flags,
    ]);
  }

  // Output of the command line; its status may be that of a failed verdict.
  async plumbline(...words: string[]): Promise<string> {
    try {
      return (await run(program("client/plumbline"), [...words, `--server=${this.address}`], { maxBuffer: 64 << 20 })).stdout;
    } catch (error) {
      const { code, stdout, stderr } = error as { code?: number; stdout?: string; stderr?: string };
      if (code === 1) return stdout ?? "";
      throw new Error(`plumbline ${words.join(" ")}: status ${code}: ${stderr}`);
    }
  }

  // Identifier of a new job, in the order of its verdict if `wait`.
  async submit(...words: string[]): Promise<string> {
    const output = await this.plumbline("submit", ...words);
    const name = /jobs\/([\w-]+)|^([\w-]{6,})$/m.exec(output);
    if (!name) throw new Error(`no job in: ${output}`);
    return (name[1] ?? name[2]) as string;
  }

  async wait(job: string): Promise<void> {
    await this.plumbline("jobs", "watch", `jobs/${job}`);
  }

  async page(at = "/"): Promise<Page> {
    const context = await (this.browser as Browser).newContext({ viewport: { width: 1360, height: 900 } });
    const page = await context.newPage();
    page.setDefaultTimeout(DEADLINE_MS);
    await page.goto(this.url + at);
    return page;
  }

  log(name: string) {
    return readFileSync(path.join(this.folder, `${name}.log`), "utf8").slice(-2000);
  }

  async stop() {
    await this.browser?.close();
    for (const each of this.processes) each.kill("SIGKILL");
    await Promise.all([...this.processes].map((each) => (each.exitCode === null && each.signalCode === null ? once(each, "exit") : undefined)));
    rmSync(this.folder, { recursive: true, force: true });
  }

  private spawn(name: string, flags: string[]): ChildProcess {
    const log = openSync(path.join(this.folder, `${path.basename(name)}.log`), "a");
    const child = spawn(program(name), flags, { stdio: ["ignore", log, log] });
    this.processes.add(child);
    return child;
  }
}

// The captured prompt and keyframe as a conditioning file, and a contract of their size, in `folder`.
export async function writeGeneration(folder: string, steps: number): Promise<{ contract: string; conditioning: string }> {
  const [contract, conditioning] = [path.join(folder, "contract.json"), path.join(folder, "conditioning.safetensors")];
  await run("python3", [path.join(ROOT, "tests/e2e/write_generation.py"), GOLDEN, contract, conditioning, String(steps)], {
    env: { ...process.env, PYTHONPATH: ROOT },
  });
  return { contract, conditioning };
}
