import AxeBuilder from "@axe-core/playwright";
import type { Page } from "playwright-core";
import { expect } from "vitest";

// Nothing that axe calls serious or critical is on the page, in light and in dark.
export async function expectAccessible(page: Page) {
  for (const theme of ["light", "dark"]) {
    await page.getByLabel("Colours").selectOption(theme);
    const { violations } = await new AxeBuilder({ page }).analyze();
    const grave = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    expect(grave.map(({ id, nodes }) => `${theme}: ${id}: ${nodes.map(({ html }) => html).join(" ")}`)).toEqual([]);
  }
  await page.getByLabel("Colours").selectOption("light");
}
