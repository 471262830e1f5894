/** Finding the interpreter and the server: the Python extension, the bundled t2j, and what is said where something is missing. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { extension } from "./parts.mjs";
import { NET } from "./programs.mjs";
import { within } from "./workbench.mjs";

const TIMEOUT = 600_000;
let folder;
let bare;

before(() => {
  folder = mkdtempSync(join(tmpdir(), "t2j-install-"));
  execFileSync(process.env.T2J_PYTHON, ["-m", "venv", "--without-pip", join(folder, "venv")]);
  bare = join(folder, "venv", "bin", "python");
});
after(() => rmSync(folder, { recursive: true, force: true }));

test("the Python extension's interpreter runs the server, with its own t2j where that is wanted", {
  timeout: TIMEOUT,
}, async () => {
  const stub = pythonExtension(process.env.T2J_PYTHON);
  const options = {
    files: { "net.py": NET },
    extensions: [stub, process.env.T2J_VSIX],
    fresh: true,
    settings: { "t2j.interpreter": "", "t2j.importStrategy": "fromEnvironment" },
  };
  await within("python extension", options, async (code) => {
    await code.openFile("net.py");
    await code.lens("Convert to JAX");
    assert.match(code.log(), /Interpreter from the Python extension/);
    assert.match(code.log(), /Server: the environment's t2j/);
  });
});

test("without t2j in the environment the bundled one runs, and what checks need is offered", {
  timeout: TIMEOUT,
}, async () => {
  const options = { files: { "net.py": NET }, settings: { "t2j.interpreter": bare }, fresh: true };
  await within("bundled", options, async (code) => {
    await code.openFile("net.py");
    const toast = await code.notification("Checks need torch");
    await toast.locator(".monaco-button", { hasText: "Install" }).waitFor();
    await code.shot("missing packages");
    await code.lens("Convert to JAX");
    const hover = await code.hover("gelu");
    await hover.getByText("approximate=False").waitFor();
    assert.match(code.log(), /Server: the bundled t2j/);
    await toast.locator(".monaco-button", { hasText: "Install" }).first().click();
    await code.page.locator(".terminal-wrapper .xterm-rows", { hasText: /pip\sinstall\s'torch'/ }).waitFor();
  });
});

test("an interpreter that is not there is named", { timeout: TIMEOUT }, async () => {
  const options = { files: { "net.py": NET }, settings: { "t2j.interpreter": join(folder, "nowhere") } };
  await within("no interpreter", options, async (code) => {
    await code.openFile("net.py");
    await code.notification("can't be run: there is no such program (named by the setting)");
    await code.status("t2j error");
  });
});

/** A package that stands for the Python extension: it offers the part of its API that we ask. */
function pythonExtension(python) {
  const source = join(folder, "stub");
  mkdirSync(source);
  const manifest = {
    name: "python",
    publisher: "ms-python",
    version: "2026.1.0",
    engines: { vscode: "^1.93.0" },
    main: "./main.js",
    activationEvents: [],
  };
  writeFileSync(join(source, "package.json"), JSON.stringify(manifest));
  const body = `
const vscode = require("vscode");
const path = { id: "stub", path: ${JSON.stringify(python)} };
exports.activate = () => ({
  environments: {
    getActiveEnvironmentPath: () => path,
    resolveEnvironment: async () => ({ executable: { uri: vscode.Uri.file(path.path) } }),
    onDidChangeActiveEnvironmentPath: new vscode.EventEmitter().event,
  },
});`;
  writeFileSync(join(source, "main.js"), body);
  const vsce = join(extension, "node_modules", "@vscode", "vsce", "vsce");
  const file = join(folder, "python.vsix");
  const flags = ["--no-dependencies", "--allow-missing-repository", "--skip-license", "--out", file];
  execFileSync(process.execPath, [vsce, "package", ...flags], { cwd: source, stdio: "ignore" });
  return file;
}
