/** A verdict that was asked for, as a message. */

import * as vscode from "vscode";
import type { Checked, Ran } from "./protocol";

export function tellVerdict(checked: Checked | Ran): void {
  if (checked.verdict === "different") {
    void vscode.window.showWarningMessage(checked.message);
  } else {
    void vscode.window.showInformationMessage(checked.message);
  }
}
