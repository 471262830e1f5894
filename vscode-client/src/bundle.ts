/** The t2j that comes with the extension. */

import { existsSync, readFileSync } from "node:fs";
import * as path from "node:path";
import type { Bundle } from "./launch";

/** What was packaged; undefined in a checkout where nothing was. */
export function readBundle(extension: string): Bundle | undefined {
  const folder = path.join(extension, "bundled");
  const file = path.join(folder, "bundle.json");
  if (!existsSync(file) || !existsSync(path.join(folder, "libs", "t2j_lsp"))) {
    return undefined;
  }
  return JSON.parse(readFileSync(file, "utf8")) as Bundle;
}
