/**
 * What runs of a user's code: nothing in a workspace that is not trusted, and nothing before the user allowed it.
 *
 * A file that the code would write could not show that it ran, since workers may not write there. The code waits at a pipe
 * instead: a writer that does not wait finds a reader there only if the code runs.
 */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, closeSync, constants, openSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { waitingAt } from "./programs.mjs";
import { CHECK, eventually, within } from "./workbench.mjs";

const TIMEOUT = 600_000;
const WAITING = { "net.py": (root) => waitingAt(join(root, "project", "pipe")) };

test("an untrusted workspace converts, and runs nothing", { timeout: TIMEOUT }, async () => {
  await within("untrusted", { files: WAITING, trusted: false }, async (code) => {
    const pipe = withPipe(code);
    await code.convert("net.py");
    await code.openFile("net.py");
    await code.clickLens("Check", "needs a workspace that you trust");
    await code.answer("needs a workspace that you trust", "Manage Workspace Trust");
    const editor = code.page.locator(".workspace-trust-editor").first();
    await editor.waitFor();
    await code.shot("untrusted");
    await code.page.keyboard.press("Escape");
    await editor.waitFor({ state: "hidden" });
    await code.openFile("net_jax.py");
    await code.typeOver("class Net(nnx.Module)", "class Net( nnx.Module)");
    const info = await debugInfo(code);
    assert.equal(info.server.trusted, false);
    assert.equal(info.server.processes.check, null);
    assert.equal(runs(pipe), false, "the workspace's code runs");
  });
});

test("a trusted workspace runs nothing before the user allows it", { timeout: TIMEOUT }, async () => {
  await within("consent", { files: WAITING }, async (code) => {
    const pipe = withPipe(code);
    await code.convert("net.py");
    const question = await (await code.notification("Check conversions by running")).innerText();
    // What this system holds of a check is said before the first one, and stays in the status item's tooltip.
    const held = /They run as you\. (Checks are held by|Not held here: .*)/.exec(question.replace(/\s+/g, " "));
    assert.ok(held, question);
    await code.shot("consent");
    await (await code.status("t2j")).hover();
    await code.page
      .locator(".monaco-hover:not(.hidden)", { hasText: held[1].slice(0, 13) })
      .first()
      .waitFor();
    await code.shot("status tooltip");
    // The tooltip lies over the question's buttons.
    await code.page.mouse.move(700, 300);
    await code.page
      .locator(".monaco-hover:not(.hidden)", { hasText: held[1].slice(0, 13) })
      .waitFor({ state: "hidden" });
    // The tooltip lies over the question's buttons.
    await code.page.mouse.move(600, 500);
    await code.page.locator(".monaco-hover:not(.hidden)").first().waitFor({ state: "hidden" });
    await code.answer("Check conversions by running", "Not in This Workspace");
    assert.equal((await debugInfo(code)).server.trusted, false);
    assert.equal(runs(pipe), false, "the workspace's code runs");
    await code.command("t2j: Allow or Forbid Checks in This Workspace");
    await code.answer("Check conversions by running", "Allow");
    await eventually(() => runs(pipe), Boolean, "the check runs the code", CHECK);
  });
});

test("an interpreter of an untrusted workspace is not run", { timeout: TIMEOUT }, async () => {
  // The setting of a user's machine may say so: it names the folder that is open.
  const settings = { "t2j.interpreter": ["$", "{workspaceFolder}/.venv/bin/python"].join("") };
  await within("interpreter", { files: WAITING, trusted: false, settings }, async (code) => {
    const pipe = withPipe(code);
    code.write(".venv/bin/python", `#!/bin/sh\nread line < '${pipe}'\n`);
    chmodSync(join(code.folder, ".venv/bin/python"), 0o755);
    await code.openFile("net.py");
    await eventually(
      () => code.log(),
      (log) => /lies in this workspace, which is not trusted/.test(log),
      "the log",
    );
    assert.equal(runs(pipe), false, "the workspace's interpreter runs");
  });
});

function withPipe(code) {
  // In the project: a check that is held sees no other folder of the user's.
  const pipe = join(code.folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  return pipe;
}

/** Whether somebody waits at the pipe to read from it. */
function runs(pipe) {
  try {
    closeSync(openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK));
    return true;
  } catch (error) {
    assert.equal(error.code, "ENXIO");
    return false;
  }
}

async function debugInfo(code) {
  await code.command("t2j: Copy Debug Information");
  await code.notification("debug information is on the clipboard");
  return JSON.parse(await code.page.evaluate(() => navigator.clipboard.readText()));
}
