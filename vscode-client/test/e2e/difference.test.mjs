/** Explaining a difference: the panel compares both sides' values, and shows fixed bugs like it; so does a gap's hover. */

import { test } from "node:test";
import { NET, PENALTY } from "./programs.mjs";
import { eventually, within } from "./workbench.mjs";

test("the panel shows where the values part, as text and as a plot", { timeout: 600_000 }, async () => {
  await within("difference", { files: { "net.py": NET } }, async (code) => {
    const { page } = code;
    await code.convert("net.py");
    await code.answer("Check conversions by running", "Allow");
    await code.lens("✓ checked");
    await code.openFile("net_jax.py");
    await code.typeOver(", approximate=False)", ")");
    await code.lens("≠ differs");
    await (await code.lens("Explain")).click();
    const panel = page.frameLocator("iframe.webview.ready").frameLocator("#active-frame");
    await panel.getByRole("heading", { name: "Net: different" }).waitFor();
    await panel.locator("details.first code", { hasText: "gelu" }).first().waitFor();
    await panel.locator("details.first svg rect.torch").first().waitFor();
    await panel.locator("details.agree").first().waitFor();
    await panel
      .getByText(/\d mistakes? like this (was|were) fixed/)
      .first()
      .click();
    const fix = panel.locator("section.fix", { hasText: "gelu approximation" }).first();
    await fix.locator("td", { hasText: "approximate=False" }).first().waitFor();
    await code.shot("explain difference");
    await panel.locator("details.first a").first().click();
    await code.status("Ln 13, Col 1");
  });
});

test("a gap's hover leads to mistakes in converting it that were fixed", { timeout: 300_000 }, async () => {
  await within("fixes", { files: { "penalty.py": PENALTY } }, async (code) => {
    const { page } = code;
    await code.openFile("penalty.py");
    await code.goTo(5, 24);
    // Fixed bugs are looked up behind the analysis: a hover before that has no line about them.
    const line = page.locator(".monaco-hover:not(.hidden)").getByText("mistakes like this were fixed");
    const hover = async () => {
      await page.keyboard.press("Escape");
      await page.keyboard.press("Control+k");
      await page.keyboard.press("Control+i");
      return line
        .first()
        .waitFor({ timeout: 3_000 })
        .then(
          () => true,
          () => false,
        );
    };
    await eventually(hover, Boolean, "a hover with fixed bugs");
    await code.shot("hover with fixed bugs");
    await line.first().click();
    const panel = page.frameLocator("iframe.webview.ready").frameLocator("#active-frame");
    await panel.getByRole("heading", { name: "mistakes like this were fixed" }).waitFor();
    await panel.locator("section.fix td", { hasText: "grad" }).first().waitFor();
    await code.shot("fixed bugs");
  });
});
