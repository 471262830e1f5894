/** The status bar item: what the server is at, and on which device checks run. */

import * as vscode from "vscode";
import type { Checked, Containment, State, Status } from "./protocol";
import type { Problem, Server } from "./server";
import { checking, heldBy, notHeld } from "./words";

const ICONS: Record<State, string> = {
  starting: "$(loading~spin)",
  idle: "$(arrow-swap)",
  analysing: "$(sync~spin)",
  checking: "$(beaker)",
  paused: "$(debug-pause)",
  error: "$(error)",
};
const MENU = [
  ["t2j.previewConversion", "$(arrow-swap) Convert This File…"],
  ["t2j.checkActiveFile", "$(beaker) Check This File"],
  ["t2j.stopCheck", "$(debug-stop) Cancel Running Check"],
  ["t2j.pauseBackgroundChecks", "$(debug-pause) Pause Background Checks"],
  ["t2j.resumeBackgroundChecks", "$(debug-continue) Resume Background Checks"],
  ["t2j.allowChecks", "$(shield) Allow or Forbid Checks in This Workspace"],
  ["t2j.selectInterpreters", "$(snake) Choose Interpreters"],
  ["t2j.showLogs", "$(output) Show Logs"],
  ["t2j.restartServer", "$(debug-restart) Restart Server"],
  ["t2j.copyDebugInfo", "$(copy) Copy Debug Information"],
] as const;
const ONLY_IN: Partial<Record<string, (state: State) => boolean>> = {
  "t2j.stopCheck": (state) => state === "checking",
  "t2j.pauseBackgroundChecks": (state) => state !== "paused",
  "t2j.resumeBackgroundChecks": (state) => state === "paused",
};

export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("t2j.status", vscode.StatusBarAlignment.Right, 90);
  private readonly disposables: vscode.Disposable[];
  private state: State = "starting";
  private device = "";
  private problem = "";
  private reason = "";
  private last = "";
  private work: Pick<Status, "uri" | "message" | "waiting"> = {};
  private containment: Containment | undefined;
  private languageStatus: vscode.LanguageStatusItem | undefined;

  constructor(private readonly server: Server) {
    this.item.name = "t2j";
    this.item.command = "t2j.menu";
    this.disposables = [
      this.item,
      server.onStatus((status) => this.take(status)),
      server.onChecked((checked) => this.checked(checked)),
    ];
    this.show();
  }

  private take(status: Status | Problem): void {
    // Where nothing is PyTorch, there is nothing to say.
    this.item.show();
    if ("state" in status) {
      this.state = status.state;
      this.device = status.device || this.device;
      this.reason = status.reason ?? "";
      this.work = { uri: status.uri, message: status.message, waiting: status.waiting };
      if (status.state === "starting") {
        this.problem = "";
        this.containment = undefined;
      }
    } else {
      this.problem = status.text;
      if (this.state === "starting") {
        this.state = "error";
      }
    }
    void vscode.commands.executeCommand("setContext", "t2j.state", this.state);
    this.show();
    if (this.state === "idle" && !this.containment) {
      void this.server.containment().then((containment) => this.shutIn(containment));
    }
  }

  /** How checks are shut in here: a line of the tooltip, and an item of its own where something is not held. */
  private shutIn(containment: Containment | undefined): void {
    this.containment = containment;
    if (containment?.not_held.length && !this.languageStatus) {
      const item = vscode.languages.createLanguageStatusItem("t2j.containment", { language: "python" });
      item.name = "t2j checks";
      item.severity = vscode.LanguageStatusSeverity.Warning;
      item.text = "t2j checks are not fully contained";
      item.detail = notHeld(containment);
      this.languageStatus = item;
      this.disposables.push(item);
    }
    this.show();
  }

  private checked(checked: Checked): void {
    this.device = checked.device || this.device;
    this.last = checked.message;
    this.show();
  }

  private show(): void {
    const at = this.state === "checking" ? checking(this.work) : this.state;
    const word = this.state === "idle" ? "" : ` ${at}`;
    this.item.text = `${ICONS[this.state]} t2j${word}${this.device ? ` · ${this.device}` : ""}`;
    const tooltip = new vscode.MarkdownString();
    for (const line of [
      `t2j: ${at}${this.reason ? ` (${this.reason})` : ""}`,
      this.device && `Checks ran on: ${this.device}`,
      this.last,
      this.problem,
      this.containment && [`${heldBy(this.containment)}.`, notHeld(this.containment)].join(" ").trim(),
    ]) {
      if (line) {
        tooltip.appendText(line).appendMarkdown("\n\n");
      }
    }
    if (this.state === "checking") {
      tooltip.isTrusted = { enabledCommands: ["t2j.stopCheck"] };
      tooltip.appendMarkdown("[Cancel](command:t2j.stopCheck)");
    }
    this.item.tooltip = tooltip;
    this.item.accessibilityInformation = { label: `t2j ${this.state}${this.device ? ` on ${this.device}` : ""}` };
    const bad = this.state === "error" || this.problem !== "";
    this.item.backgroundColor = bad ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
  }

  /** The menu behind the item. */
  async menu(): Promise<void> {
    const entries = MENU.filter(([command]) => ONLY_IN[command]?.(this.state) ?? true);
    const items: { label: string; command: string }[] = entries.map(([command, label]) => ({ label, command }));
    if (this.problem) {
      items.unshift({ label: `$(warning) ${this.problem}`, command: "t2j.install" });
    }
    const chosen = await vscode.window.showQuickPick(items, { title: `t2j: ${this.state}` });
    if (chosen) {
      await vscode.commands.executeCommand(chosen.command);
    }
  }

  dispose(): void {
    for (const one of this.disposables) {
      one.dispose();
    }
  }
}
