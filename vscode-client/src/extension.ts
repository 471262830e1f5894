/** The extension: makes the parts, and registers the commands of package.json. */

import * as vscode from "vscode";
import { Asking } from "./asking";
import { Consent } from "./consent";
import { DifferencePanel } from "./difference";
import { Explanations } from "./explain";
import { hiding } from "./hosts";
import { Installer } from "./install";
import { MigrationView } from "./migration";
import { Previews } from "./preview";
import { watchInterpreter } from "./python";
import { openReport } from "./report";
import { rewriteHere } from "./rewriting";
import { Server } from "./server";
import { StatusItem } from "./status";
import { importsTorch } from "./torch";
import { tellVerdict } from "./verdict";
import { whenTorchIsImported } from "./wake";
import { Walkthrough } from "./walkthrough";

let server: Server | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  // Verbose traces have the messages to the server, and one of these has a key.
  const keys = new Set<string>();
  const log = hiding(vscode.window.createOutputChannel("t2j", { log: true }), keys);
  const traffic = hiding(vscode.window.createOutputChannel("t2j Messages", { log: true }), keys);
  const consent = new Consent(context.workspaceState);
  const running = new Server(context, consent, log, traffic);
  server = running;
  consent.containment = () => running.containment();
  const status = new StatusItem(running);
  const installer = new Installer(running);
  const previews = new Previews(running, consent);
  const panel = new DifferencePanel(running, consent);
  const migration = new MigrationView(running, consent);
  const explanations = new Explanations(running);
  const asking = new Asking(running, consent, context.secrets, context.workspaceState, keys);
  running.ask = (...question) => asking.ask(...question);
  const walkthrough = new Walkthrough(`${context.extension.id}#firstFiveMinutes`, context.globalState);
  context.subscriptions.push(
    log,
    traffic,
    consent,
    running,
    status,
    previews,
    panel,
    migration,
    explanations,
    asking,
    walkthrough,
  );

  const checkActive = async () => {
    const uri = activeUri();
    const checked = uri && (await running.check(uri.toString()));
    if (checked) {
      tellVerdict(checked);
    }
  };
  const runActive = async () => {
    const uri = activeUri();
    const ran = uri && (await running.runBoth(uri.toString()));
    if (ran) {
      tellVerdict(ran);
    }
  };
  const convertAndCheck = (uri?: vscode.Uri) => withUri(uri, (one) => running.convertAndCheck(one.toString()));
  const commands: Record<string, (...args: never[]) => unknown> = {
    "t2j.previewConversion": (uri?: vscode.Uri | string, name?: unknown) =>
      withUri(uri, (one) => previews.open(one, typeof name === "string" ? name : undefined)),
    "t2j.rewriteInPlace": () => rewriteHere(running),
    "t2j.applyPreview": (uri?: vscode.Uri) => previews.apply(uri),
    "t2j.discardPreview": (uri?: vscode.Uri) => previews.discard(uri),
    "t2j.checkActiveFile": checkActive,
    "t2j.convertAndCheckFile": convertAndCheck,
    "t2j.runActiveFile": runActive,
    "t2j.stopCheck": () => running.command("t2j.cancelCheck"),
    "t2j.pauseBackgroundChecks": () => running.command("t2j.pauseChecks"),
    "t2j.resumeBackgroundChecks": () => running.command("t2j.resumeChecks"),
    "t2j.allowChecks": () => consent.ask(),
    "t2j.askModel": () => asking.askHere(),
    "t2j.showPrompt": () => asking.showHere(),
    "t2j.allowSending": () => asking.allow(),
    "t2j.setModelKey": () => asking.setKey(),
    "t2j.clearModelKey": () => asking.clearKey(),
    "t2j.showDifference": (uri?: string, name?: string) => showDifference(running, panel, uri, name),
    "t2j.showFixes": (ids?: unknown) => Array.isArray(ids) && panel.showFixes(ids.map(String)),
    "t2j.explainName": (name?: unknown) => explanations.show(name),
    "t2j.restartServer": () => running.restart(),
    "t2j.showLogs": () => log.show(),
    "t2j.copyDebugInfo": () => copyDebugInfo(running, context),
    "t2j.install": () => installer.install(),
    "t2j.selectInterpreters": () => installer.choose(),
    "t2j.menu": () => status.menu(),
    "t2j.openWalkthrough": () => walkthrough.open(),
    "t2j.migration.refresh": () => migration.refresh(),
    "t2j.migration.convert": (...args: Parameters<MigrationView["convert"]>) => migration.convert(...args),
    "t2j.migration.check": (...args: Parameters<MigrationView["check"]>) => migration.check(...args),
    "t2j.migration.convertAll": () => migration.convertAll(),
    "t2j.migration.report": () => openReport(context, running),
  };
  for (const [name, action] of Object.entries(commands)) {
    context.subscriptions.push(
      vscode.commands.registerCommand(name, guarded(action as (...args: unknown[]) => unknown, log)),
    );
  }
  context.subscriptions.push(
    running.onStatus((state) => "state" in state && state.state === "idle" && walkthrough.done("interpreter")),
    running.onHovered(() => walkthrough.done("hover")),
    previews.onApplied(() => walkthrough.done("convert")),
    running.onChecked((checked) => !checked.problem && checked.objects.length && walkthrough.done("check")),
    migration.onShown(() => walkthrough.done("migrate")),
    running.onStatus((state) => "text" in state && void installer.tell(state)),
    vscode.window.onDidChangeActiveTextEditor(noteConvertible),
  );
  noteConvertible(vscode.window.activeTextEditor);
  context.subscriptions.push(whenTorchIsImported(() => void running.wake(), log));
  const watched = await watchInterpreter(() => {
    if (running.awake && !vscode.workspace.getConfiguration("t2j").get<string>("interpreter")) {
      void running.restart();
    }
  });
  if (watched) {
    context.subscriptions.push(watched);
  }
}

export async function deactivate(): Promise<void> {
  await server?.stop();
}

/** What can't be done is said in one line, and not as an error of the extension. */
function guarded(
  action: (...args: unknown[]) => unknown,
  log: vscode.LogOutputChannel,
): (...args: unknown[]) => Promise<unknown> {
  return async (...args) => {
    try {
      return await action(...args);
    } catch (error) {
      log.warn((error as Error).message);
      void vscode.window.showWarningMessage((error as Error).message);
      return undefined;
    }
  };
}

function activeUri(): vscode.Uri | undefined {
  return vscode.window.activeNotebookEditor?.notebook.uri ?? vscode.window.activeTextEditor?.document.uri;
}

async function withUri(given: unknown, action: (uri: vscode.Uri) => Promise<void>): Promise<void> {
  const named = typeof given === "string" ? vscode.Uri.parse(given) : given;
  const uri = named instanceof vscode.Uri ? named : activeUri();
  if (uri) {
    await action(uri);
  } else {
    void vscode.window.showInformationMessage("Open a Python file or a notebook first.");
  }
}

/** From the palette there are no arguments: the differing object of the active file is meant. */
async function showDifference(running: Server, panel: DifferencePanel, uri?: string, name?: string): Promise<void> {
  if (uri && name) {
    await panel.show(uri, name);
    return;
  }
  const active = activeUri()?.toString();
  if (!active) {
    return;
  }
  const state = await running.request<{ definitions: { name: string; kind: string; verdict: string | null }[] } | null>(
    "t2j/state",
    { uri: active, complete: true },
  );
  const checked = (state?.definitions ?? []).filter((one) => one.verdict !== null);
  const differing = checked.filter((one) => one.verdict === "different");
  const offered = differing.length ? differing : checked;
  const items = offered.map((one) => ({ label: one.name, description: one.verdict ?? "" }));
  const chosen = items.length > 1 ? await vscode.window.showQuickPick(items, { title: "Explain" }) : items[0];
  if (chosen) {
    await panel.show(active, chosen.label);
  } else if (!items.length) {
    void vscode.window.showInformationMessage("Nothing here has a verdict yet: check the file first.");
  }
}

async function copyDebugInfo(running: Server, context: vscode.ExtensionContext): Promise<void> {
  const own = {
    extension: context.extension.packageJSON.version,
    vscode: vscode.version,
    problem: running.problem?.text ?? null,
    environment: running.environment ?? null,
  };
  const info = running.running ? await running.command<object>("t2j.debugInfo") : {};
  await vscode.env.clipboard.writeText(JSON.stringify({ ...own, server: info }, null, 2));
  void vscode.window.showInformationMessage("t2j's debug information is on the clipboard. It holds no code.");
}

/** The buttons of an editor are for PyTorch files. */
function noteConvertible(editor: vscode.TextEditor | undefined): void {
  const document = editor?.document;
  const convertible = document?.languageId === "python" && importsTorch(document.getText());
  void vscode.commands.executeCommand("setContext", "t2j.convertible", convertible);
}
