/** The page of a difference: what it says, and that nothing of a program gets into its HTML. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { fixesPage, number, page, plot } from "../../src/difference_page.ts";

const value = (changes) => ({
  uri: "file:///net.py",
  line: 12,
  text: "x = F.gelu(x)",
  shape: [2, 3],
  dtype: "float64",
  min: -0.5,
  max: 1e-5,
  mean: 0,
  std: 1,
  values: [0.25, 1],
  ...changes,
});
const step = (changes) => ({
  target: "x",
  agree: false,
  max_abs_err: 0.1,
  max_rel_err: 0.1,
  torch: value(),
  jax: value({ uri: "file:///net_jax.py", line: 30 }),
  histogram: { edges: [0, 1, 2], torch: [1, 3], jax: [2, 2] },
  ...changes,
});
const difference = (changes) => ({
  name: "Net",
  verdict: "different",
  what: "output differs",
  cause: null,
  device: "cpu",
  torch: { uri: "file:///net.py" },
  jax: { uri: "file:///net_jax.py" },
  steps: [step({ agree: true, target: "a" }), step()],
  first: 1,
  text: "",
  similar: [],
  ...changes,
});
const fix = (changes) => ({
  id: "net/gelu",
  title: "gelu approximation",
  yours: false,
  program: "A net.",
  Error_Code: "        y = gelu(x)\n        return y\n",
  Error: "it differs\nby much",
  Fix_info: "GELU is exact.",
  Fixed_Code: "        y = gelu(x, approximate=False)\n",
  ...changes,
});
const link = (uri, line) => `command:open?${uri}:${line}`;

test("the first statement that parts is marked and open, and links to both lines", () => {
  const html = page(difference(), link, "n");
  const first = /<details class="part first" open>.*?<\/details>/s.exec(html)?.[0] ?? "";
  assert.match(first, /command:open\?file:\/\/\/net\.py:12/);
  assert.match(first, /command:open\?file:\/\/\/net_jax\.py:30/);
  assert.match(first, /<svg/);
  assert.match(html, /1 of 2 statements agree/);
});

test("texts of a program stay texts", () => {
  const evil = `<script>alert("1")</script>'&`;
  const html = page(
    difference({
      name: evil,
      what: evil,
      cause: evil,
      device: evil,
      steps: [step({ target: evil, torch: value({ text: evil, dtype: evil, uri: evil }) })],
      first: 0,
    }),
    link,
    "n",
  );
  assert.doesNotMatch(html, /<script/);
  assert.equal(html.match(/&lt;script&gt;/g)?.length >= 6, true);
});

test("a side without a value, a step without a plot and a page without steps are shown", () => {
  assert.match(page(difference({ steps: [step({ jax: null, histogram: null })], first: 0 }), link, "n"), /<td>–<\/td>/);
  assert.match(page(difference({ steps: [], first: null }), link, "n"), /0 of 0 statements/);
});

test("what is not finite is shown as it is, and a conversion that is no file has no link", () => {
  const jax = value({ uri: null, values: ["nan", "-inf", 2] });
  const worst = { index: [1, 2], torch: 0.25, jax: "nan" };
  const html = page(difference({ steps: [step({ jax, worst })], first: 0 }), link, "n");
  assert.match(html, /nan -inf 2/);
  assert.match(html, /farthest apart at \[1, 2\]<\/th><td>0\.2500<\/td><td>nan</);
  assert.doesNotMatch(html, /command:open\?null/);
});

test("fixed bugs stand with a difference, faulty and fixed side by side, and nothing stands there without any", () => {
  const html = page(difference({ similar: [fix(), fix({ yours: true, title: "yours: net-1" })] }), link, "n");
  assert.match(html, /<summary>2 mistakes like this were fixed<\/summary>/);
  assert.match(html, /<code>y = gelu\(x\)\nreturn y<\/code>.*<code>y = gelu\(x, approximate=False\)<\/code>/s);
  assert.match(html, /It said: it differs\. In: A net\./);
  assert.match(html, /yours: net-1/);
  assert.doesNotMatch(page(difference(), link, "n"), /mistake/);
});

test("texts of fixed bugs stay texts", () => {
  const evil = `<img src=x>"&'`;
  const changes = Object.fromEntries(Object.keys(fix()).map((key) => [key, key === "yours" ? false : evil]));
  const html = fixesPage([fix(changes)], "n");
  assert.match(html, /<h1>1 mistake like this was fixed<\/h1>/);
  assert.doesNotMatch(html, /<img/);
});

test("bars are as high as their counts", () => {
  const heights = [
    ...plot({ edges: [0, 1, 2], torch: [1, 4], jax: [2, 0] }).matchAll(/class="(\w+)".*?height="([\d.]+)"/g),
  ];
  assert.deepEqual(
    heights.map(([, side, height]) => [side, Number(height)]),
    [
      ["torch", 22.5],
      ["torch", 90],
      ["jax", 45],
      ["jax", 0],
    ],
  );
});

test("numbers are short and never wrong by more than their last digit", () => {
  assert.deepEqual([0, 3, -2, 0.25, 1e-5, 123456.5, null].map(number), [
    "0",
    "3",
    "-2",
    "0.2500",
    "1.00e-5",
    "1.23e+5",
    "–",
  ]);
  assert.equal(number(Number.NaN), "NaN");
});
