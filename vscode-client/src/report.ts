/** The report of `t2j coverage --html`, over the workspace's folders. */

import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import * as path from "node:path";
import * as vscode from "vscode";
import { pythonEnvironment } from "./python";
import type { Server } from "./server";

/** Write the report into the extension's own storage and open it in the browser. */
export async function openReport(context: vscode.ExtensionContext, server: Server): Promise<void> {
  const folders = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
  const python = server.environment?.python;
  if (!folders.length || !python) {
    throw new Error(python ? "Open a folder first." : (server.problem?.text ?? "The t2j server is not running."));
  }
  const storage = context.storageUri ?? context.globalStorageUri;
  await mkdir(storage.fsPath, { recursive: true });
  const file = path.join(storage.fsPath, "migration.html");
  const command = ["-m", "t2j_lsp", "coverage", "--html", file, ...folders];
  await vscode.window.withProgress(
    { location: vscode.ProgressLocation.Notification, title: "t2j: writing the report", cancellable: true },
    (_, token) => execute(python, command, context.extensionPath, pythonEnvironment(server.folders), token),
  );
  await vscode.env.openExternal(vscode.Uri.file(file));
}

/** Run to the end. Exit code 1 says that there are gaps, which is an answer. */
function execute(
  python: string,
  command: string[],
  cwd: string,
  env: NodeJS.ProcessEnv,
  token: vscode.CancellationToken,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = execFile(python, command, { cwd, env }, (error, _, stderr) => {
      if (token.isCancellationRequested || !error || error.code === 1) {
        resolve();
      } else {
        reject(new Error(stderr.trim().split("\n").at(-1) || String(error)));
      }
    });
    token.onCancellationRequested(() => child.kill());
  });
}
