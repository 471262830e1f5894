/** The Migration view and notebooks: many files, their states, bulk conversion, the report. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { NET } from "./programs.mjs";
import { CHECK, eventually, within } from "./workbench.mjs";

const TIMEOUT = 600_000;
const HOOK = `import torch


def watch(x: torch.Tensor) -> torch.Tensor:
    x.register_hook(print)
    return torch.relu(x)
`;
const cell = (source, type = "code") => ({
  cell_type: type,
  metadata: {},
  source: source.split(/(?<=\n)/),
  ...(type === "code" ? { execution_count: null, outputs: [] } : {}),
});
const NOTEBOOK = JSON.stringify({
  cells: [
    cell("A model", "markdown"),
    cell("import torch\nimport torch.nn.functional as F"),
    cell("x = torch.ones(3)\ny = F.gelu(x)"),
  ],
  metadata: { language_info: { name: "python" } },
  nbformat: 4,
  nbformat_minor: 5,
});

test("the view shows every file's state and converts many at once", { timeout: TIMEOUT }, async () => {
  const files = { "model/net.py": NET, "hook.py": HOOK, "other.py": "import json\n" };
  await within("migration", { files }, async (code) => {
    const { page } = code;
    await code.command("View: Show t2j");
    const row = (text) => page.locator(".sidebar .monaco-list-row", { hasText: text }).first();
    await row("Not started").waitFor();
    await row("net.py").waitFor();
    assert.equal(await page.locator(".sidebar .monaco-list-row", { hasText: "other.py" }).count(), 0);
    await code.shot("migration not started");
    await row("Not started").hover();
    await code.command("t2j: Convert All That Is Not Started");
    await page.locator(".monaco-dialog-box .monaco-button", { hasText: "Convert" }).first().click();
    await code.answer("Check conversions by running", "Allow");
    await row("Converted with gaps").waitFor();
    await row("hook.py").waitFor();
    for (const [made, text] of [
      ["model/net_jax.py", "nnx.Module"],
      ["hook_jax.py", "TODO(t2j)"],
    ]) {
      const read = () => readFileSync(join(code.folder, made), "utf8");
      await eventually(read, (found) => found.includes(text), made);
    }
    await row("net.py").click();
    await code.command("t2j: Check Conversion of This File");
    await row("Equivalent").waitFor({ timeout: CHECK });
    await row("net.py").click();
    await page.keyboard.press("ArrowRight");
    await row("Net").waitFor();
    await code.shot("migration");
    await code.command("t2j: Open Report");
    const report = await eventually(() => reportOf(code), Boolean, "the report");
    assert.match(readFileSync(report, "utf8"), /model\/net\.py/);
  });
});

test("a notebook's cells hover and convert", { timeout: TIMEOUT }, async () => {
  await within("notebook", { files: { "train.ipynb": NOTEBOOK, "net.py": NET } }, async (code) => {
    const { page } = code;
    // Notebooks are text until the extension that knows them has started, as ours has when there is a lens.
    await code.openFile("net.py");
    await code.lens("Convert to JAX");
    await code.openFile("train.ipynb");
    const token = page.locator(".notebookOverlay .view-line span", { hasText: "gelu" }).last();
    await token.waitFor();
    await eventually(
      async () => {
        await page.mouse.move(5, 5);
        await token.hover();
        const hover = page.locator(".monaco-hover:not(.hidden)", { hasText: "approximate=False" }).first();
        return hover.waitFor({ timeout: 2_000 }).then(
          () => true,
          () => false,
        );
      },
      Boolean,
      "the hover",
    );
    await code.shot("notebook hover");
    await token.click();
    await page.keyboard.press("Control+.");
    const entry = page.locator(".action-widget .monaco-list-row", {
      hasText: "Rewrite torch.nn.functional.gelu in place as JAX",
    });
    await entry.first().click();
    const cells = page.locator(".notebookOverlay .view-lines");
    await eventually(
      async () => (await cells.allInnerTexts()).join("\n").replaceAll("\u00a0", " "),
      (text) => text.includes("jax.nn.gelu(x, approximate=False)"),
      "the converted cell",
    );
    await code.shot("notebook converted");
    await code.command("t2j: Convert File to JAX…");
    await code.notification("train_jax.ipynb");
    await page.locator(".notebookOverlay .view-line", { hasText: "jnp.ones(3)" }).waitFor();
    await code.shot("notebook file converted");
    const made = JSON.parse(readFileSync(join(code.folder, "train_jax.ipynb"), "utf8"));
    assert.match([made.cells.at(-1).source].flat().join(""), /jax\.nn\.gelu/);
  });
});

test("a notebook is checked, and what differs in its conversion stands in the cell", { timeout: TIMEOUT }, async () => {
  const imports = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F";
  const study = JSON.stringify({
    cells: [cell("A model", "markdown"), cell(imports), cell(NET.slice(NET.indexOf("class Net")))],
    metadata: { language_info: { name: "python" } },
    nbformat: 4,
    nbformat_minor: 5,
  });
  await within("notebook check", { files: { "study.ipynb": study, "net.py": NET } }, async (code) => {
    const { page } = code;
    await code.openFile("net.py");
    await code.lens("Convert to JAX");
    await code.openFile("study.ipynb");
    await page.locator(".notebookOverlay .view-line span", { hasText: "gelu" }).last().click();
    await code.command("t2j: Check Conversion of This File");
    await code.answer("Check conversions by running", "Allow");
    await code.lens("✓ checked");
    await code.shot("notebook checked");
    await code.command("t2j: Convert File to JAX…");
    await code.notification("study_jax.ipynb");
    const token = page.locator(".notebookOverlay .view-line span", { hasText: "approximate" }).last();
    await token.waitFor();
    await code.lens("✓ checked");
    await token.click();
    await page.keyboard.press("End");
    await page.keyboard.type(" * 2");
    await code.lens("≠ differs");
    await page.locator(".notebookOverlay .squiggly-error").first().waitFor();
    await code.shot("notebook differs");
  });
});

/** The report in the extension's storage. */
function reportOf(code) {
  const storage = join(code.root, "data", "User", "workspaceStorage");
  const found = readdirSync(storage, { recursive: true }).find((name) => name.endsWith("migration.html"));
  return found && join(storage, found);
}
