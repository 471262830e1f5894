/** Where code would be sent, what is asked before, and that no log shows a key. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { hiding, hostOf, sendQuestion } from "../../src/hosts.ts";

test("the host of an address is the one that the server names", () => {
  assert.equal(hostOf(""), "api.openai.com");
  assert.equal(hostOf("https://models.example/v1"), "models.example");
  assert.equal(hostOf(" http://127.0.0.1:8000/v1 "), "127.0.0.1:8000");
  assert.equal(hostOf("https://models.example:443?x=/y"), "models.example:443");
  assert.equal(hostOf("models.example"), "");
});

test("the question names the file, the host and how much is sent", () => {
  const asked = sendQuestion({ host: "models.example", tokens: 5200, fixes: ["a/b"] }, "net.py");
  assert.match(asked, /^Send code of net\.py to models\.example\?/);
  assert.match(asked, /about 5,200 tokens, with 1 similar fixed bug\./);
});

test("what goes through a log has no key in it, however it is written there", () => {
  const said = [];
  const keys = new Set();
  const log = hiding({ level: 2, trace: (...args) => said.push(...args) }, keys);
  keys.add('sk-"1\\');
  log.trace('Params: {"key":"sk-\\"1\\\\"}', { key: 1 }, 'the key is sk-"1\\.');
  assert.deepEqual(said, ['Params: {"key":"***"}', { key: 1 }, "the key is ***."]);
  assert.equal(log.level, 2);
});
