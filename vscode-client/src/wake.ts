/** Wakes the server when something here is PyTorch. Until then no process of ours runs: most Python folders have no torch. */

import * as vscode from "vscode";
import { firstWithTorch, importsTorch } from "./torch";

const MOST_FILES = 2_000;
const FILES = "**/*.{py,ipynb}";
const LEFT_OUT = "{**/.*/**,**/node_modules/**,**/site-packages/**,**/__pycache__/**}";

/** Calls back once: when an open document imports torch, or a file of the workspace does. */
export function whenTorchIsImported(wake: () => void, log: vscode.LogOutputChannel): vscode.Disposable {
  const disposables: vscode.Disposable[] = [];
  const stop = () => {
    for (const one of disposables.splice(0)) {
      one.dispose();
    }
  };
  let asleep = true;
  const found = (what: string) => {
    if (asleep) {
      asleep = false;
      stop();
      log.info(`${what} imports torch`);
      wake();
    }
  };
  const look = (document: vscode.TextDocument) => {
    if (document.languageId === "python" && importsTorch(document.getText())) {
      found(document.uri.path);
    }
  };
  disposables.push(
    vscode.workspace.onDidOpenTextDocument(look),
    vscode.workspace.onDidChangeTextDocument((event) => look(event.document)),
  );
  vscode.workspace.textDocuments.forEach(look);
  void searchWorkspace().then(
    (file) => (file ? found(file) : asleep && log.info("Nothing here imports torch: the server is not started")),
    (error) => log.warn(`The workspace can't be searched for torch: ${error}`),
  );
  return new vscode.Disposable(stop);
}

async function searchWorkspace(): Promise<string | undefined> {
  const files = await vscode.workspace.findFiles(FILES, LEFT_OUT, MOST_FILES);
  return firstWithTorch(files.filter((uri) => uri.scheme === "file").map((uri) => uri.fsPath));
}
