/** What the status item says of checks, and what is said before the first one. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { checking, clipped, consentQuestion, heldBy, notHeld } from "../../src/words.ts";

const HELD = {
  files: "landlock",
  reads: "landlock",
  network: "seccomp",
  processes: "seccomp",
  memory: "watched",
  not_held: [],
};
const WEAK = {
  ...HELD,
  network: "python",
  memory: "none",
  not_held: ["native code can use the network", "memory is not measured"],
};

test("all checks are one line: the file, the step, and how many wait", () => {
  const uri = "file:///work/my%20net.py";
  assert.equal(checking({}), "checking");
  assert.equal(checking({ uri }), "checking my net.py");
  assert.equal(checking({ uri, message: "checking Net" }), "checking my net.py: Net");
  assert.equal(checking({ uri, message: "checking Net", waiting: 2 }), "checking my net.py: Net, 2 more");
});

test("long names are cut between words where there are any", () => {
  assert.equal(clipped("short"), "short");
  assert.equal(clipped("a_name.py: AnotherNameThatIsLonger", 20), "a_name.py: AnotherNa…");
  assert.equal(clipped("a_longer_name.py: AnotherName", 20), "a_longer_name.py:…");
});

test("by what a check is held is said in one line, and what is not in another", () => {
  assert.equal(
    heldBy(HELD),
    "Checks are held by Landlock (changes of files, reading files) and seccomp (the network, other processes)",
  );
  assert.equal(notHeld(HELD), "");
  assert.match(heldBy(WEAK), /Landlock .* and seccomp \(other processes\)$/);
  assert.equal(notHeld(WEAK), "Not held here: native code can use the network; memory is not measured.");
  const none = Object.fromEntries(Object.keys(HELD).map((part) => [part, "python"]));
  assert.equal(heldBy({ ...none, not_held: ["everything"] }), "Checks are held by Python alone");
});

test("the question before the first check says what is not held here", () => {
  assert.match(consentQuestion(WEAK), /They run as you\. Not held here: native code can use the network; memory/);
  assert.match(consentQuestion(HELD), /They run as you\. Checks are held by Landlock/);
  assert.doesNotMatch(consentQuestion(HELD), /Not held/);
  assert.match(consentQuestion(undefined), /a process is not a sandbox/);
});
