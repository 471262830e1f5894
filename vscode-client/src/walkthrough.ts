/** The steps of the walkthrough, ticked when what they ask for was really done. */

import * as vscode from "vscode";

/** The ids of the steps in package.json. */
export const STEPS = ["interpreter", "hover", "convert", "check", "migrate"] as const;
export type Step = (typeof STEPS)[number];

const KEY = "t2j.walkthroughDone";

/**
 * VS Code ticks a step at the moment its context becomes true, and looks for such moments only once it has opened a page of
 * welcome: a context that is true by then never ticks. So a context is true for a moment alone, and again whenever a page is
 * opened that may be the walkthrough.
 */
export class Walkthrough implements vscode.Disposable {
  private readonly subscription: vscode.Disposable;

  constructor(
    private readonly id: string,
    private readonly memory: vscode.Memento,
  ) {
    this.subscription = vscode.window.tabGroups.onDidChangeTabs(({ opened }) => {
      // The page of welcome is a tab without an input.
      if (opened.some((tab) => tab.input === undefined)) {
        void this.tick(this.known);
      }
    });
  }

  private get known(): Step[] {
    return this.memory.get<Step[]>(KEY, []);
  }

  /** The user did what a step asks for. */
  async done(step: Step): Promise<void> {
    if (!this.known.includes(step)) {
      await this.memory.update(KEY, [...this.known, step]);
      await this.tick([step]);
    }
  }

  async open(): Promise<void> {
    await vscode.commands.executeCommand("workbench.action.openWalkthrough", this.id);
    await this.tick(this.known);
  }

  private async tick(steps: readonly Step[]): Promise<void> {
    for (const step of steps) {
      await vscode.commands.executeCommand("setContext", `t2j.done.${step}`, true);
      await vscode.commands.executeCommand("setContext", `t2j.done.${step}`, false);
    }
  }

  dispose(): void {
    this.subscription.dispose();
  }
}
