/**
 * A person's first five minutes, as the README has them, in a fresh profile: from the installation to the first verdict.
 * The steps and their times are printed and kept.
 */

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { extension } from "./parts.mjs";
import { Workbench } from "./workbench.mjs";

const checkout = dirname(extension);
const section = readFileSync(join(checkout, "README.md"), "utf8").split("## In VS Code")[1].split("\n## ")[0];
const commands = /```sh\n(.*?)```/s.exec(section)[1].trim().split("\n");
const labels = [...section.matchAll(/\*\*([^*]+)\*\*/g)].map((found) => found[1]);

test("from installation to the first verified conversion, by the README alone", { timeout: 600_000 }, async () => {
  assert.deepEqual(commands, ["make vsix", "code --install-extension vscode-client/t2j.vsix"]);
  assert.deepEqual(labels, ["t2j", "Convert File to JAX…", "Apply Conversion", "Allow"]);
  const [status, convert, apply, allow] = labels;
  const steps = [];
  const begun = Date.now();
  const done = (what) => steps.push({ step: what, seconds: Math.round((Date.now() - begun) / 100) / 10 });

  // The environment that has torch and jax is active, and nothing is set. (The path of a terminal does not reach code-server's
  // extensions: it asks a login shell for it.)
  const active = dirname(dirname(process.env.T2J_PYTHON));
  const example = readFileSync(join(checkout, "examples", "residual_net.py"), "utf8");
  const code = await Workbench.open({
    files: { "residual_net.py": example },
    settings: { "t2j.interpreter": "", "t2j.check.delay": 1.0 },
    fresh: true,
    env: { VIRTUAL_ENV: active, PATH: `${join(active, "bin")}:${process.env.PATH}` },
  });
  try {
    done(`${commands[1]}; code .`);
    await code.openFile("residual_net.py");
    await code.status(status);
    await code.lens("Convert to JAX");
    done("a PyTorch file is open, and the status bar says t2j");
    const hover = await code.hover("gelu");
    await hover.getByText("approximate=False").waitFor();
    done("the hover shows the call in JAX");
    await code.page.keyboard.press("Escape");
    await code.page.locator(`.editor-actions a[aria-label^="${convert}"]`).first().click();
    await code.previewed();
    done("the conversion is shown beside the file");
    await code.page.locator(`.editor-actions a[aria-label^="${apply}"]`).first().click();
    await code.answer("Check conversions by running", allow);
    done("the new file is made, and checks are allowed");
    await code.lens("✓ checked");
    done("the verdict stands above the class");
    await code.shot("first five minutes");
  } catch (error) {
    await code.shot("failed first five minutes");
    console.error(code.log());
    throw error;
  } finally {
    await code.close();
  }
  for (const { step, seconds } of steps) {
    console.log(`${seconds.toFixed(1).padStart(7)} s  ${step}`);
  }
  writeFileSync(join(process.env.T2J_RESULTS, "first-five-minutes.json"), JSON.stringify(steps, null, 2));
  assert.ok(steps.at(-1).seconds < 300);
});
