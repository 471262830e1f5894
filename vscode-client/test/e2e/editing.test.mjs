/** Staying true while files are edited: links in a hover, shapes, stale verdicts, and conversions that were edited by hand. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { NET } from "./programs.mjs";
import { eventually, within } from "./workbench.mjs";

const TIMEOUT = 600_000;

test("a hover's links convert the call and open its rule", { timeout: TIMEOUT }, async () => {
  await within("links", { files: { "net.py": NET } }, async (code) => {
    const { page } = code;
    await code.openFile("net.py");
    await code.lens("Convert to JAX");
    await (await code.hover("gelu")).getByText("Convert here").click();
    const text = () => code.visibleText();
    await eventually(
      text,
      (found) => found.includes("jax.nn.gelu(self.fc1(x), approximate=False)"),
      "the converted call",
    );
    await page.locator(".editor-group-container.active .view-line").first().click();
    await page.keyboard.press("Control+Z");
    await eventually(
      text,
      (found) => found.includes("F.gelu(self.fc1(x))") && !found.includes("jax"),
      "the undone edit",
    );
    await (await code.hover("log_softmax")).getByText("rule", { exact: true }).click();
    const preview = page.frameLocator("iframe.webview.ready").frameLocator("#active-frame");
    await preview.getByRole("heading", { name: "torch.nn.functional.log_softmax" }).waitFor();
    await code.shot("rule");
    await code.command("t2j: The First Five Minutes");
    await page.locator(".gettingStartedContainer", { hasText: "Choose a Python interpreter" }).first().waitFor();
    await code.shot("walkthrough");
  });
});

test("edits make verdicts stale, are checked again, and are never written over", { timeout: TIMEOUT }, async () => {
  const settings = { "t2j.inlayHints.enable": true, "t2j.check.delay": 3 };
  await within("editing", { files: { "net.py": NET }, settings }, async (code) => {
    const { page } = code;
    await code.convert("net.py");
    await code.answer("Check conversions by running", "Allow");
    await code.lens("✓ checked");
    await code.openFile("net.py");
    await eventually(
      () => code.visibleText(),
      (text) => /\(\d+, \d+, 16\)/.test(text),
      "the shapes",
    );
    await code.shot("shapes");

    await code.openFile("net_jax.py");
    await code.typeOver("class Net(nnx.Module):", "class Net(nnx.Module):  # by hand");
    await code.lens("edited since", 10_000);
    await code.lens("✓ checked");

    await code.openFile("net.py");
    await code.typeOver("nn.Linear(16, 4)", "nn.Linear(16, 5)");
    await code.lens("≠ differs");
    await code.command("t2j: Convert File to JAX…");
    const merged = page.locator(".monaco-diff-editor .editor.modified");
    await merged.locator(".view-line", { hasText: "# by hand" }).waitFor();
    await page.locator(".tab.active", { hasText: "merged with your edits" }).waitFor();
    await code.shot("merge");
    await code.command("t2j: Apply Conversion");
    await code.lens("✓ checked");
    const made = () => readFileSync(join(code.folder, "net_jax.py"), "utf8");
    await eventually(made, (text) => text.includes("# by hand") && /16, 5,/.test(text), "the merged conversion");
    assert.doesNotMatch(made(), /<<<<<<</);
  });
});
