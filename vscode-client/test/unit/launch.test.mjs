/** Which t2j runs in which interpreter, and what is said to be missing. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseLaunch, missingForChecks, pipCommand } from "../../src/launch.ts";

const FULL = { "t2j-lsp": "1", pygls: "2", lsprotocol: "1", torch: "2", jax: "1", flax: "1", optax: "1", numpy: "2" };
const environment = (packages = FULL, changes = {}) => ({
  python: "/env/bin/python",
  version: [3, 11, 7],
  tag: "cp311-linux-x86_64",
  packages,
  ...changes,
});
const bundle = { tag: "cp311-linux-x86_64", version: "1" };

test("the environment's t2j runs unless the bundled one is wanted", () => {
  assert.deepEqual(chooseLaunch(environment(), "fromEnvironment", bundle), { kind: "run", folders: [] });
  assert.deepEqual(chooseLaunch(environment(), "useBundled", bundle), { kind: "run", folders: ["libs"] });
  assert.deepEqual(chooseLaunch(environment(), "useBundled", undefined), { kind: "run", folders: [] });
});

test("the bundle stands in, with packages of C code only where they fit and lack", () => {
  const bare = environment({});
  assert.deepEqual(chooseLaunch(bare, "fromEnvironment", bundle), { kind: "run", folders: ["libs", "native"] });
  const other = environment({}, { tag: "cp312-macosx_14_0_arm64" });
  assert.deepEqual(chooseLaunch(other, "fromEnvironment", bundle), { kind: "run", folders: ["libs"] });
  const numpy = environment({ numpy: "2" });
  assert.deepEqual(chooseLaunch(numpy, "fromEnvironment", bundle), { kind: "run", folders: ["libs"] });
});

test("what is missing is named, with the package that mends it", () => {
  const launch = chooseLaunch(environment({ ...FULL, pygls: null }), "fromEnvironment", undefined);
  assert.deepEqual(launch, { kind: "missing", packages: ["t2j-lsp[lsp]"], why: "pygls not installed in it" });
  const old = chooseLaunch(environment(FULL, { version: [3, 10, 1] }), "useBundled", bundle);
  assert.equal(old.kind, "missing");
  assert.match(old.why, /3\.11 or later is needed, and this is 3\.10/);
});

test("what checks lack is listed for each interpreter once", () => {
  const server = environment({ ...FULL, torch: null });
  const torch = environment({ numpy: null, torch: null }, { python: "/torch/python" });
  assert.deepEqual(missingForChecks({ environment: server, hasNumpy: true }, server, server), [
    { python: "/env/bin/python", packages: ["torch"] },
  ]);
  assert.deepEqual(missingForChecks({ environment: server, hasNumpy: true }, torch, server), [
    { python: "/torch/python", packages: ["torch", "numpy"] },
  ]);
  assert.deepEqual(missingForChecks({ environment: server, hasNumpy: false }, server, server), [
    { python: "/env/bin/python", packages: ["torch", "numpy"] },
  ]);
  const full = environment();
  assert.deepEqual(missingForChecks({ environment: full, hasNumpy: true }, full, full), []);
});

test("paths are quoted for the shell", () => {
  const command = pipCommand("/it's here/python", ["torch", "/x y/t2j.whl[lsp]"], false);
  assert.equal(command, `'/it'\\''s here/python' -m pip install 'torch' '/x y/t2j.whl[lsp]'`);
  assert.equal(pipCommand("C:\\a b\\python.exe", ["jax"], true), '& "C:\\a b\\python.exe" -m pip install "jax"');
});
