/** A real VS Code in a real browser: started for one folder, driven by what a user sees and does. */

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import {
  copyFileSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { chromium } from "playwright-core";

const BROWSER_FLAGS = [
  "--no-sandbox",
  // Nothing here has a GPU, and Debian's browser asks for one all the same: what stands for it draws on the processor.
  "--disable-gpu",
  "--disable-gpu-rasterization",
  "--disable-gpu-compositing",
  "--disable-software-rasterizer",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const WAIT = 30_000;
const VIEWPORT = { width: 1500, height: 900 };
/** Longest wait for a check: workers start, both libraries are imported, and JAX compiles, on a machine that others use. */
export const CHECK = 240_000;

const QUIET = {
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "editor.minimap.enabled": false,
  "editor.cursorBlinking": "solid",
  "editor.hover.delay": 100,
  "editor.hover.sticky": true,
  "telemetry.telemetryLevel": "off",
  "update.mode": "none",
  "extensions.autoCheckUpdates": false,
  "chat.disableAIFeatures": true,
  "window.autoDetectColorScheme": false,
  "workbench.colorTheme": "Default Light Modern",
  "files.autoSave": "off",
  // The text of a terminal is in the page.
  "terminal.integrated.gpuAcceleration": "off",
};

/** What turns for as long as something lasts: drawing it takes as much of the processor as what is waited for. */
const STILL = ".codicon-modifier-spin, .monaco-progress-container .progress-bit { animation: none !important; }";

export class Workbench {
  /**
   * @param {{files: Record<string, string | ((root: string) => string)>, settings?: object, trusted?: boolean, extensions?: string[], env?: object, viewport?: {width: number, height: number}, fresh?: boolean}} options
   *   files: name to text, or to what makes it of the test's own folder, in the folder that is opened. trusted: false leaves the workspace in Restricted Mode.
   *   fresh: true has the extension as it comes out of its package; what it has in Python is compiled already otherwise.
   */
  static async open(options) {
    const workbench = new Workbench();
    try {
      await workbench.#start(options);
    } catch (error) {
      await workbench.close();
      throw error;
    }
    return workbench;
  }

  async #start({
    files,
    settings = {},
    trusted = true,
    extensions = [process.env.T2J_VSIX],
    env = {},
    viewport = VIEWPORT,
    fresh = false,
  }) {
    this.root = mkdtempSync(join(tmpdir(), "t2j-vscode-"));
    this.folder = join(this.root, "project");
    for (const [name, text] of Object.entries(files)) {
      this.write(name, typeof text === "function" ? text(this.root) : text);
    }
    const data = join(this.root, "data");
    const trust = trusted
      ? { "security.workspace.trust.enabled": false }
      : { "security.workspace.trust.startupPrompt": "never" };
    const strategy = process.env.T2J_IMPORT_STRATEGY ? { "t2j.importStrategy": process.env.T2J_IMPORT_STRATEGY } : {};
    const own = { "t2j.interpreter": process.env.T2J_PYTHON, "t2j.check.delay": 0.2, ...strategy };
    writeJson(join(data, "User", "settings.json"), { ...QUIET, ...trust });
    // In a browser, settings about this machine are taken from the server's file alone.
    writeJson(join(data, "Machine", "settings.json"), { ...own, ...settings });
    const folders = ["--user-data-dir", data, "--extensions-dir", join(this.root, "extensions")];
    const home = { HOME: this.root, T2J_STATE: join(this.root, "state"), JAX_PLATFORMS: "cpu", OMP_NUM_THREADS: "1" };
    const environment = { ...process.env, ...home, ...env, PORT: "" };
    if (extensions.includes(process.env.T2J_VSIX)) {
      lend(process.env.T2J_EXTENSIONS, join(this.root, "extensions"), fresh);
    }
    for (const file of extensions.filter((one) => one !== process.env.T2J_VSIX)) {
      const install = [process.env.T2J_CODE_SERVER, ...folders, "--install-extension", file];
      execFileSync(process.execPath, install, { env: environment, stdio: ["ignore", "ignore", "pipe"] });
    }
    const serve = ["--bind-addr", "127.0.0.1:0", "--auth", "none", "--disable-telemetry", "--disable-update-check"];
    this.server = spawn(process.execPath, [process.env.T2J_CODE_SERVER, ...folders, ...serve], {
      env: environment,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.address = await addressOf(this.server);
    this.profile = join(this.root, "browser");
    this.browser = await chromium.launchPersistentContext(this.profile, {
      executablePath: process.env.T2J_CHROMIUM,
      args: BROWSER_FLAGS,
      headless: true,
      viewport,
    });
    await this.browser.grantPermissions(["clipboard-read", "clipboard-write"], { origin: this.address });
    this.page = this.browser.pages()[0] ?? (await this.browser.newPage());
    this.page.setDefaultTimeout(WAIT);
    await this.page.goto(`${this.address}/?folder=${encodeURIComponent(this.folder)}`);
    await this.page.locator(".monaco-workbench .statusbar").waitFor();
    await this.page.addStyleTag({ content: STILL });
  }

  /** Write a file of the opened folder, as another program would. */
  write(name, text) {
    const file = join(this.folder, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }

  // --- what a user does ------------------------------------------------------------------------------------------------

  /** Open a file that lies at the top of the folder, from the explorer. */
  async openFile(name) {
    const files = this.page.locator(".explorer-folders-view");
    if (!(await files.isVisible())) {
      await this.page.keyboard.press("Control+Shift+E");
    }
    await files.getByText(name, { exact: true }).dblclick();
    await this.#active(name);
  }

  /** Run a command by its title in the palette; `next` is what it opens in the palette's place, if it does. */
  async command(title, next = undefined) {
    await this.#pick("F1", `>${title}`, title, next);
  }

  /** Choose in a quick input. It closes when an editor that is still opening takes the focus: then it is opened again. */
  async #pick(key, text, title, next = undefined) {
    const widget = this.page.locator(".quick-input-widget");
    const input = widget.locator(".quick-input-filter input");
    const row = widget.locator(".quick-input-list .monaco-list-row", { hasText: title }).first();
    for (let attempt = 1; ; attempt++) {
      try {
        await this.page.keyboard.press(key);
        await input.fill(text, { timeout: 5_000 });
        await row.click({ timeout: 5_000 });
        break;
      } catch (error) {
        if (attempt === 4) {
          throw error;
        }
        await this.page.keyboard.press("Escape");
      }
    }
    await (next ? next.waitFor() : widget.waitFor({ state: "hidden" }));
  }

  /** Put the cursor at a line and column, both from 1, of the active editor. */
  async goTo(line, column = 1) {
    await this.page.keyboard.press("Control+G");
    const input = this.page.locator(".quick-input-widget .quick-input-filter input");
    await input.fill(`:${line}:${column}`);
    // Before its row is there, the key goes to nothing.
    await this.page.locator(".quick-input-widget .monaco-list-row", { hasText: String(line) }).waitFor();
    await input.press("Enter");
    await this.page.locator(".quick-input-widget").waitFor({ state: "hidden" });
  }

  /** Replace a text that stands once in the active editor, by typing over it. */
  async typeOver(text, replacement) {
    await this.page.keyboard.press("Control+F");
    const find = this.page.locator(".find-widget.visible .find-part textarea");
    await find.fill(text);
    await this.page.locator(".find-widget.visible .matchesCount", { hasText: "1 of 1" }).waitFor();
    await this.page.keyboard.press("Escape");
    await this.page.keyboard.type(replacement);
  }

  /** Open the menu of code actions at the cursor and choose one by its title. */
  async codeAction(title) {
    const entry = this.page.locator(".action-widget .monaco-list-row", { hasText: title });
    await this.page.keyboard.press("Control+.");
    await entry.first().waitFor();
    await this.shot(`actions ${title}`);
    // Opened anew: an entry does nothing once the editor has asked for other actions, as it may while the picture is taken.
    await this.page.keyboard.press("Escape");
    await this.page.keyboard.press("Control+.");
    await entry.first().click();
  }

  /** Convert a file of the folder and apply the preview. */
  async convert(name) {
    await this.openFile(name);
    await this.lens("Convert to JAX");
    await this.command("t2j: Convert File to JAX…");
    await this.previewed();
    await this.command("t2j: Apply Conversion");
    const made = `${name.slice(0, -".py".length)}_jax.py`;
    await this.#active(made);
  }

  /** The lines of the conversion in a preview that are in view, once there are some. */
  async previewed() {
    const lines = this.page.locator(".monaco-diff-editor .editor.modified .view-line");
    await eventually(async () => (await lines.allInnerTexts()).join("").trim(), Boolean, "the preview");
    return lines;
  }

  async #active(name) {
    await this.page.locator(`.editor-group-container.active .tab.active[data-resource-name="${name}"]`).waitFor();
  }

  /** Rest the mouse on a text of the active editor; the hover's locator. */
  async hover(text) {
    const token = this.page.locator(".editor-group-container.active .view-line span", { hasText: text }).last();
    const shown = this.page.locator(
      ".monaco-hover:not(.hidden) .hover-contents, .monaco-hover:not(.hidden) .hover-row",
    );
    // Lenses that come in above a line move it away from under the mouse: the mouse then follows it.
    const follow = async () => {
      await token.hover();
      return shown
        .first()
        .waitFor({ timeout: 3_000 })
        .then(
          () => true,
          () => false,
        );
    };
    await eventually(follow, Boolean, `the hover of ${text}`);
    return this.page.locator(".monaco-hover:not(.hidden)").first();
  }

  /** A notification with the text, once it is shown. */
  async notification(text, timeout = WAIT) {
    const toast = this.page.locator(".notification-toast", { hasText: text }).first();
    await toast.waitFor({ timeout });
    return toast;
  }

  /** Answer a notification: waits for one with the text and presses one of its buttons. */
  async answer(text, button) {
    const toast = await this.notification(text);
    await toast.locator(".monaco-button", { hasText: button }).first().click();
  }

  // --- what a user sees ------------------------------------------------------------------------------------------------

  /** The lens with a text, once it is there. */
  async lens(text, timeout = CHECK) {
    const found = this.page.locator(".codelens-decoration a, .codelens-decoration span", { hasText: text }).first();
    await found.waitFor({ timeout });
    return found;
  }

  /** Click a lens until a notification with the text is there: a click on a lens that is drawn anew meets nothing. */
  async clickLens(text, notified) {
    const toast = this.page.locator(".notification-toast", { hasText: notified }).first();
    for (let attempt = 0; attempt < 5 && !(await toast.isVisible()); attempt++) {
      await (await this.lens(text)).click();
      await toast.waitFor({ timeout: 3_000 }).catch(() => undefined);
    }
    await toast.waitFor();
  }

  async status(text, timeout = WAIT) {
    const item = this.page.locator(".statusbar-item", { hasText: text }).first();
    await item.waitFor({ timeout });
    return item;
  }

  /** The rows of the Problems panel, once one has the text. */
  async problem(text, timeout = CHECK) {
    const panel = this.page.locator(".markers-panel");
    if (!(await panel.isVisible())) {
      await this.page.keyboard.press("Control+Shift+M");
    }
    const row = panel.locator(".monaco-list-row", { hasText: text }).first();
    await row.waitFor({ timeout });
    return row;
  }

  /** The text of the active editor as the screen has it: only lines in view. */
  async visibleText() {
    const lines = this.page.locator(".editor-group-container.active .monaco-editor .view-line");
    return (await lines.allInnerTexts()).join("\n").replaceAll("\u00a0", " ");
  }

  /** Keep a picture of the page. */
  async shot(name) {
    const file = join(process.env.T2J_RESULTS, `${name.replace(/[^\w]+/g, "-").toLowerCase()}.png`);
    await this.page.screenshot({ path: file });
  }

  /** The end of the extension's own log. */
  log() {
    const logs = join(this.root, "data", "logs");
    const names = readdirSync(logs, { recursive: true }).filter((name) => /t2j\.log$|exthost[^/]*\.log$/.test(name));
    return names.map((name) => `${name}:\n${readFileSync(join(logs, name), "utf8").slice(-3000)}`).join("\n");
  }

  async close() {
    await this.browser?.close();
    if (this.server?.pid && this.server.exitCode === null) {
      const gone = new Promise((resolve) => this.server.once("exit", resolve));
      process.kill(-this.server.pid, "SIGTERM");
      await gone;
    }
    rmSync(this.root, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}

/**
 * Run a test's body with a workbench. A body that fails is run again in a new one, twice at most, and that is said: what a
 * browser draws and when is not ours. On failure a picture is kept of what was on the screen.
 */
export async function within(name, options, body) {
  for (const again of ["", " again", " a third time"]) {
    try {
      await attempt(`${name}${again}`, options, body);
      return;
    } catch (error) {
      if (again === " a third time") {
        throw error;
      }
      console.error(`${name}${again}: failed, and is tried again: ${error.message.split("\n")[0]}`);
    }
  }
}

async function attempt(name, options, body) {
  const workbench = await Workbench.open(options);
  try {
    await body(workbench);
  } catch (error) {
    await workbench.shot(`failed ${name}`);
    console.error(workbench.log());
    throw error;
  } finally {
    await workbench.close();
  }
}

/** Wait until a condition holds; the last value is in the failure's message. */
export async function eventually(read, holds, what, timeout = WAIT) {
  const end = Date.now() + timeout;
  let value = await read();
  while (!holds(value)) {
    assert.ok(Date.now() < end, `${what}: last ${JSON.stringify(value)}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
    value = await read();
  }
  return value;
}

/** Put the installed extension into a folder: its files are shared, but for those that VS Code writes. */
function lend(from, to, fresh) {
  mkdirSync(to);
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) {
      if (!fresh || entry.name !== "__pycache__") {
        lend(source, target, fresh);
      }
    } else if (dirname(from) === dirname(process.env.T2J_EXTENSIONS)) {
      copyFileSync(source, target);
    } else {
      linkSync(source, target);
    }
  }
}

function addressOf(server) {
  return new Promise((resolve, reject) => {
    let said = "";
    const look = (chunk) => {
      said += chunk;
      const found = /listening on (http:\/\/127\.0\.0\.1:\d+)/.exec(said);
      if (found) {
        resolve(found[1]);
      }
    };
    server.stdout.on("data", look);
    server.stderr.on("data", look);
    server.once("exit", (code) => reject(new Error(`code-server ended with ${code}: ${said.slice(-2000)}`)));
  });
}

function writeJson(file, value) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, JSON.stringify(value, null, 2));
}
