/** The server's life: found, started, restarted, stopped; and every message to it. */

import { randomUUID } from "node:crypto";
import * as path from "node:path";
import * as vscode from "vscode";
import {
  State as ClientState,
  type ExecuteCommandSignature,
  LanguageClient,
  type LanguageClientOptions,
  RevealOutputChannelOn,
  type ServerOptions,
  WorkDoneProgress,
} from "vscode-languageclient/node";
import { readBundle } from "./bundle";
import type { Consent } from "./consent";
import { chooseLaunch, type ImportStrategy, missingForChecks } from "./launch";
import type { AppliedAndChecked, Checked, Containment, Ran, Status } from "./protocol";
import { type Environment, expand, findInterpreter, probe, pythonEnvironment } from "./python";
import { confirmed, confirmedArguments, type Question } from "./rewriting";
import { tellVerdict } from "./verdict";

/** Settings that the server is started with: a change of one starts it anew. */
const START_SETTINGS = ["t2j.interpreter", "t2j.importStrategy", "t2j.serverArguments"];
const CONVERT_FILE = "source.convert.t2j";
const STOP_TIMEOUT = 5_000;
const SELECTOR = [
  { scheme: "file", language: "python" },
  { scheme: "untitled", language: "python" },
  { notebook: "jupyter-notebook", language: "python" },
];

type Report = vscode.Progress<{ message?: string }>;

/** Why there is no server, and the packages whose installation would mend it. */
export interface Problem {
  text: string;
  python?: string;
  packages: string[];
}

export class Server implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private queue: Promise<void> = Promise.resolve();
  /** Whether the server was ever wanted: by a file that imports torch, or by a command or view of ours. */
  awake = false;
  private readonly statusChanged = new vscode.EventEmitter<Status | Problem>();
  private readonly fileChecked = new vscode.EventEmitter<Checked>();
  private readonly workspaceChanged = new vscode.EventEmitter<void>();
  private readonly hovered = new vscode.EventEmitter<void>();
  private readonly disposables: vscode.Disposable[];
  readonly onStatus = this.statusChanged.event;
  readonly onChecked = this.fileChecked.event;
  readonly onWorkspaceChanged = this.workspaceChanged.event;
  readonly onHovered = this.hovered.event;
  environment: Environment | undefined;
  private contained: Containment | undefined;
  problem: Problem | undefined;
  /** The bundle's folders on Python's path; none where the environment's own t2j runs. */
  folders: string[] = [];
  /** Asks a model, once the user has agreed to it. */
  ask: (...question: [string, string, string]) => Promise<unknown> = async () => undefined;
  /** Files that are shown by whoever had them converted: the server's next wish to show one is not followed. */
  readonly shownElsewhere = new Set<string>();

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly consent: Consent,
    private readonly log: vscode.LogOutputChannel,
    private readonly traffic: vscode.LogOutputChannel,
  ) {
    this.disposables = [
      this.statusChanged,
      this.fileChecked,
      this.workspaceChanged,
      this.hovered,
      consent.onChange((given) => this.tellTrust(given)),
      // An interpreter inside the workspace may run from now on.
      vscode.workspace.onDidGrantWorkspaceTrust(() => this.awake && void this.restart()),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (this.awake && START_SETTINGS.some((name) => event.affectsConfiguration(name))) {
          void this.restart();
        }
      }),
    ];
  }

  get running(): boolean {
    return this.client?.state === ClientState.Running;
  }

  /** Start, unless that was done; resolves when nothing is starting any more. */
  wake(): Promise<void> {
    return this.awake ? this.queue : this.restart();
  }

  /** Start, or start anew. Several calls at once follow each other. */
  restart(): Promise<void> {
    this.awake = true;
    this.queue = this.queue
      .then(() => this.startAnew())
      .catch((error) => this.failed({ text: (error as Error).message, packages: [] }));
    return this.queue;
  }

  async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    if (client) {
      await client.dispose(STOP_TIMEOUT).catch((error) => this.log.warn(`The server did not stop in order: ${error}`));
    }
  }

  /** Send a command; waits for a server that is starting. Errors carry one line for the user. */
  async command<T>(name: string, ...args: unknown[]): Promise<T> {
    return this.request<T>("workspace/executeCommand", { command: name, arguments: args });
  }

  async request<T>(method: string, params: unknown, token?: vscode.CancellationToken): Promise<T> {
    await this.wake();
    if (!this.client || !this.running) {
      throw new Error(this.problem?.text ?? "The t2j server is not running.");
    }
    return token ? this.client.sendRequest<T>(method, params, token) : this.client.sendRequest<T>(method, params);
  }

  /** Tell a server that runs something. */
  notify(method: string, params: unknown): void {
    if (this.running) {
      void this.client?.sendNotification(method, params);
    }
  }

  /** Send a command that tells how far it is, and that a token cancels; undefined where that was done. */
  async longCommand<T>(name: string, args: unknown[], report: Report, token: vscode.CancellationToken) {
    await this.wake();
    const workDoneToken = `t2j-${randomUUID()}`;
    const shown = this.client?.onProgress(WorkDoneProgress.type, workDoneToken, (value) => {
      if (value.kind !== "end" && value.message) {
        report.report({ message: value.message });
      }
    });
    try {
      return await this.request<T>(
        "workspace/executeCommand",
        { command: name, arguments: args, workDoneToken },
        token,
      );
    } catch (error) {
      if (token.isCancellationRequested) {
        return undefined;
      }
      throw error;
    } finally {
      shown?.dispose();
    }
  }

  private async startAnew(): Promise<void> {
    await this.stop();
    this.problem = undefined;
    this.contained = undefined;
    this.statusChanged.fire({ state: "starting" });
    const python = await findInterpreter(this.log);
    if (!python) {
      this.failed({ text: "No Python interpreter was found. Choose one to run t2j with.", packages: [] });
      return;
    }
    const tool = this.context.asAbsolutePath(path.join("bundled", "tool"));
    let environment: Environment;
    try {
      environment = await probe(python.path, tool);
    } catch (error) {
      this.failed({ text: `${(error as Error).message} (named by the ${python.from})`, packages: [] });
      return;
    }
    this.environment = environment;
    this.log.info(`Interpreter from the ${python.from}: ${environment.python}`, JSON.stringify(environment.packages));
    const bundle = readBundle(this.context.extensionPath);
    const configuration = vscode.workspace.getConfiguration("t2j");
    const strategy = configuration.get<ImportStrategy>("importStrategy", "useBundled");
    const launch = chooseLaunch(environment, strategy, bundle);
    if (launch.kind === "missing") {
      this.failed({ text: `t2j can't run in ${environment.python}: ${launch.why}.`, packages: [] });
      return;
    }
    this.folders = launch.folders.map((name) => this.context.asAbsolutePath(path.join("bundled", name)));
    this.log.info(
      launch.folders.length ? `Server: the bundled t2j ${bundle?.version}` : "Server: the environment's t2j",
    );
    await this.startClient(environment.python, configuration.get<string[]>("serverArguments", []));
    void this.reportMissing(environment, tool);
  }

  private async startClient(python: string, more: string[]): Promise<void> {
    const options: ServerOptions = {
      command: python,
      args: ["-m", "t2j_lsp", "serve", ...more],
      options: { cwd: this.context.extensionPath, env: pythonEnvironment(this.folders) },
    };
    const client = new LanguageClient("t2j", "t2j", options, this.clientOptions());
    client.onNotification("t2j/status", (status: Status) => this.statusChanged.fire(status));
    client.onNotification("t2j/checked", (checked: Checked) => this.fileChecked.fire(checked));
    client.onNotification("t2j/workspaceChanged", () => this.workspaceChanged.fire());
    this.client = client;
    try {
      await client.start();
    } catch (error) {
      this.log.error(`${error}`);
      throw new Error("The t2j server did not start. Its log says why.");
    }
    this.statusChanged.fire({ state: "idle" });
  }

  private clientOptions(): LanguageClientOptions {
    return {
      documentSelector: SELECTOR,
      outputChannel: this.log,
      traceOutputChannel: this.traffic,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      markdown: { isTrusted: { enabledCommands: ["t2j.convert", "t2j.explainName", "t2j.showFixes"] } },
      initializationOptions: () => ({
        trusted: this.consent.given,
        settings: JSON.parse(JSON.stringify(vscode.workspace.getConfiguration("t2j"))),
        commandLinks: true,
        panels: true,
        asksBeforeChecks: true,
        previews: true,
        asksBeforeRewriting: true,
        showsChecks: true,
        asksBeforeSending: true,
      }),
      middleware: {
        executeCommand: (command, args, next) => this.execute(command, args, next),
        provideHover: async (document, position, token, next) => {
          const hover = await next(document, position, token);
          if (hover) {
            this.hovered.fire();
          }
          return hover;
        },
        provideCodeActions: async (document, range, context, token, next) =>
          previewed(document, (await next(document, range, context, token)) ?? []),
        resolveCodeAction: async (action, token, next) => (action.command ? action : next(action, token)),
        window: {
          showDocument: async (params, token, next) =>
            this.shownElsewhere.delete(params.uri) ? { success: true } : next(params, token),
        },
      },
    };
  }

  /** Check a file, or one class or function of it. Asks for permission first; the status item shows how far it is. */
  async check(uri: string, name?: string): Promise<Checked | undefined> {
    if (!(await this.consent.ensure())) {
      return undefined;
    }
    return this.command<Checked>("t2j.check", ...(name === undefined ? [uri] : [uri, name]));
  }

  /** Run a program and its conversion as wholes. Asks for permission first; the status item shows how far it is. */
  async runBoth(uri: string): Promise<Ran | undefined> {
    return (await this.consent.ensure()) ? this.command<Ran>("t2j.run", uri) : undefined;
  }

  /** Convert a file beside itself, check both, and say the verdict. Asks for permission first. */
  async convertAndCheck(uri: string): Promise<void> {
    if (!(await this.consent.ensure())) {
      return;
    }
    const answer = await this.command<AppliedAndChecked>("t2j.convertAndCheck", uri);
    if (answer.checked) {
      tellVerdict(answer.checked);
    } else if (answer.reason) {
      void vscode.window.showWarningMessage(`The conversion was not checked: ${answer.reason}`);
    }
  }

  /** How checks are shut in on this system; undefined where that can't be told. */
  async containment(): Promise<Containment | undefined> {
    try {
      this.contained ??= await this.command<Containment>("t2j.containment");
    } catch (error) {
      this.log.warn(`The containment of checks is not known: ${(error as Error).message}`);
    }
    return this.contained;
  }

  /** Run a command of the server's. Where it answers with a question, the user is asked, and it runs once more. */
  async run(command: string, args: unknown[]): Promise<unknown> {
    const answer = await this.command<{ question?: Question } | null>(command, ...args);
    const again = answer?.question && confirmedArguments(command, args);
    return again && (await confirmed(answer.question as Question)) ? this.command(command, ...again) : answer;
  }

  /** Commands of lenses and links. What can't be done is said in one line. */
  private async execute(command: string, args: unknown[], next: ExecuteCommandSignature): Promise<unknown> {
    try {
      if (command === "t2j.check") {
        return await this.check(...(args as [string, string?]));
      }
      if (command === "t2j.run") {
        return await this.runBoth(String(args[0]));
      }
      if (command === "t2j.ask") {
        return await this.ask(...(args as [string, string, string]));
      }
      if (command === "t2j.convertAndCheck") {
        return await this.convertAndCheck(String(args[0]));
      }
      return confirmedArguments(command, args) ? await this.run(command, args) : await next(command, args);
    } catch (error) {
      this.log.warn(`${command}: ${(error as Error).message}`);
      void vscode.window.showWarningMessage((error as Error).message);
      return undefined;
    }
  }

  private tellTrust(trusted: boolean): void {
    this.notify("t2j/didChangeTrust", { trusted });
  }

  /** Say what checks will lack. The server runs all the same. */
  private async reportMissing(server: Environment, tool: string): Promise<void> {
    const configuration = vscode.workspace.getConfiguration("t2j.check");
    const look = async (name: string): Promise<Environment> => {
      const set = expand(configuration.get<string>(name, "").trim());
      return set ? probe(set, tool) : server;
    };
    try {
      const missing = missingForChecks(await look("torchPython"), await look("jaxPython"));
      for (const { python, packages } of missing) {
        this.problem = { text: `Checks need ${packages.join(", ")} in ${python}.`, python, packages };
        this.statusChanged.fire(this.problem);
      }
    } catch (error) {
      this.problem = { text: (error as Error).message, packages: [] };
      this.statusChanged.fire(this.problem);
    }
  }

  private failed(problem: Problem): void {
    this.problem = problem;
    this.log.error(problem.text);
    this.statusChanged.fire(problem);
  }

  dispose(): void {
    for (const one of this.disposables) {
      one.dispose();
    }
  }
}

/**
 * Converting a file goes through the preview; everything else is applied as the server says. VS Code's lightbulb leaves out
 * source actions, so that of the file is offered as a rewrite, too.
 */
function previewed(document: vscode.TextDocument, actions: (vscode.Command | vscode.CodeAction)[]) {
  return actions.flatMap((action) => {
    if (!(action instanceof vscode.CodeAction) || action.kind?.value !== CONVERT_FILE) {
      return [action];
    }
    const uri = notebookOf(document)?.uri ?? document.uri;
    return [action.kind, vscode.CodeActionKind.RefactorRewrite.append("t2j.file")].map((kind) => {
      const shown = new vscode.CodeAction(action.title, kind);
      shown.disabled = action.disabled;
      shown.command = { command: "t2j.previewConversion", title: action.title, arguments: [uri] };
      return shown;
    });
  });
}

/** The notebook that a cell's document belongs to. */
function notebookOf(document: vscode.TextDocument): vscode.NotebookDocument | undefined {
  return vscode.workspace.notebookDocuments.find((one) => one.getCells().some((cell) => cell.document === document));
}
