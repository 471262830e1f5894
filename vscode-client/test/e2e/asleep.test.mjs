/** Where nothing is PyTorch, no process of ours runs; the first sign of torch, or of a wish for t2j, starts the server. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { eventually, within } from "./workbench.mjs";

const TIMEOUT = 300_000;
const PLAIN = 'def greet(name):\n    return f"hello {name}"\n';
const ASLEEP = /Nothing here imports torch: the server is not started/;

test("a Python folder without torch starts no server, until torch is typed", { timeout: TIMEOUT }, async () => {
  await within("asleep", { files: { "plain.py": PLAIN } }, async (code) => {
    await code.openFile("plain.py");
    await eventually(
      () => code.log(),
      (log) => ASLEEP.test(log),
      "the extension looked for torch",
    );
    assert.deepEqual(servers(code.root), []);
    assert.equal(await code.page.locator(".statusbar-item", { hasText: "t2j" }).count(), 0);
    await code.goTo(1);
    await code.page.keyboard.type("import torch\n");
    await code.status("t2j");
    await eventually(
      () => servers(code.root).length,
      (count) => count > 0,
      "a server runs",
    );
  });
});

test("opening the Migration view starts it, too", { timeout: TIMEOUT }, async () => {
  await within("asleep view", { files: { "plain.py": PLAIN } }, async (code) => {
    await code.openFile("plain.py");
    await eventually(
      () => code.log(),
      (log) => ASLEEP.test(log),
      "the extension looked for torch",
    );
    await code.command("View: Show t2j");
    await code.status("t2j");
    await code.page.getByText("No PyTorch files were found in this workspace.").waitFor();
  });
});

/** The command lines of a workbench's processes that run t2j. Where the system has no /proc, none are found. */
function servers(root) {
  const read = (pid, what) => {
    try {
      return readFileSync(`/proc/${pid}/${what}`, "utf8");
    } catch {
      return "";
    }
  };
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => read(pid, "environ").includes(`HOME=${root}\0`))
    .map((pid) => read(pid, "cmdline"))
    .filter((command) => command.includes("t2j_lsp"));
}
