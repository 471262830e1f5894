"""One place, one finding: what a translation says when several of its passes met the same code."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from t2j_lsp.contract import Finding, Severity, Span


def once(findings: Iterable[Finding], refused: Collection[Span]) -> tuple[Finding, ...]:
    """The findings in the order of the source, without those that repeat another one; ``refused`` are calls.

    A note on what then stayed as it was is none any more. A refused call among the arguments of a refused call
    (``torch.save(model.state_dict(), path)``) goes with it: whoever mends the outer one writes both anew.
    """
    ordered = sorted(findings, key=lambda f: (f.span.line, f.span.column, -f.span.end_line, -f.span.end_column))
    gaps = {f.span for f in ordered if f.severity is Severity.GAP}
    kept = []
    last = Span(0, 0, 0, 0)
    for finding in ordered:
        span = finding.span
        if finding.severity is Severity.NOTE and span in gaps:
            continue
        if span in refused and finding.severity is Severity.GAP:
            if span != last and (span.end_line, span.end_column) <= (last.end_line, last.end_column):
                continue
            last = span
        kept.append(finding)
    return tuple(sorted(kept, key=lambda f: f.span))
