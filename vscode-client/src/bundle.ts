/** The t2j that comes with the extension, and t2j's wheel to install in an environment. */

import { existsSync, readFileSync } from "node:fs";
import * as path from "node:path";
import type { Bundle } from "./launch";

export interface InstalledBundle extends Bundle {
  /** The file of t2j's wheel. */
  wheel: string;
  /** Whether the packages are there, and not the wheel alone. */
  hasLibs: boolean;
}

/** What was packaged; undefined in a checkout where nothing was. */
export function readBundle(extension: string): InstalledBundle | undefined {
  const folder = path.join(extension, "bundled");
  try {
    const bundle = JSON.parse(readFileSync(path.join(folder, "bundle.json"), "utf8")) as Bundle & { wheel: string };
    const hasLibs = existsSync(path.join(folder, "libs", "t2j_lsp"));
    return { ...bundle, wheel: path.join(folder, "wheels", bundle.wheel), hasLibs };
  } catch {
    return undefined;
  }
}
