/** Checks that take long: shown, cancelled, paused; and nothing of them is left. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { NET, SLOW } from "./programs.mjs";
import { eventually, within } from "./workbench.mjs";

test("a long check is cancelled, and its processes end", { timeout: 600_000 }, async () => {
  await within("cancel", { files: { "slow.py": SLOW, "net.py": NET } }, async (code) => {
    await code.openFile("slow.py");
    await code.clickLens("Check", "Check conversions by running");
    await code.answer("Check conversions by running", "Allow");
    const checking = await code.status("checking slow.py: Slow");
    await eventually(
      () => workers(code).length,
      (count) => count > 0,
      "a worker",
    );
    await code.shot("cancel");
    // In one place: nothing else on the screen says so.
    assert.equal(await code.page.locator(".notification-toast").count(), 0);
    assert.equal(await code.page.locator(".statusbar-item", { hasText: /checking|Slow/ }).count(), 1);
    await checking.click();
    await code.page.locator(".quick-input-list .monaco-list-row", { hasText: "Cancel Running Check" }).first().click();
    await checking.waitFor({ state: "detached" });
    await eventually(
      () => sleeping(code),
      (count) => count === 0,
      "processes in the cancelled check",
    );
    // And the next check runs.
    await code.openFile("net.py");
    await code.command("t2j: Check Conversion of This File");
    await code.lens("✓ checked");
    await code.command("t2j: Pause Background Checks");
    await code.status("paused");
    await code.command("t2j: Resume Background Checks");
    await eventually(
      () => code.page.locator(".statusbar-item", { hasText: "paused" }).count(),
      (n) => n === 0,
      "paused",
    );
  });
});

/** The processes of this workbench whose command line has the text. */
function processes(code, text) {
  const lines = execFileSync("ps", ["-eo", "pid,pgid,args"], { encoding: "utf8" }).split("\n");
  const own = lines.filter((line) => line.includes(text));
  return own.filter((line) => ancestors(line).includes(code.server.pid));
}

function ancestors(line) {
  const parents = new Map(
    execFileSync("ps", ["-eo", "pid,ppid"], { encoding: "utf8" })
      .trim()
      .split("\n")
      .slice(1)
      .map((row) => row.trim().split(/\s+/).map(Number)),
  );
  const found = [];
  for (let pid = Number(line.trim().split(/\s+/)[0]); pid; pid = parents.get(pid) ?? 0) {
    found.push(pid);
  }
  return found;
}

const workers = (code) => processes(code, "check/workers");

/** How many torch workers there are: that of the cancelled check sleeps for ten minutes, and has to be killed. */
const sleeping = (code) => processes(code, "start.py torch").length;
