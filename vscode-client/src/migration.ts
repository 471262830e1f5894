/** The Migration view: the workspace's PyTorch files and their symbols, by how far they have come. */

import * as vscode from "vscode";
import type { Consent } from "./consent";
import type { BulkApplied, FileState, Migration, SymbolState, Workspace } from "./protocol";
import type { Server } from "./server";

const ORDER: Migration[] = ["different", "gaps", "converted", "not started", "equivalent"];
const LOOKS: Record<Migration, { icon: string; color?: string; label: string }> = {
  different: { icon: "error", color: "list.errorForeground", label: "Different" },
  gaps: { icon: "warning", color: "list.warningForeground", label: "Converted with gaps" },
  converted: { icon: "circle-filled", label: "Converted, not all checked" },
  "not started": { icon: "circle-outline", label: "Not started" },
  equivalent: { icon: "pass", color: "testing.iconPassed", label: "Equivalent" },
};

type Node =
  | { kind: "group"; state: Migration; files: FileState[] }
  | { kind: "file"; file: FileState }
  | { kind: "symbol"; file: FileState; symbol: SymbolState };

export class MigrationView implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<undefined>();
  private readonly view: vscode.TreeView<Node>;
  private readonly disposables: vscode.Disposable[];
  private workspace: Workspace | undefined;
  private fetching: Promise<void> | undefined;
  private stale = true;
  private readonly shown = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  readonly onShown = this.shown.event;

  constructor(
    private readonly server: Server,
    private readonly consent: Consent,
  ) {
    this.view = vscode.window.createTreeView("t2j.migration", { treeDataProvider: this, canSelectMany: true });
    this.disposables = [
      this.changed,
      this.view,
      server.onWorkspaceChanged(() => this.outdated()),
      server.onStatus((status) => "state" in status && status.state === "idle" && !this.workspace && this.outdated()),
      this.shown,
      this.view.onDidChangeVisibility(({ visible }) => {
        if (visible) {
          this.shown.fire();
          void (this.stale && this.fetch(false));
        }
      }),
    ];
  }

  /** Ask anew, and have the files read again. */
  async refresh(): Promise<void> {
    await this.fetch(true);
  }

  private outdated(): void {
    this.stale = true;
    if (this.view.visible) {
      void this.fetch(false);
    }
  }

  private fetch(refresh: boolean): Promise<void> {
    this.fetching ??= this.ask(refresh).finally(() => {
      this.fetching = undefined;
    });
    return this.fetching;
  }

  private async ask(refresh: boolean): Promise<void> {
    this.stale = false;
    try {
      this.workspace = await vscode.window.withProgress({ location: { viewId: "t2j.migration" } }, () =>
        this.server.request<Workspace>("t2j/workspace", { refresh }),
      );
      this.view.message = this.workspace.problems.length ? this.workspace.problems.join("\n") : undefined;
      const { counts, files } = this.workspace;
      this.view.description = files.length ? `${counts.equivalent} of ${files.length} equivalent` : "";
    } catch (error) {
      this.view.message = (error as Error).message;
    }
    await vscode.commands.executeCommand("setContext", "t2j.migration.ready", true);
    this.changed.fire(undefined);
  }

  async getChildren(node?: Node): Promise<Node[]> {
    if (!node) {
      if (!this.workspace && this.stale) {
        await this.fetch(false);
      }
      const files = this.workspace?.files ?? [];
      return ORDER.map(
        (state): Node => ({ kind: "group", state, files: files.filter((file) => file.state === state) }),
      ).filter((group) => group.kind === "group" && group.files.length > 0);
    }
    if (node.kind === "group") {
      return node.files.map((file): Node => ({ kind: "file", file }));
    }
    if (node.kind === "file") {
      return node.file.symbols.map((symbol): Node => ({ kind: "symbol", file: node.file, symbol }));
    }
    return [];
  }

  getTreeItem(node: Node): vscode.TreeItem {
    const { Collapsed, Expanded, None } = vscode.TreeItemCollapsibleState;
    if (node.kind === "group") {
      const item = new vscode.TreeItem(LOOKS[node.state].label, Expanded);
      item.id = `group:${node.state}`;
      item.description = String(node.files.length);
      item.contextValue = `group.${context(node.state)}`;
      return item;
    }
    if (node.kind === "file") {
      const { file } = node;
      const item = new vscode.TreeItem(vscode.Uri.parse(file.uri), file.symbols.length ? Collapsed : None);
      item.id = `file:${file.uri}`;
      const slash = file.path.lastIndexOf("/");
      item.label = file.path.slice(slash + 1);
      item.description = [file.path.slice(0, Math.max(slash, 0)), file.gaps ? left(file.gaps) : ""]
        .filter(Boolean)
        .join(" · ");
      item.contextValue = `file.${context(file.state)}`;
      item.iconPath = icon(file.state);
      item.command = opening(file.uri, 0);
      return item;
    }
    const { symbol, file } = node;
    const item = new vscode.TreeItem(symbol.name, None);
    item.id = `symbol:${file.uri}#${symbol.name}`;
    item.description = [symbol.state, symbol.gaps ? left(symbol.gaps) : ""].filter(Boolean).join(", ");
    item.tooltip = symbol.reason ?? LOOKS[symbol.state].label;
    item.contextValue = `symbol.${context(symbol.state)}`;
    item.iconPath = icon(symbol.state);
    item.command = opening(file.uri, symbol.line);
    return item;
  }

  /** Convert one file with a preview, or several at once. */
  async convert(node: Node, selected: readonly Node[] | undefined): Promise<void> {
    const files = filesOf(selected?.length ? selected : [node]);
    const [only] = files;
    if (files.length === 1 && only) {
      await vscode.commands.executeCommand("t2j.previewConversion", vscode.Uri.parse(only.uri));
    } else {
      await this.convertMany(files);
    }
  }

  /** Convert every file that has no conversion yet, after asking. */
  async convertAll(): Promise<void> {
    await this.fetch(false);
    const files = (this.workspace?.files ?? []).filter((file) => file.state === "not started");
    if (!files.length) {
      void vscode.window.showInformationMessage("Every PyTorch file here has a conversion.");
      return;
    }
    const question = `Convert ${count(files.length)}? Each conversion goes into a new file beside its source.`;
    if ((await vscode.window.showInformationMessage(question, { modal: true }, "Convert")) === "Convert") {
      await this.convertMany(files);
    }
  }

  private async convertMany(files: FileState[]): Promise<void> {
    const uris = files.map((file) => file.uri);
    const done = await this.server.command<BulkApplied>("t2j.convertFiles", uris, true);
    const reasons = done.skipped.slice(0, 3).map((one) => `${vscode.workspace.asRelativePath(one.uri)}: ${one.reason}`);
    const skipped = done.skipped.length ? ` Skipped ${done.skipped.length}: ${reasons.join("; ")}` : "";
    void vscode.window.showInformationMessage(`Converted ${count(done.converted.length)}.${skipped}`);
    this.consent.offer();
    await this.refresh();
  }

  /** Check files or symbols. */
  async check(node: Node, selected: readonly Node[] | undefined): Promise<void> {
    if (!(await this.consent.ensure())) {
      return;
    }
    const wanted = (selected?.length ? selected : [node]).map((one) => {
      if (one.kind === "group") {
        return undefined;
      }
      return one.kind === "file" ? this.server.check(one.file.uri) : this.server.check(one.file.uri, one.symbol.name);
    });
    await Promise.all(wanted);
  }

  dispose(): void {
    for (const one of this.disposables) {
      one.dispose();
    }
  }
}

function filesOf(nodes: readonly Node[]): FileState[] {
  const found = new Map<string, FileState>();
  for (const node of nodes) {
    for (const file of node.kind === "group" ? node.files : [node.file]) {
      found.set(file.uri, file);
    }
  }
  return [...found.values()];
}

function context(state: Migration): string {
  return state.replace(" ", "-");
}

function icon(state: Migration): vscode.ThemeIcon {
  const { icon: id, color } = LOOKS[state];
  return new vscode.ThemeIcon(id, color ? new vscode.ThemeColor(color) : undefined);
}

function opening(uri: string, line: number): vscode.Command {
  const selection = new vscode.Range(line, 0, line, 0);
  return { command: "vscode.open", title: "Open", arguments: [vscode.Uri.parse(uri), { selection, preview: true }] };
}

function left(gaps: number): string {
  return `${gaps} ${gaps === 1 ? "place" : "places"} left as PyTorch`;
}

function count(files: number): string {
  return files === 1 ? "1 file" : `${files} files`;
}
