/** Whether checks may run the workspace's code: it has to be trusted, and the user is asked once in each workspace. */

import * as vscode from "vscode";
import type { Containment } from "./protocol";
import { consentQuestion, notHeld } from "./words";

const KEY = "t2j.checksAllowed";
/** What the user was told is not held here. */
const TOLD = "t2j.notHeldTold";
const ALLOW = "Allow";
const NOT_HERE = "Not in This Workspace";

export class Consent implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<boolean>();
  private readonly subscription: vscode.Disposable;
  private asking: Promise<boolean> | undefined;
  readonly onChange = this.changed.event;

  constructor(private readonly memory: vscode.Memento) {
    this.subscription = vscode.workspace.onDidGrantWorkspaceTrust(() => this.changed.fire(this.given));
  }

  /** Whether code may run now. */
  get given(): boolean {
    return vscode.workspace.isTrusted && this.memory.get(KEY) === true;
  }

  /** How checks are shut in on this system, once somebody can tell. */
  containment: () => Promise<Containment | undefined> = async () => undefined;

  /** The user wants a check: ask, unless it is allowed already; true if code may run. */
  async ensure(): Promise<boolean> {
    if (!this.given) {
      return this.ask();
    }
    void this.tellWhatIsNotHeld();
    return true;
  }

  /** Checks were allowed when more was held, or before anybody could say: say it once in each workspace. */
  private async tellWhatIsNotHeld(): Promise<void> {
    const containment = await this.containment();
    const weak = containment ? notHeld(containment) : "";
    if (weak && this.memory.get(TOLD) !== weak) {
      await this.memory.update(TOLD, weak);
      void vscode.window.showWarningMessage(`t2j checks run as you. ${weak}`);
    }
  }

  /** Something could be checked from now on: ask where the user was never asked, and the workspace is trusted. */
  offer(): void {
    if (vscode.workspace.isTrusted && this.memory.get(KEY) === undefined) {
      void this.ask();
    }
  }

  /** Ask, whatever was said before. Several wishes at once make one question. */
  ask(): Promise<boolean> {
    this.asking ??= this.question().finally(() => {
      this.asking = undefined;
    });
    return this.asking;
  }

  private async question(): Promise<boolean> {
    if (!vscode.workspace.isTrusted) {
      void this.explainTrust();
      return false;
    }
    const containment = await this.containment();
    const answer = await vscode.window.showInformationMessage(consentQuestion(containment), ALLOW, NOT_HERE);
    if (answer !== undefined && containment) {
      await this.memory.update(TOLD, notHeld(containment));
    }
    if (answer !== undefined) {
      await this.memory.update(KEY, answer === ALLOW);
      this.changed.fire(this.given);
    }
    return this.given;
  }

  private async explainTrust(): Promise<void> {
    const manage = "Manage Workspace Trust";
    const text = "A check runs this workspace's code, so it needs a workspace that you trust.";
    if ((await vscode.window.showWarningMessage(text, manage)) === manage) {
      await vscode.commands.executeCommand("workbench.trust.manage");
    }
  }

  dispose(): void {
    this.subscription.dispose();
    this.changed.dispose();
  }
}
