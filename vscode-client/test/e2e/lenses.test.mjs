/** Lenses and what they open: a preview at the user's own code, questions before a file is rewritten, the walkthrough's ticks. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { NET } from "./programs.mjs";
import { eventually, within } from "./workbench.mjs";

const TIMEOUT = 600_000;
/** The decomposition copies a helper; the trace stays as it is. */
const MIXED = `${NET.replace("class Net", "@torch.no_grad()\n@torch.compile\nclass Net")}

def middle(x: torch.Tensor):
    return torch.svd(x)


def traced(x):
    return torch.jit.trace(x, 3)
`;

test("a lens opens the preview at its definition, and nothing is rewritten without a yes", {
  timeout: TIMEOUT,
}, async () => {
  await within("lenses", { files: { "net.py": MIXED } }, async (code) => {
    const { page } = code;
    const text = () => code.visibleText();
    // Some lines of context are above it, and neither imports nor the first helpers.
    const startsAt = (line) =>
      eventually(
        async () => (await (await code.previewed()).allInnerTexts()).join("\n").replaceAll("\u00a0", " "),
        (found) => found.includes(line) && !/^(import|from) /m.test(found),
        `the preview at ${line}`,
      );
    await code.openFile("net.py");
    await code.lens("Convert file to JAX…");
    await code.lens("Stays PyTorch: torch.jit.trace: JAX compiles with jax.jit or nnx.jit");
    await code.lens("place left as PyTorch");
    await code.shot("lenses");

    await code.lens("Convert to JAX…");
    await page
      .locator(".codelens-decoration a", { hasText: /^Convert to JAX…$/ })
      .first()
      .click();
    await code.previewed();
    await startsAt("class Net(nnx.Module):");
    await code.shot("lens preview");
    await code.command("t2j: Discard Conversion");

    await code.openFile("net.py");
    await code.command("t2j: Convert File to JAX…");
    await code.previewed();
    await startsAt("class Net(nnx.Module):");
    await code.command("t2j: Discard Conversion");

    await code.openFile("net.py");
    const dialog = page.locator(".monaco-dialog-box");
    await code.goTo(20, 8);
    await code.codeAction("Rewrite function middle in place as JAX…");
    await dialog.getByText("Rewrite function middle of net.py in place as JAX?").waitFor();
    await code.shot("rewrite in place");
    await dialog.locator(".monaco-button", { hasText: "Cancel" }).first().click();
    assert.match(await text(), /torch\.svd/);
    await code.command("t2j: Rewrite in Place as JAX…");
    await dialog.locator(".monaco-button", { hasText: "Rewrite" }).first().click();
    await eventually(text, (found) => found.includes("def svd_with_v("), "the rewritten function");
    assert.match(readFileSync(join(code.folder, "net.py"), "utf8"), /torch\.svd/);
  });
});

test("lenses go once the file is converted, and the walkthrough ticks what was done", {
  timeout: TIMEOUT,
}, async () => {
  await within("ticks", { files: { "net.py": NET } }, async (code) => {
    const { page } = code;
    await code.openFile("net.py");
    await code.lens("Convert to JAX…");
    const ticked = async (steps) => {
      await code.command("t2j: The First Five Minutes");
      const done = page.locator(".getting-started-step", { has: page.locator(".codicon.complete") });
      const titles = async () => (await done.locator(".step-title").allInnerTexts()).map((title) => title.trim());
      await eventually(titles, (found) => found.join() === steps.join(), "the ticked steps");
    };
    await ticked(["Choose a Python interpreter"]);
    await code.shot("walkthrough at the start");
    await code.openFile("net.py");
    await (await code.hover("gelu")).getByText("approximate=False").waitFor();
    await page.keyboard.press("Escape");
    await code.convert("net.py");
    await code.answer("Check conversions by running", "Allow");
    await code.lens("✓ checked: outputs, gradients, 3 training steps · worst error");
    await code.openFile("net.py");
    await code.lens("✓ checked");
    await eventually(
      () => page.locator(".codelens-decoration a", { hasText: /Convert|Update/ }).count(),
      (count) => count === 0,
      "lenses that convert what is converted",
    );
    await code.shot("lenses after conversion");
    await ticked(["Choose a Python interpreter", "Rest on a torch call", "Convert the file", "Read the verdict"]);
    await code.shot("walkthrough ticks");
  });
});
