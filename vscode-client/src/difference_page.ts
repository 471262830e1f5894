/** The page of "Explain Difference": values of both sides statement by statement, as text and as a plot. No editor here. */

import type { Difference, FixedBug, Histogram, Step, Value } from "./protocol";

/** The link that opens a line of a file, as the page's host understands it. */
export type LineLink = (uri: string, line: number) => string;

const WIDTH = 320;
const HEIGHT = 90;

/** The page as HTML. It holds no script, and nothing is fetched for it. */
export function page(difference: Difference, link: LineLink, nonce: string): string {
  const head = `${escapeHtml(difference.name)}: ${escapeHtml(difference.verdict)}`;
  const parts = difference.steps.filter((step) => !step.agree).length;
  const agreeing = difference.steps.length - parts;
  const where = difference.first === null ? "" : ` The first that parts is marked.`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'nonce-${nonce}';">
<title>${head}</title>
<style nonce="${nonce}">${STYLE}</style>
</head>
<body>
<h1>${head}</h1>
<p>${escapeHtml(difference.what)}</p>
${difference.cause ? `<p class="cause">Likely cause: ${escapeHtml(difference.cause)}</p>` : ""}
<p class="quiet">${agreeing} of ${difference.steps.length} statements agree, on ${escapeHtml(difference.device || "cpu")}, in ${escapeHtml(difference.precision ?? "float64")}.${where}</p>
${difference.similar.length ? `<details class="fixes"><summary>${counted(difference.similar.length)}</summary>\n${fixes(difference.similar)}</details>` : ""}
${difference.steps.map((step, index) => section(step, index === difference.first, link)).join("\n")}
</body>
</html>`;
}

/** The page of fixed bugs alone. */
export function fixesPage(listed: FixedBug[], nonce: string): string {
  const head = counted(listed.length);
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'nonce-${nonce}';">
<title>${head}</title>
<style nonce="${nonce}">${STYLE}</style>
</head>
<body>
<h1>${head}</h1>
${fixes(listed)}
</body>
</html>`;
}

function counted(count: number): string {
  return count === 1 ? "1 mistake like this was fixed" : `${count} mistakes like this were fixed`;
}

/** Fixed bugs: what was wrong in words, the faulty and the fixed code side by side, and what it said. */
function fixes(listed: FixedBug[]): string {
  return listed.map(fix).join("\n");
}

function fix(one: FixedBug): string {
  const where = one.yours ? "" : ` In: ${one.program}`;
  return `<section class="fix">
<h3>${escapeHtml(one.title)}</h3>
<p>${escapeHtml(one.Fix_info)}</p>
<table class="sides">
<tr><th>faulty</th><th>fixed</th></tr>
<tr><td><pre><code>${escapeHtml(dedented(one.Error_Code))}</code></pre></td><td><pre><code>${escapeHtml(dedented(one.Fixed_Code))}</code></pre></td></tr>
</table>
<p class="quiet">It said: ${escapeHtml((one.Error.split("\n")[0] || "nothing").replace(/\.$/, ""))}.${escapeHtml(where)}</p>
</section>`;
}

/** Code without the margin that all of its lines have. */
function dedented(code: string): string {
  const lines = code.replace(/\s+$/, "").split("\n");
  const margins = lines.filter((line) => line.trim()).map((line) => line.length - line.trimStart().length);
  const margin = Math.min(...margins);
  return margins.length ? lines.map((line) => line.slice(margin)).join("\n") : code;
}

function section(step: Step, first: boolean, link: LineLink): string {
  const kind = step.agree ? "agree" : "part";
  const open = first || (!step.agree && step.histogram) ? " open" : "";
  const error = !step.max_rel_err ? "" : `, worst error ${number(step.max_rel_err)} of scale`;
  const mark = step.agree ? "✓" : "≠";
  return `<details class="${kind}${first ? " first" : ""}"${open}>
<summary><span class="mark">${mark}</span> <code>${escapeHtml(step.target)}</code><span class="quiet">${escapeHtml(error)}</span></summary>
<table>
<tr><th></th><th>PyTorch</th><th>JAX</th></tr>
<tr><th>statement</th>${cells(step, (value) => statement(value, link))}</tr>
<tr><th>shape</th>${cells(step, (value) => `(${value.shape.join(", ")}) ${escapeHtml(value.dtype)}`)}</tr>
<tr><th>range</th>${cells(step, (value) => `${number(value.min)} … ${number(value.max)}`)}</tr>
<tr><th>mean ± std</th>${cells(step, (value) => `${number(value.mean)} ± ${number(value.std)}`)}</tr>
<tr><th>values</th>${cells(step, (value) => `<code>${value.values.map(number).join(" ")}${value.values.length ? " …" : ""}</code>`)}</tr>
${step.worst ? farthest(step.worst) : ""}
</table>
${step.histogram ? plot(step.histogram) : ""}
</details>`;
}

function statement(value: Value, link: LineLink): string {
  const code = `<code>${escapeHtml(value.text.trim())}</code>`;
  return value.uri ? `<a href="${escapeHtml(link(value.uri, value.line))}">${value.line + 1}</a> ${code}` : code;
}

function farthest(worst: NonNullable<Step["worst"]>): string {
  const at = worst.index.length ? ` at [${worst.index.join(", ")}]` : "";
  return `<tr><th>farthest apart${at}</th><td>${number(worst.torch)}</td><td>${number(worst.jax)}</td></tr>`;
}

function cells(step: Step, show: (value: Value) => string): string {
  const cell = (value: Value | null) => `<td>${value ? show(value) : "–"}</td>`;
  return cell(step.torch) + cell(step.jax);
}

/** Both sides' values as bars behind each other, on common bins. */
export function plot(histogram: Histogram): string {
  const bins = Math.min(histogram.torch.length, histogram.jax.length);
  const top = Math.max(1, ...histogram.torch, ...histogram.jax);
  const width = WIDTH / Math.max(1, bins);
  const bars = (counts: number[], side: string) =>
    counts
      .slice(0, bins)
      .map((count, bin) => {
        const height = (count / top) * HEIGHT;
        const x = (bin * width).toFixed(2);
        return `<rect class="${side}" x="${x}" y="${(HEIGHT - height).toFixed(2)}" width="${width.toFixed(2)}" height="${height.toFixed(2)}"/>`;
      })
      .join("");
  const low = number(histogram.edges[0] ?? null);
  const high = number(histogram.edges.at(-1) ?? null);
  return `<figure>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT + 16}" role="img" aria-label="How the values of both sides are spread">
${bars(histogram.torch, "torch")}${bars(histogram.jax, "jax")}
<line x1="0" y1="${HEIGHT}" x2="${WIDTH}" y2="${HEIGHT}"/>
<text x="0" y="${HEIGHT + 12}">${low}</text><text x="${WIDTH}" y="${HEIGHT + 12}" text-anchor="end">${high}</text>
</svg>
<figcaption><span class="key torch">PyTorch</span> <span class="key jax">JAX</span></figcaption>
</figure>`;
}

/** A number in few characters. */
export function number(value: number | string | null): string {
  if (typeof value === "string") {
    return escapeHtml(value);
  }
  if (value === null || value === undefined) {
    return "–";
  }
  if (Number.isInteger(value) && Math.abs(value) < 1e6) {
    return String(value);
  }
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e5) ? value.toExponential(2) : value.toPrecision(4);
}

/** Text with nothing left in it that HTML would read. */
export function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}

const STYLE = `
body { font-family: var(--vscode-font-family); font-size: var(--vscode-font-size); color: var(--vscode-foreground); padding: 0 1.5em 2em; }
h1 { font-size: 1.4em; font-weight: 600; }
code { background: none; padding: 0; white-space: pre-wrap; overflow-wrap: anywhere; font-family: var(--vscode-editor-font-family); font-size: var(--vscode-editor-font-size); }
a { color: var(--vscode-textLink-foreground); }
.quiet { color: var(--vscode-descriptionForeground); }
.cause { border-left: 3px solid var(--vscode-editorWarning-foreground); padding-left: .7em; }
h3 { font-size: 1em; font-weight: 600; margin: 0; }
.fix { border-top: 1px solid var(--vscode-panel-border, #8884); padding: .6em 0; }
table.sides tr > :first-child { width: 50%; }
pre { margin: 0; }
details { border-top: 1px solid var(--vscode-panel-border, #8884); padding: .4em 0; }
details.first { border-left: 3px solid var(--vscode-editorError-foreground); padding-left: .7em; }
summary { cursor: pointer; }
.agree .mark { color: var(--vscode-testing-iconPassed, #388a34); }
.part .mark { color: var(--vscode-editorError-foreground); }
table { border-collapse: collapse; margin: .5em 0; table-layout: fixed; width: 100%; }
tr > :first-child { width: 7em; }
th { text-align: left; font-weight: normal; color: var(--vscode-descriptionForeground); padding: .1em 1.2em .1em 0; vertical-align: top; }
td { padding: .1em 1.5em .1em 0; vertical-align: top; }
figure { margin: .5em 0; max-width: 34em; }
svg { width: 100%; }
svg line { stroke: var(--vscode-descriptionForeground); }
svg text { fill: var(--vscode-descriptionForeground); font-size: 10px; }
rect.torch, .key.torch::before { fill: var(--vscode-charts-orange, #d18616); background: var(--vscode-charts-orange, #d18616); opacity: .7; }
rect.jax { fill: none; stroke: var(--vscode-charts-blue, #1a85ff); stroke-width: 1.5; }
.key.jax::before { border: 2px solid var(--vscode-charts-blue, #1a85ff); box-sizing: border-box; }
.key { margin-right: 1.2em; }
.key::before { content: ""; display: inline-block; width: .8em; height: .8em; margin-right: .4em; }
`;
