/**
 * Makes the .vsix: bundles the extension, and the t2j of this checkout with what its server needs.
 *
 *   node scripts/package.mjs [--out FILE]
 *
 * PYTHON names the interpreter that runs pip (python3 otherwise), PIP_FLAGS goes to pip. One .vsix fits every platform: what the
 * server needs is pure Python, so pip is asked for such wheels only, but for libcst, whose parser is compiled. That one lies in a
 * folder of its own, with the parsers of PYTHONS and PLATFORMS side by side; elsewhere the interpreter has to have libcst. What
 * checks need besides, numpy first of all, is there where torch and jax are.
 */

import { execFileSync, spawn } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { bundleExtension } from "./build.mjs";

const extension = dirname(dirname(fileURLToPath(import.meta.url)));
const checkout = dirname(extension);
const bundled = join(extension, "bundled");
const dist = join(extension, "dist");
const python = process.env.PYTHON ?? "python3";
const pipFlags = (process.env.PIP_FLAGS ?? "").split(/\s+/).filter(Boolean);
const PYTHONS = ["3.11", "3.12", "3.13", "3.14"];
const PLATFORMS = ["manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "macosx_11_0_arm64", "win_amd64", "win_arm64"];
/** Runs of pip at the same time: each mostly waits for the package index. */
const AT_ONCE = 4;
const { values } = parseArgs({ options: { out: { type: "string" } } });

const run = (program, args, cwd = extension) =>
  execFileSync(program, args, { cwd, stdio: ["ignore", "inherit", "inherit"] });
const PIP = ["-m", "pip", "--quiet", "--disable-pip-version-check"];
const pip = (...args) => run(python, [...PIP, ...args], checkout);
const pipAside = (...args) =>
  new Promise((resolve, reject) => {
    const running = spawn(python, [...PIP, ...args], { cwd: checkout, stdio: ["ignore", "inherit", "inherit"] });
    running.once("error", reject);
    running.once("exit", (code) => (code === 0 ? resolve() : reject(new Error(`pip ended with ${code}`))));
  });

for (const made of [join(bundled, "libs"), join(bundled, "libcst"), join(bundled, "bundle.json"), dist]) {
  rmSync(made, { recursive: true, force: true });
}
mkdirSync(dist);
const version = bundleServer(join(bundled, "libs"));
await bundleLibcst(join(bundled, "libcst"));
writeFileSync(join(bundled, "bundle.json"), `${JSON.stringify({ version }, null, 2)}\n`);
writeFileSync(join(dist, "ThirdPartyNotices.txt"), notices(await bundleExtension({ sourcemap: false })));
writeFileSync(join(dist, "README.md"), page());
for (const name of ["LICENSE", "CHANGELOG.md"]) {
  copyFileSync(join(checkout, name), join(extension, name));
}
const out = resolve(values.out ?? join(extension, "t2j.vsix"));
run(process.execPath, [
  join(extension, "node_modules", "@vscode", "vsce", "vsce"),
  "package",
  "--no-dependencies",
  "--allow-missing-repository",
  "--no-update-package-json",
  "--readme-path",
  "dist/README.md",
  "--out",
  out,
]);
console.log(`packaged: ${out} (t2j ${version})`);

/** Put t2j and the packages of its server into a folder; t2j's version. */
function bundleServer(to) {
  const scratch = mkdtempSync(join(tmpdir(), "t2j-wheel-"));
  try {
    pip("wheel", "--no-deps", "--wheel-dir", scratch, ".");
    const [wheel] = readdirSync(scratch);
    const pure = ["--only-binary", ":all:", "--platform", "any", "--python-version", "3.11", "--no-compile"];
    pip("install", ...pure, "--no-deps", "--target", to, join(scratch, wheel));
    pip("install", ...pipFlags, ...pure, "--target", to, ...serverPackages());
    // Scripts name the interpreter of this machine, and pip notes where the wheel lay.
    rmSync(join(to, "bin"), { recursive: true, force: true });
    for (const info of readdirSync(to).filter((name) => name.endsWith(".dist-info"))) {
      rmSync(join(to, info, "direct_url.json"), { force: true });
    }
    // The pages that hovers and diagnostics link to.
    const pages = (file) => statSync(file).isDirectory() || file.endsWith(".md");
    cpSync(join(checkout, "docs"), join(to, "docs"), { recursive: true, filter: pages });
    rmSync(join(to, "docs", "decisions"), { recursive: true });
    return wheel.split("-")[1];
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/**
 * Put libcst into a folder, with its compiled parser for each Python and platform: their names differ. A line says for which
 * there was none to be had: there the interpreter has to have libcst.
 */
async function bundleLibcst(to) {
  const scratch = mkdtempSync(join(tmpdir(), "t2j-libcst-"));
  const places = PYTHONS.flatMap((version) => PLATFORMS.map((platform) => [version, platform]));
  let wanted = project().dependencies.find((one) => one.startsWith("libcst"));
  const fetched = async ([version, platform]) => {
    const made = join(scratch, version, platform);
    const where = ["--only-binary", ":all:", "--platform", platform, "--python-version", version];
    try {
      await pipAside("install", ...pipFlags, ...where, "--no-deps", "--no-compile", "--target", made, wanted);
    } catch {
      console.warn(`packaged without libcst's parser for Python ${version} on ${platform}`);
      return undefined;
    }
    return made;
  };
  const copyParser = (made) => {
    for (const file of readdirSync(join(made, "libcst")).filter((name) => name.startsWith("native."))) {
      copyFileSync(join(made, "libcst", file), join(to, "libcst", file));
    }
  };
  try {
    // The first that there is says which version the others have to be.
    let first;
    while (!first && places.length) {
      first = await fetched(places.shift());
    }
    const info = readdirSync(first).find((name) => name.endsWith(".dist-info"));
    wanted = `libcst==${info.slice("libcst-".length, -".dist-info".length)}`;
    const used = (file) => !/[\\/]libcst[\\/](.*[\\/])?tests([\\/]|$)/.test(file);
    cpSync(first, to, { recursive: true, filter: used });
    rmSync(join(to, "bin"), { recursive: true, force: true });
    copyParser(first);
    const fetchRest = async () => {
      while (places.length) {
        const made = await fetched(places.shift());
        if (made) {
          copyParser(made);
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, fetchRest));
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** The requirements of pyproject's extra "lsp". */
function serverPackages() {
  const { dependencies, "optional-dependencies": optional } = project();
  return [...optional.lsp, ...dependencies.filter((one) => one.startsWith("pyflakes"))];
}

/** What pyproject says of t2j. */
function project() {
  const read = "import json, tomllib; print(json.dumps(tomllib.load(open('pyproject.toml', 'rb'))))";
  return JSON.parse(execFileSync(python, ["-c", read], { cwd: checkout, encoding: "utf8" })).project;
}

/** The licenses of the npm packages whose code is in the extension's script; those of Python packages lie beside their code. */
function notices({ metafile }) {
  const inside = Object.keys(metafile.inputs).map((file) => /.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0]);
  const folders = [...new Set(inside.filter(Boolean))].sort();
  const texts = folders.map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(extension, folder, "package.json"), "utf8"));
    const file = readdirSync(join(extension, folder)).find((one) => /^licen[cs]e/i.test(one));
    const text = file ? readFileSync(join(extension, folder, file), "utf8").trim() : `License: ${license}`;
    return `${name} ${version}\n\n${text}\n`;
  });
  return `dist/extension.js holds code of these packages.\n\n${texts.join(`\n${"-".repeat(80)}\n\n`)}`;
}

/**
 * The extension's page. Editors and the marketplace load its pictures from the repository that package.json names, and nowhere
 * else: until there is one, the page is without them. The walkthrough has them in any case.
 */
function page() {
  const text = readFileSync(join(extension, "README.md"), "utf8");
  const { repository } = JSON.parse(readFileSync(join(extension, "package.json"), "utf8"));
  return repository ? text : text.replace(/^!\[[^\]]*\]\(media\/[^)]+\)\n\n/gm, "");
}
