/**
 * Runs the end-to-end tests: drives the packaged extension in a real VS Code in a real browser.
 *
 *   node test/e2e/run.mjs [--if-possible] [--share] [PATTERN]      PATTERN: tests whose names match it
 *   node test/e2e/run.mjs --parts                        only installs VS Code, where it is not there
 *
 * T2J_PYTHON names the interpreter that has t2j, torch and jax (.venv of the checkout otherwise), T2J_VSIX the package (t2j.vsix
 * otherwise; `make vsix` makes it). The server is the package's, as for users; T2J_IMPORT_STRATEGY=fromEnvironment takes the
 * interpreter's, so that edits of Python files need no new package. Where a part is not there and can't be installed, one line says which, and the exit code is
 * 3, or 0 with --if-possible. With --share, as the gate has it, the files that are not in every run take turns day by day
 * (docs/decisions/slices-of-tests.md); T2J_ROWS=all takes all of them.
 */

import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { browser, codeServer, extension, MissingPart } from "./parts.mjs";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    "if-possible": { type: "boolean", default: false },
    parts: { type: "boolean", default: false },
    share: { type: "boolean", default: false },
  },
});
const results = join(extension, "test-results");
/** Files of tests that run at the same time: a test mostly waits for what VS Code draws, and for one check. */
const AT_ONCE = 2;
/** With --share, these files are in every run, and of the others every fourth. */
const ALWAYS = ["first_five_minutes.test.mjs", "trust.test.mjs"];
const SHARES = 4;
const DAY = 24 * 60 * 60 * 1000;

try {
  if (values.parts) {
    codeServer();
    process.exit(0);
  }
  process.env.T2J_PYTHON = there(
    process.env.T2J_PYTHON ?? join(dirname(extension), ".venv", "bin", "python"),
    "make test",
  );
  process.env.T2J_VSIX = there(process.env.T2J_VSIX ?? join(extension, "t2j.vsix"), "make vsix");
  process.env.T2J_CHROMIUM = browser();
  process.env.T2J_CODE_SERVER = codeServer();
} catch (error) {
  if (!(error instanceof MissingPart)) {
    throw error;
  }
  console.log(`end-to-end tests in VS Code not run: ${error.message}`);
  process.exit(values["if-possible"] ? 0 : 3);
}
warnOfOldPackage();
rmSync(results, { recursive: true, force: true });
mkdirSync(results, { recursive: true });
process.env.T2J_RESULTS = results;
// Installed once, and its Python compiled; each test has links to its files.
const installed = mkdtempSync(join(tmpdir(), "t2j-extensions-"));
process.env.T2J_EXTENSIONS = join(installed, "extensions");
const folders = ["--user-data-dir", join(installed, "data"), "--extensions-dir", process.env.T2J_EXTENSIONS];
execFileSync(process.execPath, [process.env.T2J_CODE_SERVER, ...folders, "--install-extension", process.env.T2J_VSIX], {
  env: { ...process.env, HOME: installed },
  stdio: ["ignore", "ignore", "pipe"],
});
execFileSync(process.env.T2J_PYTHON, ["-m", "compileall", "-qq", process.env.T2J_EXTENSIONS], { stdio: "inherit" });
const folder = join(extension, "test", "e2e");
const files = share(readdirSync(folder).filter((name) => name.endsWith(".test.mjs")));
const only = positionals.length ? [`--test-name-pattern=${positionals[0]}`] : [];
const command = [
  "--test",
  `--test-concurrency=${Math.min(AT_ONCE, availableParallelism())}`,
  "--test-reporter=spec",
  ...only,
];
const ended = spawnSync(process.execPath, [...command, ...files.map((name) => join(folder, name))], {
  stdio: "inherit",
});
rmSync(installed, { recursive: true, force: true });
console.log(`screenshots: ${results}`);
process.exit(ended.status ?? 1);

function there(file, how) {
  if (!existsSync(file)) {
    throw new MissingPart(`${file} is not there (${how})`);
  }
  return file;
}

/** The files that this run takes, which a line says where it is not all. */
function share(files) {
  if (!values.share || process.env.T2J_ROWS === "all") {
    return files;
  }
  const turn = Math.floor(Date.now() / DAY) % SHARES;
  const others = files.filter((name) => !ALWAYS.includes(name)).sort();
  const taken = [...ALWAYS, ...others.filter((_, place) => place % SHARES === turn)];
  console.log(`today's share, ${turn} of ${SHARES} (T2J_ROWS=all: all): ${taken.join(", ")}`);
  return taken;
}

/** Edits since the package was made are not in it. */
function warnOfOldPackage() {
  const checkout = dirname(extension);
  const made = statSync(process.env.T2J_VSIX).mtimeMs;
  const inside = [join(extension, "src"), join(checkout, "t2j_lsp"), join(checkout, "rules")];
  const files = inside.flatMap((home) => readdirSync(home, { recursive: true }).map((name) => join(home, name)));
  const newer = files.filter((file) => /\.(ts|py)$/.test(file) && statSync(file).mtimeMs > made);
  if (newer.length) {
    console.log(`${process.env.T2J_VSIX} is older than ${newer.length} files, such as ${newer[0]}: make vsix`);
  }
}
