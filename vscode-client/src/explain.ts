/** The page of a rule: what a torch name becomes, with its caveats. */

import * as vscode from "vscode";
import type { Rule } from "./protocol";
import type { Server } from "./server";

const SCHEME = "t2j-rule";

export class Explanations implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly pages = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  readonly onDidChange = this.changed.event;

  constructor(private readonly server: Server) {}

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.pages.get(uri.toString()) ?? "";
  }

  /** Show the rule for a name, for the name at the cursor, or for one that the user types. */
  async show(given?: unknown): Promise<void> {
    const name = typeof given === "string" ? given : await this.askName();
    if (!name) {
      return;
    }
    const rule = await this.server.command<Rule>("t2j.explain", name);
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${rule.name}.md` });
    this.pages.set(uri.toString(), rulePage(rule));
    this.changed.fire(uri);
    await vscode.commands.executeCommand("markdown.showPreview", uri);
  }

  private async askName(): Promise<string | undefined> {
    const editor = vscode.window.activeTextEditor;
    const range = editor?.document.getWordRangeAtPosition(editor.selection.active, /[A-Za-z_][\w.]*/);
    const word = range ? editor?.document.getText(range) : "";
    const value = word?.replace(/^nn\./, "torch.nn.").replace(/^F\./, "torch.nn.functional.");
    return vscode.window.showInputBox({
      title: "Explain a torch name",
      value,
      placeHolder: "torch.nn.functional.gelu",
    });
  }

  dispose(): void {
    this.registration.dispose();
    this.changed.dispose();
  }
}

/** A rule as Markdown. */
export function rulePage(rule: Rule): string {
  const form = rule.jax ? ["```python", rule.jax, "```"] : ["No JAX form."];
  return [
    `# ${rule.name}`,
    "",
    "```python",
    rule.signature,
    "```",
    "",
    "becomes",
    "",
    ...form,
    "",
    `Fidelity: ${rule.fidelity}.`,
    "",
    rule.note ?? "",
    "",
  ].join("\n");
}
