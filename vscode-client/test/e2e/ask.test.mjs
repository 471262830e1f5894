/**
 * Asking a model, which is a script on this machine: what would be sent is shown and agreed to, an answer streams in, is checked
 * and undone in one step, a draft is marked, and the key is in no log and no file.
 */

import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { SLOPE } from "./programs.mjs";
import { eventually, within } from "./workbench.mjs";

const TIMEOUT = 900_000;
/** Longest wait for rounds: each starts with JAX in a process of its own, and the first with both workers. */
const ROUNDS = 300_000;
const KEY = "sk-secret-of-the-end-to-end-test";
const answer = (code) => `### SPAN 1\n\`\`\`python\n${code}\n\`\`\`\n\nCLAIM: equivalent\n`;
const RIGHT = answer("dy = jnp.cumsum(y, axis=1)");
const WRONG = answer("dy = -jnp.cumsum(y, axis=1)");

test("a model is asked once the user agreed, its answer is checked, and one undo takes it back", {
  timeout: TIMEOUT,
}, async (t) => {
  // The second answer stops half-way, until the test has seen it stream in.
  const model = await scripted(t, [WRONG, { text: RIGHT, pause: true }]);
  await within("ask", options(model), async (code) => {
    const { page } = code;
    model.begin();
    await traceEverything(code);
    await setKey(code, model);
    await openAtGap(code);
    await ask(code);
    await code.answer("Check conversions by running", "Allow");
    const question = await (await code.notification("Send code of slope.py to")).innerText();
    assert.ok(question.includes(model.host), question);
    await eventually(
      () => promptShown(code),
      (text) => text.includes("[system]"),
      "the prompt",
    );
    await code.shot("ask preview");
    assert.equal(model.requests.length, 0, "nothing is sent before the user agreed");
    await code.answer("Send code of slope.py to", "Send");
    const progress = page.locator(".notification-toast", { hasText: `Asking ${model.host} about Slope` }).first();
    await progress.waitFor();
    await progress.filter({ hasText: /small: round 2, about \d+ tokens/ }).waitFor({ timeout: ROUNDS });
    await code.shot("ask progress");
    model.resume();
    const said = await code.notification("Slope: ✓ checked", ROUNDS);
    assert.match((await said.innerText()).replace(/\s+/g, " "), /Answer by small, 2 rounds, [\d,]+ tokens; undo/);
    await active(code, "slope_jax.py");
    await eventually(
      () => code.visibleText(),
      (text) => text.includes("dy = jnp.cumsum(y, axis=1)") && !text.includes("TODO(t2j)"),
      "the answer",
    );
    await code.shot("ask verified");
    assert.deepEqual(model.keys, [`Bearer ${KEY}`, `Bearer ${KEY}`]);
    // The workspace is asked once: the next question goes out at once. It is cancelled, and leaves nothing.
    await undoAnswer(code);
    model.steps = [...model.steps, { silent: true }];
    await openAtGap(code);
    await ask(code);
    await eventually(
      () => model.requests.length,
      (count) => count === 3,
      "the third request",
    );
    await code.notification(`Asking ${model.host} about Slope`);
    await (await code.notification(`Asking ${model.host} about Slope`))
      .locator(".monaco-button", { hasText: "Cancel" })
      .first()
      .click();
    await model.left;
    await progress.waitFor({ state: "detached" });
    holdsNoKey(code);
  });
});

test("what the check does not verify is a marked draft, and only if the user wants it", {
  timeout: TIMEOUT,
}, async (t) => {
  const model = await scripted(t, [WRONG]);
  await within("ask draft", options(model, { "t2j.model.rounds": 1 }), async (code) => {
    model.begin();
    await openAtGap(code);
    await ask(code);
    await code.answer("Check conversions by running", "Allow");
    await code.answer("Send code of slope.py to", "Send");
    await code.notification("Slope: not verified by the check: different", ROUNDS);
    assert.equal(existsSync(join(code.folder, "slope_jax.py")), false);
    await code.shot("ask draft offered");
    await code.answer("Slope: not verified by the check", "Write Draft");
    await active(code, "slope_jax.py");
    await code.problem("unverified draft by small");
    await eventually(
      () => code.visibleText(),
      (text) => text.includes("# TODO(t2j): unverified draft by small: different"),
      "the mark",
    );
    await code.shot("ask draft");
  });
});

test("nothing is sent where the user does not agree, or where no model is set", { timeout: TIMEOUT }, async (t) => {
  const model = await scripted(t, [RIGHT]);
  await within("ask refused", options(model), async (code) => {
    await openAtGap(code);
    await ask(code);
    await code.answer("Check conversions by running", "Allow");
    await code.answer("Send code of slope.py to", "Not in This Workspace");
    await eventually(
      () => code.page.locator(".tab", { hasText: "What would be sent" }).count(),
      (count) => count === 0,
      "the prompt's tab",
    );
    assert.equal(model.requests.length, 0);
    assert.equal(existsSync(join(code.folder, "slope_jax.py")), false);
  });
  await within("ask unset", { files: { "slope.py": SLOPE } }, async (code) => {
    await openAtGap(code);
    await code.page.keyboard.press("Control+.");
    const menu = code.page.locator(".action-widget");
    await menu.locator(".monaco-list-row", { hasText: "Ignore t2j-" }).first().waitFor();
    assert.equal(await menu.getByText("Ask the model").count(), 0);
  });
});

// --- what the tests do ------------------------------------------------------------------------------------------------

function options(model, more = {}) {
  const settings = { "t2j.model.names": ["small"], "t2j.model.baseUrl": model.url, "t2j.trace.server": "verbose" };
  return {
    files: { "slope.py": SLOPE },
    settings: { ...settings, "t2j.serverArguments": ["--log-level", "debug"], ...more },
  };
}

/** Have the messages to the server logged with all that is in them: their channel drops them below this level. */
async function traceEverything(code) {
  await code.openFile("slope.py");
  await code.lens("left as PyTorch");
  const row = (text) => code.page.locator(".quick-input-list .monaco-list-row", { hasText: text }).first();
  await code.command("Developer: Set Log Level...", row("t2j Messages"));
  await row("t2j Messages").click();
  await row("Trace").click();
  await code.page.locator(".quick-input-widget").waitFor({ state: "hidden" });
}

async function setKey(code, model) {
  const box = code.page.locator(".quick-input-widget .quick-input-box input[type=password]");
  await code.openFile("slope.py");
  await code.command("t2j: Set Model API Key…", box);
  assert.match(await code.page.locator(".quick-input-widget").innerText(), new RegExp(`API key for ${model.host}`));
  await box.fill(KEY);
  await box.press("Enter");
}

async function openAtGap(code) {
  await code.openFile("slope.py");
  await code.lens("left as PyTorch");
  await code.goTo(SLOPE.split("\n").findIndex((line) => line.includes("torch.ops.aten.cumsum")) + 1, 20);
}

/**
 * Choose the action at the cursor. Its menu closes where an editor that is still opening takes the focus, and its entry does
 * nothing where the editor has asked for new actions meanwhile: then it is chosen again.
 */
async function ask(code) {
  const entry = code.page.locator(".action-widget .monaco-list-row", { hasText: "Ask the model" }).first();
  const asked = code.page.locator(".notification-toast", {
    hasText: /Check conversions by running|Send code of|Asking /,
  });
  const shown = (what, timeout) =>
    what.waitFor({ timeout }).then(
      () => true,
      () => false,
    );
  await eventually(
    async () => {
      await code.page.keyboard.press("Control+.");
      if (!(await shown(entry, 5_000))) {
        await code.page.keyboard.press("Escape");
        return false;
      }
      await code.shot("ask action");
      await entry.click();
      return shown(asked.first(), 10_000);
    },
    Boolean,
    "the question",
  );
}

async function promptShown(code) {
  return (await code.page.locator(".editor-group-container .monaco-editor .view-line").allInnerTexts()).join("\n");
}

async function active(code, name) {
  await code.page
    .locator(`.editor-group-container.active .tab.active[data-resource-name="${name}"]`)
    .waitFor({ timeout: ROUNDS });
}

/** One undo takes the answer back: the file that it made, or its text. */
async function undoAnswer(code) {
  await code.goTo(1);
  await code.page.keyboard.press("Control+Z");
  const dialog = code.page.locator(".monaco-dialog-box");
  await eventually(
    async () => {
      if (await dialog.isVisible()) {
        await dialog.locator(".monaco-button").first().click();
      }
      const file = join(code.folder, "slope_jax.py");
      return `${await code.visibleText()}${existsSync(file) ? readFileSync(file, "utf8") : ""}`;
    },
    (text) => !text.includes("jnp.cumsum"),
    "the answer after one undo",
  );
}

/**
 * No file of the workspace, of VS Code's data, logs and traces, and of the server's state has the key. The browser's profile is
 * where code-server's secret storage is, and is VS Code's own.
 */
function holdsNoKey(code) {
  const folders = ["data", "project", "state"].map((name) => join(code.root, name));
  const files = folders
    .flatMap((folder) => readdirSync(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  const traced = files.filter((file) => /t2j Messages\.log$/.test(file));
  assert.ok(
    traced.length && readFileSync(traced[0], "utf8").includes("t2j/modelKey"),
    "the trace has the notification",
  );
  assert.deepEqual(
    files.filter((file) => readFileSync(file).includes(KEY)),
    [],
  );
}

/** An endpoint of OpenAI's protocol that answers from a script; the last step is said again and again. */
async function scripted(t, steps) {
  const model = { resume: () => undefined };
  // A test that failed is run once more, from the first step on.
  model.begin = () => Object.assign(model, { steps, requests: [], keys: [] });
  model.begin();
  let gone;
  model.left = new Promise((resolve) => {
    gone = resolve;
  });
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) {
      parts.push(part);
    }
    const step = model.steps[Math.min(model.requests.length, model.steps.length - 1)];
    model.requests.push(JSON.parse(Buffer.concat(parts).toString()));
    model.keys.push(request.headers.authorization);
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.flushHeaders();
    if (step.silent) {
      response.once("close", gone);
      return;
    }
    const text = step.text ?? step;
    const half = Math.floor(text.length * 0.9);
    const say = (content, finish = null) => event(response, [{ index: 0, delta: { content }, finish_reason: finish }]);
    say(`${" ".repeat(400)}${text.slice(0, half)}`);
    if (step.pause) {
      await new Promise((resolve) => {
        model.resume = resolve;
      });
    }
    say(text.slice(half));
    say("", "stop");
    response.end("data: [DONE]\n\n");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  model.host = `127.0.0.1:${server.address().port}`;
  model.url = `http://${model.host}/v1`;
  // A server that is still there would keep this process from ending.
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return model;
}

function event(response, choices) {
  const chunk = { id: "1", object: "chat.completion.chunk", created: 0, model: "scripted", choices };
  response.write(`data: ${JSON.stringify(chunk)}\n\n`);
}
