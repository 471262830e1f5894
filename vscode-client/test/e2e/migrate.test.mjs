/** The main flow: hover, lightbulb, preview, apply, verdict, a planted mistake, its diagnostic, its quick fix. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { NET } from "./programs.mjs";
import { CHECK, eventually, within } from "./workbench.mjs";

const TIMEOUT = 600_000;

test("from a hover to a verdict, a planted mistake and its quick fix", { timeout: TIMEOUT }, async () => {
  await within("migrate", { files: { "net.py": NET } }, async (code) => {
    const { page } = code;
    await code.openFile("net.py");
    await code.status("t2j");
    await code.lens("Convert to JAX…");

    const hover = await code.hover("gelu");
    await hover.getByText("approximate=False").waitFor();
    await code.shot("1 hover");
    await page.keyboard.press("Escape");

    await code.goTo(13, 15);
    await code.codeAction("Convert file to JAX (new file net_jax.py)");
    await page.locator(".monaco-diff-editor").waitFor();
    await page.locator(".monaco-diff-editor .editor.modified", { hasText: "nnx.Module" }).waitFor();
    await code.shot("2 preview");

    await page.locator(".editor-actions a[aria-label^='Apply Conversion']").first().click();
    await code.answer("Check conversions by running", "Allow");
    await code.lens("✓ checked");
    await code.shot("3 equivalent");
    const converted = readFileSync(join(code.folder, "net_jax.py"), "utf8");
    assert.match(converted, /jax\.nn\.gelu\(self\.fc1\(x\), approximate=False\)/);

    await code.openFile("net_jax.py");
    await code.typeOver("approximate=False", "approximate=True");
    const problem = await code.problem("Net differs from PyTorch, net.py");
    const line = converted.split("\n").findIndex((text) => text.includes("approximate=False")) + 1;
    assert.match((await problem.innerText()).replace(/\s+/g, " "), new RegExp(`Ln ${line},`));
    await code.shot("4 different");

    await code.goTo(line, 20);
    await code.codeAction("Write this as the rules convert it");
    await eventually(
      () => code.visibleText(),
      (text) => text.includes("approximate=False"),
      "the fixed text",
    );
    await code.openFile("net.py");
    await code.lens("✓ checked", CHECK);
    await code.shot("5 fixed");
  });
});
