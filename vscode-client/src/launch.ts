/** Decides how the server is started, and says what is missing where it can't be. Nothing here knows the editor. */

import type { Environment } from "./python";

export type ImportStrategy = "useBundled" | "fromEnvironment";

/** The packages in the extension, by `bundled/bundle.json`: pure Python for every interpreter, and some with C code. */
export interface Bundle {
  /** The interpreter and platform that the packages with C code fit. */
  tag: string;
  version: string;
}

/** `folders`: those of the bundle that go on Python's path, below `bundled/`. */
export type Launch = { kind: "run"; folders: string[] } | { kind: "missing"; packages: string[]; why: string };

/** Packages that one interpreter lacks. */
export interface Missing {
  python: string;
  packages: string[];
}

const NEEDED = "Python 3.11 or later is needed";
const SERVER_PACKAGES = ["t2j-lsp", "pygls", "lsprotocol"] as const;

/** Which t2j to run with an interpreter, or what it needs first. */
export function chooseLaunch(environment: Environment, strategy: ImportStrategy, bundle: Bundle | undefined): Launch {
  const [major, minor] = environment.version;
  if (major < 3 || (major === 3 && minor < 11)) {
    return { kind: "missing", packages: [], why: `${NEEDED}, and this is ${major}.${minor}` };
  }
  const absent = SERVER_PACKAGES.filter((name) => !environment.packages[name]);
  if (!absent.length && (strategy === "fromEnvironment" || !bundle)) {
    return { kind: "run", folders: [] };
  }
  if (bundle) {
    const native = !environment.packages.numpy && bundle.tag === environment.tag;
    return { kind: "run", folders: native ? ["libs", "native"] : ["libs"] };
  }
  return { kind: "missing", packages: ["t2j-lsp[lsp]"], why: `${absent.join(", ")} not installed in it` };
}

/** What checks would lack in the interpreters of the server and of both sides. `hasNumpy`: the server's, bundled or not. */
export function missingForChecks(
  server: { environment: Environment; hasNumpy: boolean },
  torchSide: Environment,
  jaxSide: Environment,
): Missing[] {
  const wanted = new Map<string, Set<string>>();
  const want = (side: Environment, packages: string[]) => {
    const known = wanted.get(side.python) ?? new Set();
    wanted.set(side.python, new Set([...known, ...packages]));
  };
  want(
    torchSide,
    ["torch", "numpy"].filter((name) => !torchSide.packages[name]),
  );
  want(
    jaxSide,
    ["jax", "flax", "optax"].filter((name) => !jaxSide.packages[name]),
  );
  want(server.environment, server.hasNumpy ? [] : ["numpy"]);
  return [...wanted]
    .map(([python, packages]) => ({ python, packages: [...packages] }))
    .filter(({ packages }) => packages.length);
}

/** The command that installs packages, for a terminal of the platform. */
export function pipCommand(python: string, packages: readonly string[], windows: boolean): string {
  const quote = (text: string) => (windows ? `"${text}"` : `'${text.replaceAll("'", `'\\''`)}'`);
  return `${windows ? "& " : ""}${quote(python)} -m pip install ${packages.map(quote).join(" ")}`;
}
