/** Installs what is missing, in a terminal that the user sees, and lets the user choose interpreters. */

import * as vscode from "vscode";
import { pipCommand } from "./launch";
import type { Problem, Server } from "./server";

const INSTALL = "Install";
const CHOOSE = "Choose Interpreters";
const LOGS = "Show Logs";

/** Say what is missing, once for each text, and offer to mend it. */
export class Installer {
  private readonly told = new Set<string>();

  constructor(private readonly server: Server) {}

  async tell(problem: Problem): Promise<void> {
    if (this.told.has(problem.text)) {
      return;
    }
    this.told.add(problem.text);
    const offers = problem.packages.length ? [INSTALL, CHOOSE] : [CHOOSE, LOGS];
    const answer = await vscode.window.showWarningMessage(problem.text, ...offers);
    if (answer === INSTALL) {
      await this.install(problem);
    } else if (answer === CHOOSE) {
      await this.choose();
    } else if (answer === LOGS) {
      await vscode.commands.executeCommand("t2j.showLogs");
    }
  }

  /** Install what the server said is missing, and start anew when the terminal's command has ended. */
  async install(given?: Problem): Promise<void> {
    await this.server.wake();
    const problem = given ?? this.server.problem;
    if (!problem?.python || !problem.packages.length) {
      const text = problem?.text ?? "Nothing is missing: the server runs, and finds torch and jax.";
      await vscode.window.showInformationMessage(text);
      return;
    }
    if (!vscode.workspace.isTrusted) {
      await vscode.window.showWarningMessage("Packages are installed in trusted workspaces only.");
      return;
    }
    const terminal = vscode.window.createTerminal({ name: "t2j: install" });
    terminal.show();
    terminal.sendText(pipCommand(problem.python, problem.packages, process.platform === "win32"), true);
    this.told.clear();
    const again = "Restart the Server";
    const text = "When the installation in the terminal is done, restart the t2j server.";
    if ((await vscode.window.showInformationMessage(text, again)) === again) {
      await this.server.restart();
    }
  }

  /** Choose the interpreter of the server, of torch or of jax, as a file. */
  async choose(): Promise<void> {
    const configuration = vscode.workspace.getConfiguration("t2j");
    const roles = [
      { label: "Server", setting: "interpreter", description: "runs t2j" },
      { label: "torch", setting: "check.torchPython", description: "runs the PyTorch side of checks" },
      { label: "jax", setting: "check.jaxPython", description: "runs the JAX side of checks" },
    ].map((role) => ({ ...role, detail: configuration.get<string>(role.setting) || "not set: found by itself" }));
    const role = await vscode.window.showQuickPick(roles, { title: "Interpreter of …" });
    if (!role) {
      return;
    }
    const value = await vscode.window.showInputBox({
      title: `Interpreter: ${role.label}`,
      prompt: "The path of a Python interpreter. Empty: found by itself.",
      value: configuration.get<string>(role.setting, ""),
      ignoreFocusOut: true,
    });
    if (value !== undefined) {
      await configuration.update(role.setting, value.trim() || undefined, vscode.ConfigurationTarget.Global);
      this.told.clear();
    }
  }
}
