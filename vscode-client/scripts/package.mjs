/**
 * Makes the .vsix: bundles the extension, and the t2j of this checkout with what its server needs.
 *
 *   node scripts/package.mjs [--out FILE] [--no-libs]
 *
 * PYTHON names the interpreter that runs pip (python3 otherwise), PIP_FLAGS goes to pip. Packages in pure Python go to
 * bundled/libs and fit every interpreter; those with C code go to bundled/native and fit the Python version and platform that
 * bundle.json names. --no-libs leaves the packages out, and keeps t2j's wheel.
 */

import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { bundleExtension } from "./build.mjs";

const extension = dirname(dirname(fileURLToPath(import.meta.url)));
const checkout = dirname(extension);
const bundled = join(extension, "bundled");
const python = process.env.PYTHON ?? "python3";
const pipFlags = (process.env.PIP_FLAGS ?? "").split(/\s+/).filter(Boolean);
const { values } = parseArgs({ options: { out: { type: "string" }, "no-libs": { type: "boolean", default: false } } });

const run = (program, args, cwd = extension) =>
  execFileSync(program, args, { cwd, stdio: ["ignore", "inherit", "inherit"] });
const pip = (...args) => run(python, ["-m", "pip", "--quiet", "--disable-pip-version-check", ...args], checkout);

for (const made of ["wheels", "libs", "native", "bundle.json"]) {
  rmSync(join(bundled, made), { recursive: true, force: true });
}
pip("wheel", "--no-deps", "--wheel-dir", join(bundled, "wheels"), ".");
const wheel = readdirSync(join(bundled, "wheels"))[0];
const tag = JSON.parse(execFileSync(python, [join(bundled, "tool", "probe.py")], { encoding: "utf8" })).tag;
if (!values["no-libs"]) {
  const all = join(bundled, "libs");
  pip("install", ...pipFlags, "--no-compile", "--target", all, `${join(bundled, "wheels", wheel)}[lsp]`);
  // Scripts name the interpreter of this machine.
  rmSync(join(all, "bin"), { recursive: true, force: true });
  separateNative(all, join(bundled, "native"));
}
const version = wheel.split("-")[1];
writeFileSync(
  join(bundled, "bundle.json"),
  `${JSON.stringify({ tag, version, wheel }, null, 2)}
`,
);
await bundleExtension();
const out = resolve(values.out ?? join(extension, "t2j.vsix"));
run(process.execPath, [
  join(extension, "node_modules", "@vscode", "vsce", "vsce"),
  "package",
  "--no-dependencies",
  "--allow-missing-repository",
  "--skip-license",
  "--no-update-package-json",
  "--out",
  out,
]);
console.log(`packaged: ${out} (t2j ${version}, those with C code for ${tag})`);

/** Move distributions that hold C code to a folder of their own. */
function separateNative(from, to) {
  mkdirSync(to, { recursive: true });
  for (const info of readdirSync(from).filter((name) => name.endsWith(".dist-info"))) {
    const record = readFileSync(join(from, info, "RECORD"), "utf8").split("\n");
    const files = record.map((line) => line.split(",")[0]).filter((file) => file && !file.startsWith(".."));
    if (files.some((file) => /\.(so|pyd|dylib)$/.test(file))) {
      for (const top of new Set(files.map((file) => file.split("/")[0]))) {
        renameSync(join(from, top), join(to, top));
      }
    }
  }
}
