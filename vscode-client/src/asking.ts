/** Asking a model: what would be sent is shown and agreed to first, once in each workspace for each host. */

import * as vscode from "vscode";
import type { Consent } from "./consent";
import { hostOf, sendQuestion } from "./hosts";
import type { Asked, Prompt } from "./protocol";
import type { Server } from "./server";

const SCHEME = "t2j-prompt";
const KEPT = "t2j.sendingAllowed";
const SEND = "Send";
const NOT_HERE = "Not in This Workspace";

interface Definition {
  kind: string;
  name: string;
  line: number;
  endLine: number;
  verdict: string | null;
}

/** What is asked for: a file's URI, a class or function of it, and `gaps` or `different`. */
type Question = [uri: string, name: string, mode: string];

export class Asking implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly pages = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  readonly onDidChange = this.changed.event;

  /** `hidden` gets every key, so that no log shows it. */
  constructor(
    private readonly server: Server,
    private readonly consent: Consent,
    private readonly secrets: vscode.SecretStorage,
    private readonly memory: vscode.Memento,
    private readonly hidden: Set<string>,
  ) {}

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.pages.get(uri.toString()) ?? "";
  }

  /** Ask, once checks may run here and the user agreed to the host. */
  async ask(...question: Question): Promise<Asked | undefined> {
    this.configured();
    if (!(await this.consent.ensure()) || !(await this.mayAsk(question))) {
      return undefined;
    }
    await this.handOver();
    const title = `Asking ${this.host} about ${question[1] || "this file"}`;
    return vscode.window.withProgress(
      { location: vscode.ProgressLocation.Notification, title, cancellable: true },
      (progress, token) => this.server.longCommand<Asked>("t2j.ask", [...question, this.host], progress, token),
    );
  }

  /** Ask about the definition at the cursor. */
  async askHere(): Promise<void> {
    await this.ask(...(await this.questionHere()));
  }

  /** Show what would be sent about the definition at the cursor. */
  async showHere(): Promise<void> {
    this.configured();
    if (await this.consent.ensure()) {
      await this.show(await this.questionHere());
    }
  }

  /** Ask whether code of this workspace may be sent, whatever was said before. */
  async allow(): Promise<void> {
    this.configured();
    if (await this.consent.ensure()) {
      await this.mayAsk(await this.questionHere(), true);
    }
  }

  async setKey(): Promise<void> {
    const host = this.host;
    const key = await vscode.window.showInputBox({
      title: `API key for ${host}`,
      prompt: "Kept in VS Code's secret storage, and sent to this host alone.",
      password: true,
      ignoreFocusOut: true,
    });
    if (key) {
      this.hidden.add(key);
      await this.secrets.store(slot(host), key);
    }
  }

  async clearKey(): Promise<void> {
    await this.secrets.delete(slot(this.host));
    this.server.notify("t2j/modelKey", { host: this.host, key: "" });
    void vscode.window.showInformationMessage(`No key is kept for ${this.host}.`);
  }

  private get host(): string {
    return hostOf(vscode.workspace.getConfiguration("t2j.model").get<string>("baseUrl", ""));
  }

  /** Throws where no model is set. */
  private configured(): void {
    if (!vscode.workspace.getConfiguration("t2j.model").get<string[]>("names", []).length) {
      throw new Error("Name a model in the setting t2j.model.names first.");
    }
  }

  /** The key goes to the server when it is needed, and stays in its memory. */
  private async handOver(): Promise<void> {
    const key = (await this.secrets.get(slot(this.host))) ?? "";
    if (key) {
      this.hidden.add(key);
    }
    this.server.notify("t2j/modelKey", { host: this.host, key });
  }

  private async mayAsk(question: Question, again = false): Promise<boolean> {
    const kept = this.memory.get<Record<string, boolean>>(KEPT, {});
    if (kept[this.host] && !again) {
      return true;
    }
    const { uri, prompt } = await this.show(question);
    const file = question[0].slice(question[0].lastIndexOf("/") + 1);
    const text = sendQuestion(prompt, decodeURIComponent(file));
    const answer = await vscode.window.showWarningMessage(text, SEND, NOT_HERE);
    if (answer !== undefined) {
      await this.memory.update(KEPT, { ...kept, [prompt.host]: answer === SEND });
    }
    await close(uri);
    return answer === SEND && prompt.host === this.host;
  }

  /** Show a prompt beside the file, as text that can't be edited. */
  private async show(question: Question): Promise<{ uri: vscode.Uri; prompt: Prompt }> {
    const prompt = await this.server.command<Prompt>("t2j.askPreview", ...question);
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/What would be sent to ${prompt.host}`, query: question[1] });
    this.pages.set(uri.toString(), `To ${prompt.host}, for ${prompt.models.join(", ")}:\n\n${prompt.text}`);
    this.changed.fire(uri);
    const document = await vscode.workspace.openTextDocument(uri);
    const options = { viewColumn: vscode.ViewColumn.Beside, preview: true, preserveFocus: true };
    await vscode.window.showTextDocument(document, options);
    return { uri, prompt };
  }

  private async questionHere(): Promise<Question> {
    const editor = vscode.window.activeTextEditor;
    if (editor?.document.languageId !== "python") {
      throw new Error("Open a Python file and put the cursor into a class or a function.");
    }
    const uri = editor.document.uri.toString();
    const line = editor.selection.active.line;
    const state = await this.server.request<{ definitions: Definition[] } | null>("t2j/state", { uri, complete: true });
    const around = (state?.definitions ?? []).find(
      (one) => one.kind !== "loop" && one.line <= line && line <= one.endLine,
    );
    return [uri, around?.name ?? "", around?.verdict === "different" ? "different" : "gaps"];
  }

  dispose(): void {
    this.registration.dispose();
    this.changed.dispose();
  }
}

/** The name of a host's key in the secret storage: a key never goes to a host that it was not set for. */
function slot(host: string): string {
  return `t2j.modelKey:${host}`;
}

async function close(uri: vscode.Uri): Promise<void> {
  const tabs = vscode.window.tabGroups.all
    .flatMap((group) => group.tabs)
    .filter((tab) => tab.input instanceof vscode.TabInputText && tab.input.uri.toString() === uri.toString());
  await vscode.window.tabGroups.close(tabs);
}
