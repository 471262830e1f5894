/** Which t2j runs in which interpreter, and what is said to be missing. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseLaunch, missingForChecks, pipCommand } from "../../src/launch.ts";

const SERVER = { "t2j-lsp": "1", libcst: "1.9.0", pyflakes: "3", pygls: "2", lsprotocol: "1" };
const FULL = { ...SERVER, torch: "2", jax: "1", flax: "1", optax: "1", numpy: "2" };
const environment = (packages = FULL, changes = {}) => ({
  python: "/env/bin/python",
  version: [3, 11, 7],
  packages,
  ...changes,
});
const bundle = { version: "1" };

test("the bundled t2j runs unless the environment's is wanted and there", () => {
  assert.deepEqual(chooseLaunch(environment(), "useBundled", bundle), { kind: "run", folders: ["libs"] });
  assert.deepEqual(chooseLaunch(environment(), "fromEnvironment", bundle), { kind: "run", folders: [] });
  const bare = chooseLaunch(environment({}), "fromEnvironment", bundle);
  assert.deepEqual(bare, { kind: "run", folders: ["libs", "libcst"] }, "its libcst only where there is none");
  const old = chooseLaunch(environment({ ...FULL, libcst: "1.8.6" }), "useBundled", bundle);
  assert.deepEqual(old, { kind: "run", folders: ["libs", "libcst"] });
  assert.deepEqual(chooseLaunch(environment(), "useBundled", undefined), { kind: "run", folders: [] });
});

test("where nothing can run, it is said why", () => {
  const launch = chooseLaunch(environment({ ...FULL, pygls: null }), "fromEnvironment", undefined);
  assert.deepEqual(launch, {
    kind: "missing",
    why: "pygls not installed in it, and this extension was built without t2j",
  });
  const old = chooseLaunch(environment(FULL, { version: [3, 10, 1] }), "useBundled", bundle);
  assert.deepEqual(old, { kind: "missing", why: "Python 3.11 or later is needed, and this is 3.10" });
});

test("what checks lack is listed for each interpreter once", () => {
  const server = environment({ ...FULL, torch: null });
  const torch = environment({ numpy: null, torch: null }, { python: "/torch/python" });
  assert.deepEqual(missingForChecks(server, server), [{ python: "/env/bin/python", packages: ["torch"] }]);
  assert.deepEqual(missingForChecks(torch, server), [{ python: "/torch/python", packages: ["torch", "numpy"] }]);
  assert.deepEqual(missingForChecks(torch, torch), [
    { python: "/torch/python", packages: ["torch", "numpy", "jax", "flax", "optax"] },
  ]);
  const full = environment();
  assert.deepEqual(missingForChecks(full, full), []);
});

test("paths are quoted for the shell", () => {
  const command = pipCommand("/it's here/python", ["torch", "/x y/t2j.whl[lsp]"], false);
  assert.equal(command, `'/it'\\''s here/python' -m pip install 'torch' '/x y/t2j.whl[lsp]'`);
  assert.equal(pipCommand("C:\\a b\\python.exe", ["jax"], true), '& "C:\\a b\\python.exe" -m pip install "jax"');
});
