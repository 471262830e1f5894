/** What is in the package that `make vsix` made: all that users need on any platform, once, and nothing else. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

const client = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const checkout = dirname(client);
const python = process.env.T2J_PYTHON ?? join(checkout, ".venv", "bin", "python");
const vsix = process.env.T2J_VSIX ?? join(client, "t2j.vsix");
const MEGABYTE = 2 ** 20;
let folder;
let files;

before(() => {
  folder = mkdtempSync(join(tmpdir(), "t2j-vsix-"));
  // A .vsix is a zip file.
  execFileSync(python, ["-m", "zipfile", "-e", vsix, folder]);
  const all = readdirSync(folder, { recursive: true }).map((name) => name.replaceAll("\\", "/"));
  files = all.filter((name) => statSync(join(folder, name)).isFile());
});
after(() => rmSync(folder, { recursive: true, force: true }));

const read = (name) => readFileSync(join(folder, name), "utf8");

test("one package fits every platform: nothing in it is compiled but libcst's parser, for each", () => {
  const compiled = files.filter((name) => /\.(so|pyd|dylib|dll|exe|node|pyc|a)(\.|$)/.test(name));
  const parser = /^extension\/bundled\/libcst\/libcst\/native\.(cpython-|cp)(3\d+)-(.+)\.(so|pyd)$/;
  assert.deepEqual(
    compiled.filter((name) => !parser.test(name)),
    [],
  );
  const pythons = compiled.map((name) => parser.exec(name)?.[2]);
  for (const version of ["311", "312", "313", "314"]) {
    assert.equal(pythons.filter((one) => one === version).length, 5, `${version}: ${compiled}`);
  }
  const wheels = files.filter((name) => /\/libs\/.*\.dist-info\/WHEEL$/.test(name));
  assert.ok(wheels.length >= 5, `${wheels}`);
  for (const wheel of wheels) {
    assert.match(read(wheel), /^Root-Is-Purelib: true$/m, wheel);
  }
  assert.doesNotMatch(read("extension.vsixmanifest"), /TargetPlatform/);
});

test("t2j is in it once, with its rules, its helpers and its pages", () => {
  const homes = files.filter((name) => name.endsWith("/contract/__init__.py") || name.endsWith(".whl"));
  assert.deepEqual(homes, ["extension/bundled/libs/t2j_lsp/contract/__init__.py"]);
  const rules = readdirSync(join(checkout, "rules"), { recursive: true }).filter((name) => name.endsWith(".py"));
  for (const name of rules) {
    assert.ok(files.includes(`extension/bundled/libs/t2j_lsp/rules/${name}`), name);
  }
  assert.ok(files.includes("extension/bundled/libs/docs/findings.md"));
  for (const name of readdirSync(join(checkout, "docs", "rules"))) {
    assert.ok(files.includes(`extension/bundled/libs/docs/rules/${name}`), name);
  }
});

test("its server brings what it imports, and no more", () => {
  const inside = files.filter((name) => name.startsWith("extension/bundled/libs/"));
  const found = new Set(inside.map((name) => name.split("/")[3]).filter((name) => !name.includes(".dist-info")));
  const expected = [
    "attr",
    "attrs",
    "cattr",
    "cattrs",
    "docs",
    "lsprotocol",
    "pyflakes",
    "pygls",
    "t2j_lsp",
    "typing_extensions.py",
  ];
  assert.deepEqual([...found].sort(), expected);
});

test("no tests, sources, source maps or traces of this machine", () => {
  const own = files.filter((name) => !name.startsWith("extension/bundled/libs/") || name.includes("/t2j_lsp"));
  assert.deepEqual(
    own.filter((name) => /(^|\/)(tests?|src|node_modules|scripts)\/|\.(map|ts|mjs)$/.test(name)),
    [],
  );
  assert.deepEqual(
    files.filter((name) => name.endsWith("/direct_url.json")),
    [],
  );
  assert.doesNotMatch(read("extension/dist/extension.js"), /sourceMappingURL=/);
  for (const name of files.filter((one) => /\.(js|json|py|md|txt)$|(METADATA|RECORD)$/.test(one))) {
    assert.ok(!read(name).includes(checkout), name);
  }
});

test("license, notices, changelog and the page are there", () => {
  assert.equal(read("extension/LICENSE.txt"), readFileSync(join(checkout, "LICENSE"), "utf8"));
  assert.match(read("extension/LICENSE.txt"), /Apache License\s+Version 2\.0/);
  assert.match(
    read("extension/dist/ThirdPartyNotices.txt"),
    /vscode-languageclient \d[\s\S]*Permission is hereby granted/,
  );
  assert.equal(read("extension/changelog.md"), readFileSync(join(checkout, "CHANGELOG.md"), "utf8"));
  const manifest = JSON.parse(read("extension/package.json"));
  assert.equal(manifest.license, "Apache-2.0");
  assert.equal(manifest.repository, undefined, "with a repository, the page has its pictures from there");
  assert.doesNotMatch(read("extension/readme.md"), /\]\((?!https:|#)/);
});

test("every picture of the walkthrough is there, and small", () => {
  const pages = files.filter((name) => /^extension\/media\/walkthrough\/.*\.md$/.test(name));
  const named = pages.flatMap((name) =>
    [...read(name).matchAll(/!\[[^\]]+\]\((.+?)\)/g)].map((found) => [name, found[1]]),
  );
  assert.ok(named.length >= 3, `${named}`);
  for (const [page, file] of named) {
    const size = statSync(join(folder, dirname(page), file)).size;
    assert.ok(size < 200_000, `${file}: ${size} bytes`);
  }
});

test("it is small, but for the compiled parsers", () => {
  assert.ok(statSync(vsix).size < 40 * MEGABYTE, `${statSync(vsix).size} bytes`);
  const own = files.filter((name) => !name.startsWith("extension/bundled/libcst/"));
  const unpacked = own.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  assert.ok(unpacked < 15 * MEGABYTE, `${unpacked} bytes besides libcst`);
});
