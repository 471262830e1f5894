/** Bundles the extension into dist/extension.js. */

import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** @param {{sourcemap?: boolean}} options sourcemap: for a debugger; it is as large as the bundle. */
export const bundleExtension = ({ sourcemap = true } = {}) =>
  build({
    absWorkingDir: dirname(dirname(fileURLToPath(import.meta.url))),
    entryPoints: ["src/extension.ts"],
    outfile: "dist/extension.js",
    bundle: true,
    platform: "node",
    target: "node22",
    format: "cjs",
    external: ["vscode"],
    minify: true,
    sourcemap,
    metafile: true,
    logLevel: "warning",
  });

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await bundleExtension();
}
