/**
 * Runs the end-to-end tests: packages the extension, and drives it in a real VS Code in a real browser.
 *
 *   node test/e2e/run.mjs [--keep] [PATTERN]      PATTERN: tests whose names match it
 *
 * T2J_PYTHON names the interpreter that has t2j, torch and jax (.venv of the checkout otherwise). T2J_VSIX names a package
 * that is made already. Exit code 3: a part is not there, with one line that says which.
 */

import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { browser, codeServer, extension, MissingPart } from "./parts.mjs";

const { positionals } = parseArgs({ allowPositionals: true });
const python = process.env.T2J_PYTHON ?? join(dirname(extension), ".venv", "bin", "python");
const results = join(extension, "test-results");

try {
  if (!existsSync(python)) {
    throw new MissingPart(`${python} is not there: run make test first, or set T2J_PYTHON`);
  }
  process.env.T2J_CHROMIUM = browser();
  process.env.T2J_CODE_SERVER = codeServer();
} catch (error) {
  if (!(error instanceof MissingPart)) {
    throw error;
  }
  console.log(`end-to-end tests in VS Code not run: ${error.message}`);
  process.exit(3);
}
rmSync(results, { recursive: true, force: true });
mkdirSync(results, { recursive: true });
process.env.T2J_PYTHON = python;
process.env.T2J_RESULTS = results;
process.env.T2J_VSIX ??= packaged(join(results, "t2j.vsix"));
const tests = readdirSync(join(extension, "test", "e2e")).filter((name) => name.endsWith(".test.mjs"));
const command = ["--test", "--test-concurrency=1", "--test-reporter=spec"];
const only = positionals.length ? [`--test-name-pattern=${positionals[0]}`] : [];
const files = tests.map((name) => join(extension, "test", "e2e", name));
const ended = spawnSync(process.execPath, [...command, ...only, ...files], { stdio: "inherit" });
console.log(`screenshots: ${results}`);
process.exit(ended.status ?? 1);

function packaged(out) {
  const script = join(extension, "scripts", "package.mjs");
  const env = { ...process.env, PYTHON: python };
  execFileSync(process.execPath, [script, "--out", out], { env, stdio: ["ignore", "ignore", "inherit"] });
  return out;
}
