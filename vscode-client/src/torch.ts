/** Whether a text is PyTorch code. Nothing here knows the editor. */

import { open } from "node:fs/promises";

const IMPORTS = /^[ \t]*(?:from\s+torch\b|import\s+(?:[\w.]+(?:\s+as\s+\w+)?\s*,\s*)*torch\b)/m;
/** A notebook's file holds its lines in quotes. */
const NOTEBOOK_IMPORTS = /\b(?:import|from)\s+torch\b/;
/** Imports stand at the top of a file. */
const LOOKED_AT = 64 * 1024;

/** Whether Python code imports torch. */
export function importsTorch(text: string): boolean {
  return IMPORTS.test(text);
}

/** The first of some files that imports torch; files that can't be read are left out. */
export async function firstWithTorch(files: readonly string[]): Promise<string | undefined> {
  const buffer = Buffer.alloc(LOOKED_AT);
  for (const file of files) {
    const handle = await open(file).catch(() => undefined);
    try {
      const { bytesRead } = (await handle?.read(buffer, 0, LOOKED_AT, 0)) ?? { bytesRead: 0 };
      const text = buffer.toString("utf8", 0, bytesRead);
      if (file.endsWith(".ipynb") ? NOTEBOOK_IMPORTS.test(text) : importsTorch(text)) {
        return file;
      }
    } catch {
      // A folder by that name, or one that may not be read.
    } finally {
      await handle?.close();
    }
  }
  return undefined;
}
