/** Converting a file: shown beside it first, then applied as one edit that one undo takes back. */

import * as vscode from "vscode";
import type { Consent } from "./consent";
import type { Applied, Preview } from "./protocol";
import type { Server } from "./server";

export const SCHEME = "t2j-preview";
const REFRESH_DELAY = 400;

interface Shown {
  source: vscode.Uri;
  preview: Preview;
  /** The definition that was asked for, by its name. */
  name: string | undefined;
}

export class Previews implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly shown = new Map<string, Shown>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly disposables: vscode.Disposable[];
  private readonly timers = new Map<string, NodeJS.Timeout>();
  private readonly applied = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  readonly onApplied = this.applied.event;

  constructor(
    private readonly server: Server,
    private readonly consent: Consent,
  ) {
    this.disposables = [
      this.changed,
      this.applied,
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.workspace.onDidChangeTextDocument((event) => this.edited(event.document.uri)),
      vscode.workspace.onDidCloseTextDocument((document) => this.shown.delete(document.uri.toString())),
    ];
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.shown.get(uri.toString())?.preview.code ?? "";
  }

  /** Show what a file would become, beside it: at a definition, or at the user's first one, past imports and helpers. */
  async open(uri: vscode.Uri, name?: string): Promise<void> {
    if (uri.path.endsWith(".ipynb")) {
      await this.convertNotebook(uri);
      return;
    }
    await vscode.workspace.openTextDocument(uri);
    const preview = await this.server.command<Preview>("t2j.previewFile", uri.toString());
    const target = preview.target ? vscode.Uri.parse(preview.target) : uri;
    const right = target.with({ scheme: SCHEME, query: uri.toString() });
    const shown = { source: uri, preview, name };
    this.shown.set(right.toString(), shown);
    this.changed.fire(right);
    const left = preview.exists ? target : uri;
    const title = `${fileName(left)} ↔ ${fileName(target)} (${describe(preview)})`;
    const selection = start(shown);
    await vscode.commands.executeCommand("vscode.diff", left, right, title, { preview: true, selection });
    const editor = vscode.window.visibleTextEditors.find((one) => one.document.uri.toString() === right.toString());
    editor?.revealRange(selection, vscode.TextEditorRevealType.AtTop);
  }

  /** Apply the conversion that is shown in the active editor. */
  async apply(uri = vscode.window.activeTextEditor?.document.uri): Promise<void> {
    const shown = uri && this.shown.get(uri.toString());
    if (!uri || !shown) {
      void vscode.window.showInformationMessage("No conversion is shown here: convert a file first.");
      return;
    }
    if (shown.preview.target) {
      this.server.shownElsewhere.add(shown.preview.target);
    }
    const applied = await this.server.command<Applied>("t2j.convertFile", shown.source.toString(), true);
    if (!applied.applied) {
      void vscode.window.showWarningMessage(`The conversion was not applied: ${applied.reason ?? "it was refused"}.`);
      return;
    }
    await this.discard(uri);
    this.applied.fire();
    const target = vscode.Uri.parse(applied.uri ?? shown.source.toString());
    if (target.toString() !== shown.source.toString()) {
      await vscode.window.showTextDocument(shown.source, { viewColumn: vscode.ViewColumn.One, preview: false });
      const document = await vscode.workspace.openTextDocument(target);
      await document.save();
      const selection = start(shown);
      await vscode.window.showTextDocument(document, {
        viewColumn: vscode.ViewColumn.Beside,
        preview: false,
        selection,
      });
    }
    this.consent.offer();
  }

  /** Close a preview. */
  async discard(uri = vscode.window.activeTextEditor?.document.uri): Promise<void> {
    const tabs = vscode.window.tabGroups.all
      .flatMap((group) => group.tabs)
      .filter(
        (tab) => tab.input instanceof vscode.TabInputTextDiff && tab.input.modified.toString() === uri?.toString(),
      );
    await vscode.window.tabGroups.close(tabs);
    if (uri) {
      this.shown.delete(uri.toString());
    }
  }

  /** A notebook's conversion is no text to read beside the old one: it is made, and opened as a notebook. */
  private async convertNotebook(uri: vscode.Uri): Promise<void> {
    await vscode.workspace.openNotebookDocument(uri);
    const preview = await this.server.command<Preview>("t2j.previewFile", uri.toString());
    if (!preview.target) {
      throw new Error("Save the notebook first: its conversion goes beside it.");
    }
    this.server.shownElsewhere.add(preview.target);
    const applied = await this.server.command<Applied>("t2j.convertFile", uri.toString(), true);
    if (!applied.applied) {
      throw new Error(`The conversion was not applied: ${applied.reason ?? "it was refused"}.`);
    }
    const target = vscode.Uri.parse(preview.target);
    await (await vscode.workspace.openTextDocument(target)).save();
    const notebook = await vscode.workspace.openNotebookDocument(target);
    await vscode.window.showNotebookDocument(notebook, { viewColumn: vscode.ViewColumn.Beside });
    this.applied.fire();
    void vscode.window.showInformationMessage(`${fileName(target)}: ${describe(preview)}.`);
  }

  /** The source of a preview was edited: convert again, once the typing pauses. */
  private edited(source: vscode.Uri): void {
    for (const [key, shown] of this.shown) {
      if (shown.source.toString() === source.toString()) {
        clearTimeout(this.timers.get(key));
        this.timers.set(
          key,
          setTimeout(() => void this.refresh(key), REFRESH_DELAY),
        );
      }
    }
  }

  private async refresh(key: string): Promise<void> {
    const shown = this.shown.get(key);
    if (!shown) {
      return;
    }
    try {
      shown.preview = await this.server.command<Preview>("t2j.previewFile", shown.source.toString());
      this.changed.fire(vscode.Uri.parse(key));
    } catch {
      // While the text does not parse, the last conversion stays on show.
    }
  }

  dispose(): void {
    for (const timer of this.timers.values()) {
      clearTimeout(timer);
    }
    for (const one of this.disposables) {
      one.dispose();
    }
  }
}

function fileName(uri: vscode.Uri): string {
  return uri.path.slice(uri.path.lastIndexOf("/") + 1);
}

function describe(preview: Preview): string {
  const parts = [preview.merged ? "merged with your edits" : "conversion"];
  if (preview.conflicts) {
    parts.push(`${preview.conflicts} conflicts`);
  }
  if (preview.gaps) {
    parts.push(`${preview.gaps} ${preview.gaps === 1 ? "place" : "places"} left as PyTorch`);
  }
  if (preview.notes) {
    parts.push(`${preview.notes} to know about`);
  }
  return parts.join(", ");
}

/** Where a reader starts in a conversion. */
function start({ preview, name }: Shown): vscode.Range {
  const line = (name === undefined ? undefined : preview.places[name]) ?? preview.first;
  return new vscode.Range(line, 0, line, 0);
}
