/** Which texts are PyTorch code. */

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { firstWithTorch, importsTorch } from "../../src/torch.ts";

for (const text of [
  "import torch\n",
  "import torch.nn as nn",
  "from torch import nn",
  "from torch.utils.data import DataLoader",
  '"""A model."""\n\nimport os, torch',
  "import numpy as np, torch",
  "try:\n    import torch\nexcept ImportError:\n    torch = None",
  "# coding: utf-8\r\nimport torch\r\n",
]) {
  test(`imports torch: ${JSON.stringify(text)}`, () => assert.ok(importsTorch(text)));
}

for (const text of [
  "",
  "import torchlight",
  "from torchlight import on",
  "# import torch",
  "import numpy as torch_like",
  "x = 'import torch'",
  "import jax\nfrom flax import nnx",
]) {
  test(`does not: ${JSON.stringify(text)}`, () => assert.ok(!importsTorch(text)));
}

test("files are looked at until one imports torch", async () => {
  const folder = mkdtempSync(join(tmpdir(), "t2j-torch-"));
  const file = (name, text) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  try {
    const plain = file("plain.py", "import os\n");
    const cell = { cell_type: "code", source: ["x = 1\n", "from torch import nn\n"] };
    const notebook = file("n.ipynb", JSON.stringify({ cells: [cell] }));
    mkdirSync(join(folder, "folder.py"));
    const others = [plain, join(folder, "gone.py"), join(folder, "folder.py")];
    assert.equal(await firstWithTorch(others), undefined);
    assert.equal(await firstWithTorch([...others, notebook]), notebook);
    assert.equal(await firstWithTorch([file("net.py", "import torch\n"), notebook]), join(folder, "net.py"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
