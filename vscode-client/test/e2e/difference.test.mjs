/** Explaining a difference: the panel compares both sides' values statement by statement. */

import { test } from "node:test";
import { NET } from "./programs.mjs";
import { within } from "./workbench.mjs";

test("the panel shows where the values part, as text and as a plot", { timeout: 600_000 }, async () => {
  await within("difference", { files: { "net.py": NET } }, async (code) => {
    const { page } = code;
    await code.convert("net.py");
    await code.answer("Check conversions by running", "Allow");
    await code.lens("✓ checked");
    await code.openFile("net_jax.py");
    await code.typeOver("approximate=False", "approximate=True");
    await code.lens("≠ differs");
    await (await code.lens("Explain")).click();
    const panel = page.frameLocator("iframe.webview.ready").frameLocator("#active-frame");
    await panel.getByRole("heading", { name: "Net: different" }).waitFor();
    await panel.locator("details.first code", { hasText: "gelu" }).first().waitFor();
    await panel.locator("details.first svg rect.torch").first().waitFor();
    await panel.locator("details.agree").first().waitFor();
    await code.shot("explain difference");
    await panel.locator("details.first a").first().click();
    await code.status("Ln 13, Col 1");
  });
});
