/** Decides how the server is started, and says what is missing where it can't be. Nothing here knows the editor. */

import type { Environment } from "./python";

export type ImportStrategy = "useBundled" | "fromEnvironment";

/** The t2j in the extension, by `bundled/bundle.json`: packages in pure Python, and libcst for an interpreter without it. */
export interface Bundle {
  version: string;
}

/** `folders`: those of the bundle that go on Python's path, below `bundled/`. */
export type Launch = { kind: "run"; folders: string[] } | { kind: "missing"; why: string };

/** Packages that one interpreter lacks. */
export interface Missing {
  python: string;
  packages: string[];
}

const NEEDED = "Python 3.11 or later is needed";
const SERVER_PACKAGES = ["t2j-lsp", "libcst", "pyflakes", "pygls", "lsprotocol"] as const;

/** Which t2j to run with an interpreter, or what it needs first. */
export function chooseLaunch(environment: Environment, strategy: ImportStrategy, bundle: Bundle | undefined): Launch {
  const [major, minor] = environment.version;
  if (major < 3 || (major === 3 && minor < 11)) {
    return { kind: "missing", why: `${NEEDED}, and this is ${major}.${minor}` };
  }
  const absent = SERVER_PACKAGES.filter((name) => !environment.packages[name]);
  if (bundle && (strategy === "useBundled" || absent.length)) {
    return { kind: "run", folders: hasLibcst(environment) ? ["libs"] : ["libs", "libcst"] };
  }
  if (!absent.length) {
    return { kind: "run", folders: [] };
  }
  return { kind: "missing", why: `${absent.join(", ")} not installed in it, and this extension was built without t2j` };
}

/** Whether an interpreter has a libcst that t2j runs with: 1.9 or later. */
function hasLibcst(environment: Environment): boolean {
  const [major = 0, minor = 0] = (environment.packages.libcst ?? "").split(".").map(Number);
  return major > 1 || (major === 1 && minor >= 9);
}

/**
 * What checks would lack in the interpreters of both sides. Arrays are compared with the numpy of the server's interpreter or of
 * the JAX side's, where jax brings it: nothing else is asked of the server's.
 */
export function missingForChecks(torchSide: Environment, jaxSide: Environment): Missing[] {
  const wanted = new Map<string, Set<string>>();
  const want = (side: Environment, packages: string[]) => {
    const lacking = packages.filter((name) => !side.packages[name]);
    wanted.set(side.python, new Set([...(wanted.get(side.python) ?? []), ...lacking]));
  };
  want(torchSide, ["torch", "numpy"]);
  want(jaxSide, ["jax", "flax", "optax"]);
  return [...wanted]
    .map(([python, packages]) => ({ python, packages: [...packages] }))
    .filter(({ packages }) => packages.length);
}

/** The command that installs packages, for a terminal of the platform. */
export function pipCommand(python: string, packages: readonly string[], windows: boolean): string {
  const quote = (text: string) => (windows ? `"${text}"` : `'${text.replaceAll("'", `'\\''`)}'`);
  return `${windows ? "& " : ""}${quote(python)} -m pip install ${packages.map(quote).join(" ")}`;
}
