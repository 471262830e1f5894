/** The panel of "Explain Difference", and of fixed bugs. */

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import type { Consent } from "./consent";
import { fixesPage, page } from "./difference_page";
import type { Difference, FixedBugs } from "./protocol";
import type { Server } from "./server";

const OPEN_LINE = "t2j.openLine";

export class DifferencePanel implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private readonly lines: vscode.Disposable;

  constructor(
    private readonly server: Server,
    private readonly consent: Consent,
  ) {
    this.lines = vscode.commands.registerCommand(OPEN_LINE, openLine);
  }

  /** Compare the values of a class or function statement by statement, and show them. */
  async show(uri: string, name: string): Promise<void> {
    if (!(await this.consent.ensure())) {
      return;
    }
    const difference = await this.server.command<Difference>("t2j.explainDifference", uri, name);
    this.reveal(`Difference: ${name}`, page(difference, lineLink, randomBytes(16).toString("base64")));
  }

  /** Show fixed bugs by their ids: what was wrong, and the faulty and the fixed code side by side. */
  async showFixes(ids: string[]): Promise<void> {
    const { fixes } = await this.server.command<FixedBugs>("t2j.fixedBugs", ids);
    this.reveal("Fixed bugs", fixesPage(fixes, randomBytes(16).toString("base64")));
  }

  private reveal(title: string, html: string): void {
    this.panel ??= this.create();
    this.panel.title = title;
    this.panel.webview.html = html;
    this.panel.reveal(undefined, true);
  }

  private create(): vscode.WebviewPanel {
    const panel = vscode.window.createWebviewPanel(
      "t2j.difference",
      "Difference",
      { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true },
      { enableScripts: false, enableCommandUris: [OPEN_LINE], localResourceRoots: [] },
    );
    panel.onDidDispose(() => {
      this.panel = undefined;
    });
    return panel;
  }

  dispose(): void {
    this.lines.dispose();
    this.panel?.dispose();
  }
}

function lineLink(uri: string, line: number): string {
  return `command:${OPEN_LINE}?${encodeURIComponent(JSON.stringify([uri, line]))}`;
}

/** Open a file of the workspace at a line (from 0). */
async function openLine(uri: string, line: number): Promise<void> {
  const where = new vscode.Range(line, 0, line, 0);
  await vscode.window.showTextDocument(vscode.Uri.parse(uri), { selection: where, viewColumn: vscode.ViewColumn.One });
}
