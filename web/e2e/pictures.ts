import { mkdirSync } from "node:fs";
import path from "node:path";
import type { Page } from "playwright-core";

// With PLUMBLINE_PICTURES=FOLDER the tests leave a picture of each view there: those of the README.
export async function picture(page: Page, name: string) {
  const folder = process.env.PLUMBLINE_PICTURES;
  if (!folder) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: path.join(folder, `${name}.png`) });
}
