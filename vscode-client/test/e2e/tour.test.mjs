/**
 * A tour of what users see, as pictures in test-results/tour. What a picture is to show is asserted of the page's text first.
 * T2J_README_PICTURES=1 copies those that the extension's README shows to media/readme.
 */

import assert from "node:assert/strict";
import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { extension } from "./parts.mjs";
import { HALF_TYPED, TRAIN, WITH_GAPS } from "./tour_programs.mjs";
import { eventually, Workbench } from "./workbench.mjs";

const TIMEOUT = 600_000;
const FOLDER = join(process.env.T2J_RESULTS, "tour");
const README = join(extension, "media", "readme");
const IN_README = ["hover-loss-backward", "preview", "verdict", "mistake"];

/** Where the mouse rests, what the hover has to show, and what it must not. */
const HOVERS = [
  { name: "optimizer step", at: "optimizer.|step()", shows: [/optimizer\.update\(model, grads\)/] },
  { name: "zero grad", at: "optimizer.|zero_grad()", shows: [/train_step/] },
  { name: "loss backward", at: "loss.|backward()", shows: [/nnx\.value_and_grad\(loss_fn\)\(model\)/] },
  { name: "scheduler step", at: "scheduler.|step()", shows: [/scheduler\.step\(\)/] },
  { name: "model train", at: "model.|train()", shows: [/model\.train\(\)/] },
  { name: "self apply", at: "self.|apply(init_weights)", shows: [/nnx\.iter_modules\(self\)/] },
  { name: "decorator", at: "@torch.|no_grad()", shows: [/accuracy/], never: [/stop_gradient/] },
  { name: "with no grad", at: "with torch.|no_grad():", shows: [/lax\.stop_gradient\(/] },
  { name: "indexing", at: "h|[:, 0] = 0.0", shows: [/h\.at\[:, 0\]\.set\(0\.0\)/] },
  { name: "in place", at: "h.|mul_(0.5)", shows: [/h \* 0\.5/] },
];

let code;

before(async () => {
  mkdirSync(FOLDER, { recursive: true });
  code = await Workbench.open({
    files: { "train.py": TRAIN, "draft.py": HALF_TYPED, "watched.py": WITH_GAPS },
    // A slow machine shall not change what the pictures show.
    settings: { "diffEditor.maxComputationTime": 0 },
    viewport: { width: 1120, height: 680 },
  });
});
after(() => code?.close());

/** One stop of the tour: its tests go through one workbench, in order. */
function stop(name, body) {
  test(name, { timeout: TIMEOUT }, async () => {
    try {
      await body(code);
    } catch (error) {
      await code.shot(`failed ${name}`);
      console.error(code.log());
      throw error;
    }
  });
}

async function picture(name) {
  const file = join(FOLDER, `${name.replaceAll(" ", "-")}.png`);
  await code.page.screenshot({ path: file, animations: "disabled" });
  if (process.env.T2J_README_PICTURES && IN_README.includes(name.replaceAll(" ", "-"))) {
    mkdirSync(README, { recursive: true });
    copyFileSync(file, join(README, `${name.replaceAll(" ", "-")}.png`));
  }
}

const shown = async (locator) => (await locator.allInnerTexts()).join("\n").replaceAll("\u00a0", " ");
const lenses = () => shown(code.page.locator(".codelens-decoration"));

stop("lenses before anything is converted", async () => {
  await open("train.py");
  await code.lens("Convert to JAX");
  await picture("lens not converted");
});

for (const { name, at, shows, never = [] } of HOVERS) {
  stop(`hover: ${name}`, async () => {
    const [line, column] = placeOf(TRAIN, at);
    await code.goTo(line, column);
    const text = await hoverAtCursor();
    await picture(`hover ${name}`);
    for (const wanted of shows) {
      assert.match(text, wanted);
    }
    for (const unwanted of never) {
      assert.doesNotMatch(text, unwanted);
    }
    await code.page.keyboard.press("Escape");
  });
}

stop("a half-typed file works where it parses", async () => {
  await open("draft.py");
  await code.lens("Not converted: line 16");
  await code.problem("was never closed");
  const [line, column] = placeOf(HALF_TYPED, "F.|gelu");
  await code.page.locator(".editor-group-container.active .monaco-editor").first().click();
  await code.goTo(line, column);
  const text = await hoverAtCursor();
  await picture("half typed");
  assert.match(text, /jax\.nn\.gelu\(self\.fc\(x\), approximate=False\)/);
  await code.page.keyboard.press("Escape");
  await code.page.keyboard.press("Control+J");
  await code.page.locator(".markers-panel").waitFor({ state: "hidden" });
});

stop("lenses of a file with gaps", async () => {
  await open("watched.py");
  await code.lens("left as PyTorch");
  await picture("lens gaps");
  assert.match(await lenses(), /1 place left as PyTorch/);
});

stop("the preview opens at the user's first definition", async () => {
  await open("train.py");
  await code.command("t2j: Convert File to JAX…");
  const right = code.page.locator(".monaco-diff-editor .editor.modified .view-line");
  await right.filter({ hasText: "class Classifier" }).first().waitFor();
  await away();
  await picture("preview");
});

stop("the verdict on a file says what it covers", async () => {
  await code.command("t2j: Apply Conversion");
  await code.answer("Check conversions by running", "Allow");
  await code.lens("✓ checked");
  // The PyTorch file is in the first group, its conversion in the second.
  await code.page.keyboard.press("Control+1");
  await code.command("t2j: Check Conversion of This File");
  const toast = await code.notification("1 of 1 class equivalent");
  await away();
  await picture("verdict");
  assert.match(await shown(toast), /train\.py/);
  await code.page.keyboard.press("Escape");
});

stop("the status item says how checks are contained", async () => {
  await (await code.status("t2j")).hover();
  const tooltip = code.page.locator(".monaco-hover:not(.hidden)").last();
  await tooltip.waitFor();
  await eventually(
    () => shown(tooltip),
    (text) => /Checks are held by|Not held here/.test(text),
    "containment in the tooltip",
  );
  await picture("status");
  await code.page.keyboard.press("Escape");
});

stop("one planted mistake is one error", async () => {
  await code.page.keyboard.press("Control+2");
  await code.typeOver("approximate=False", "approximate=True");
  await code.page.keyboard.press("Escape");
  await code.lens("≠ differs");
  await code.problem("train_jax.py");
  await away();
  await picture("mistake");
  const errors = code.page.locator(".markers-panel .monaco-list-row", { hasText: "t2j-differs" });
  assert.equal(await errors.count(), 1);
  const counted = code.page.locator('.statusbar-item[id="status.problems"]');
  assert.match((await counted.getAttribute("aria-label")) ?? "", /Errors: 1/);
});

stop("the walkthrough shows its pictures", async () => {
  await code.page.keyboard.press("Control+J");
  // Beside another group there is no room for the media of a step.
  await code.command("View: Join All Editor Groups");
  await code.command("t2j: The First Five Minutes");
  await code.page.locator(".getting-started-step", { hasText: "Read the verdict" }).first().click();
  const shownPage = code.page.frameLocator("iframe.webview.ready").frameLocator("#active-frame");
  const image = shownPage.locator("img").first();
  await image.waitFor();
  await eventually(
    () => image.evaluate((one) => one.naturalWidth),
    (width) => width > 600,
    "a picture in the walkthrough",
  );
  await picture("walkthrough");
});

/** Take the mouse where it points at nothing. */
const away = () => code.page.mouse.move(400, 664);

/** Open a file, and give the editor the width of the page. */
async function open(name) {
  await code.openFile(name);
  await code.page.keyboard.press("Control+B");
  await code.page.locator(".explorer-folders-view").waitFor({ state: "hidden" });
}

/** Line and column, from 1, of the place marked with | in a piece of a text that stands there once. */
function placeOf(text, marked) {
  const piece = marked.replace("|", "");
  assert.equal(text.split(piece).length, 2, piece);
  const before = text.slice(0, text.indexOf(piece) + marked.indexOf("|")).split("\n");
  return [before.length, before.at(-1).length + 1];
}

async function hoverAtCursor() {
  await code.page.keyboard.press("Control+K");
  await code.page.keyboard.press("Control+I");
  const hover = code.page.locator(".monaco-hover:not(.hidden)", { has: code.page.locator(".hover-row") }).first();
  await hover.waitFor({ timeout: 10_000 });
  // The first row may be "Loading...".
  return eventually(
    () => shown(hover),
    (text) => !/loading/i.test(text),
    "a hover",
  );
}
