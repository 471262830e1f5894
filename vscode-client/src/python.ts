/** Finds the Python interpreter that runs the server, and looks at what is installed in it. */

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import * as path from "node:path";
import { promisify } from "node:util";
import { PVSC_EXTENSION_ID, PythonExtension } from "@vscode/python-extension";
import * as vscode from "vscode";

const run = promisify(execFile);
const PROBE_TIMEOUT = 20_000;

/** What `bundled/tool/probe.py` prints. */
export interface Environment {
  python: string;
  version: [number, number, number];
  /** Versions of distributions; null where one is not there. */
  packages: Record<string, string | null>;
}

export interface Interpreter {
  path: string;
  /** Who named it, for messages. */
  from: "setting" | "Python extension" | "active environment" | "path";
}

/**
 * The interpreter by the convention of the Python tools: the setting, the Python extension, then what was active where the editor
 * was started, then the search path. An environment inside the workspace is not looked for: opening a folder runs nothing of it.
 */
export async function findInterpreter(log: vscode.LogOutputChannel): Promise<Interpreter | undefined> {
  const candidates: [Interpreter["from"], () => string | undefined | Promise<string | undefined>][] = [
    ["setting", () => expand(vscode.workspace.getConfiguration("t2j").get<string>("interpreter", "").trim())],
    ["Python extension", () => fromPythonExtension(log)],
    ["active environment", activeEnvironment],
    ["path", onPath],
  ];
  for (const [from, find] of candidates) {
    const found = await find();
    if (found && mayRun(found)) {
      return { path: found, from };
    }
    if (found) {
      log.warn(`${found} (named by the ${from}) lies in this workspace, which is not trusted: it is not run`);
    }
  }
  return undefined;
}

/** An environment inside a workspace is the workspace's code: it runs where that is trusted. */
function mayRun(interpreter: string): boolean {
  const folders = vscode.workspace.workspaceFolders ?? [];
  return vscode.workspace.isTrusted || !folders.some((folder) => isBelow(interpreter, folder.uri.fsPath));
}

/** Whether a path lies in a folder, by its name: where its links lead does not matter. */
export function isBelow(file: string, folder: string): boolean {
  const relative = path.relative(folder, path.resolve(folder, file));
  return relative !== ".." && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative);
}

/** Calls back when the user picks another interpreter in the Python extension. */
export async function watchInterpreter(changed: () => void): Promise<vscode.Disposable | undefined> {
  try {
    const api = await pythonApi();
    return api?.environments.onDidChangeActiveEnvironmentPath(() => changed());
  } catch {
    return undefined;
  }
}

/** The Python extension is optional: without it there is none to ask. */
async function pythonApi(): Promise<PythonExtension | undefined> {
  return vscode.extensions.getExtension(PVSC_EXTENSION_ID) ? PythonExtension.api() : undefined;
}

async function fromPythonExtension(log: vscode.LogOutputChannel): Promise<string | undefined> {
  try {
    const api = await pythonApi();
    if (!api) {
      return undefined;
    }
    const resource = vscode.workspace.workspaceFolders?.[0]?.uri;
    const active = api.environments.getActiveEnvironmentPath(resource);
    const resolved = await api.environments.resolveEnvironment(active);
    return resolved?.executable.uri?.fsPath;
  } catch (error) {
    log.warn(`The Python extension gave no interpreter: ${error}`);
    return undefined;
  }
}

/** The interpreter of the environment that was active in the terminal that started the editor. */
function activeEnvironment(): string | undefined {
  const inside = process.platform === "win32" ? ["python.exe", "Scripts/python.exe"] : ["bin/python"];
  const roots = [process.env.VIRTUAL_ENV, process.env.CONDA_PREFIX].filter((root): root is string => Boolean(root));
  return roots.flatMap((root) => inside.map((name) => path.join(root, name))).find((file) => existsSync(file));
}

function onPath(): string | undefined {
  const names = process.platform === "win32" ? ["python.exe", "python3.exe"] : ["python3", "python"];
  for (const folder of (process.env.PATH ?? "").split(path.delimiter).filter(path.isAbsolute)) {
    for (const name of names) {
      const file = path.join(folder, name);
      if (existsSync(file)) {
        return file;
      }
    }
  }
  return undefined;
}

/** `${workspaceFolder}`, `${userHome}` and `~` in a setting. */
export function expand(value: string): string {
  const home = process.env.HOME ?? process.env.USERPROFILE ?? "~";
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";
  return value
    .replace(/^~(?=$|[/\\])/, () => home)
    .replace(/\$\{userHome\}/g, () => home)
    .replace(/\$\{workspaceFolder\}/g, () => folder);
}

/** Look into an interpreter; throws an Error with one line where it can't be run. */
export async function probe(python: string, tool: string): Promise<Environment> {
  try {
    const { stdout } = await run(python, [path.join(tool, "probe.py")], {
      cwd: tool,
      timeout: PROBE_TIMEOUT,
      env: pythonEnvironment(),
    });
    return JSON.parse(stdout) as Environment;
  } catch (error) {
    const { code, stderr } = error as { code?: unknown; stderr?: string };
    const last = stderr?.trim().split("\n").at(-1);
    const why = code === "ENOENT" ? "there is no such program" : last || String(error);
    throw new Error(`${python} can't be run: ${why}`);
  }
}

/** Environment variables for Python: `folders` come first on its path, and the current folder is not on it. */
export function pythonEnvironment(folders: readonly string[] = []): NodeJS.ProcessEnv {
  const paths = [...folders, process.env.PYTHONPATH].filter((folder): folder is string => Boolean(folder));
  return {
    ...process.env,
    PYTHONSAFEPATH: "1",
    PYTHONUTF8: "1",
    ...(paths.length ? { PYTHONPATH: paths.join(path.delimiter) } : {}),
  };
}
