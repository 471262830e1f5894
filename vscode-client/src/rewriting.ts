/** Rewriting a file in place: only after a question, which the server words. */

import * as vscode from "vscode";
import type { Server } from "./server";

/** The server's answer to a command that needs a yes. */
export interface Question {
  text: string;
  detail: string;
  confirm: string;
}

/** Ask in the middle of the window. */
export async function confirmed(question: Question): Promise<boolean> {
  const options = { modal: true, detail: question.detail };
  return (await vscode.window.showWarningMessage(question.text, options, question.confirm)) === question.confirm;
}

/** A command's arguments once its question was answered with yes; undefined for commands without questions. */
export function confirmedArguments(command: string, args: unknown[]): unknown[] | undefined {
  const at = { "t2j.convert": 2, "t2j.convertFile": 1 }[command];
  return at === undefined ? undefined : Object.assign([...args], { [at]: true });
}

interface Definition {
  kind: string;
  name: string;
  line: number;
  endLine: number;
}

/** Rewrite what is selected, or the innermost definition at the cursor. */
export async function rewriteHere(server: Server): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const uri = editor?.document.uri.toString();
  if (!editor || !uri) {
    return;
  }
  const { start, end } = editor.selection;
  let lines = { first: start.line + 1, last: end.line + (end.character || end.line === start.line ? 1 : 0) };
  if (editor.selection.isEmpty) {
    const state = await server.request<{ definitions: Definition[] } | null>("t2j/state", { uri });
    const around = (state?.definitions ?? []).filter((one) => one.line <= start.line && start.line <= one.endLine);
    const innermost = around.sort((a, b) => a.endLine - a.line - (b.endLine - b.line))[0];
    if (!innermost) {
      throw new Error("Put the cursor into a class, a function or a loop, or select statements.");
    }
    lines = { first: innermost.line + 1, last: innermost.endLine + 1 };
  }
  await server.run("t2j.convert", [uri, { kind: "lines", span: null, ...lines }]);
}
