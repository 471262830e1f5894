/** The parts of the end-to-end tests that are not in package.json: a browser, and VS Code as code-server serves it. */

import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const extension = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const CODE_SERVER = "4.139.1";
const PARTS = join(extension, ".parts", "code-server");
const BROWSERS = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/** A part that is not there and can't be installed, with what to do. */
export class MissingPart extends Error {}

/** The browser: T2J_CHROMIUM, or the first on the path. */
export function browser() {
  const found = process.env.T2J_CHROMIUM ?? BROWSERS.map(onPath).find(Boolean);
  if (!found) {
    throw new MissingPart("Chromium is not installed (Debian: apt-get install --no-install-recommends chromium)");
  }
  return found;
}

/** The entry script of code-server: T2J_CODE_SERVER, or the one in .parts, which is installed there if it has to be. */
export function codeServer() {
  const given = process.env.T2J_CODE_SERVER;
  const entry = given ?? join(PARTS, "lib", "node_modules", "code-server", "out", "node", "entry.js");
  if (!existsSync(entry)) {
    if (given) {
      throw new MissingPart(`${given} is not there`);
    }
    installCodeServer();
  }
  return entry;
}

function installCodeServer() {
  console.log(`installing code-server ${CODE_SERVER} (some minutes, 600 MB)`);
  // Its scripts build what has C code. npm runs them only when told by name, and for what is installed globally.
  const scripts = ["--foreground-scripts", "--allow-scripts=code-server,argon2"];
  const command = ["install", "--global", "--prefix", PARTS, `code-server@${CODE_SERVER}`, ...scripts];
  try {
    execFileSync("npm", command, { stdio: ["ignore", "pipe", "pipe"], maxBuffer: 2 ** 28 });
  } catch (error) {
    const lines = String(error.stderr ?? error).split("\n");
    const said = lines.find((line) => /^npm error (?!code|A complete log)/.test(line)) ?? lines.at(-1);
    throw new MissingPart(`code-server can't be installed from the npm registry: ${said}`);
  }
}

function onPath(name) {
  return (process.env.PATH ?? "")
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find((file) => existsSync(file));
}
