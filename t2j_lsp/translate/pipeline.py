"""The whole way of one text: parse, facts, rewrite, imports, report."""

from __future__ import annotations

import ast
import gc
import re
import warnings
from collections import Counter
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import replace

from t2j_lsp.contract import MARK, LibrarySources, Needs, Options, Severity, SourceError, Translation
from t2j_lsp.contract.translation import InternalError
from t2j_lsp.plugins import load_rules
from t2j_lsp.symbols import kept_walks
from t2j_lsp.translate.expressions.context import Context, Edits, Plan
from t2j_lsp.translate.expressions.handlers import written_as
from t2j_lsp.translate.expressions.needs import Known, NeededNames
from t2j_lsp.translate.expressions.render import Renderer
from t2j_lsp.translate.expressions.torch_only import left_whole
from t2j_lsp.translate.inference import shared_storage
from t2j_lsp.translate.inference.call_sites import with_call_sites
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.neighbours import Neighbours
from t2j_lsp.translate.inference.rngs import plan_rngs
from t2j_lsp.translate.layout import plan as layout
from t2j_lsp.translate.layout.short import short_layers
from t2j_lsp.translate.output import class_names, live_views
from t2j_lsp.translate.output.above import keep_comments, mark_todos, report_outdated
from t2j_lsp.translate.output.along import report_files_to_convert
from t2j_lsp.translate.output.helper_module import module_beside
from t2j_lsp.translate.output.helper_place import WrittenCode
from t2j_lsp.translate.output.imports import Brought, edit_imports, loads
from t2j_lsp.translate.output.leftovers import report_leftovers
from t2j_lsp.translate.output.outcomes import Outcomes, rewrites
from t2j_lsp.translate.output.reading import report_problems
from t2j_lsp.translate.output.unread import drop_unread
from t2j_lsp.translate.output.wrap import wrap_long_lines
from t2j_lsp.translate.pure.functions import ModuleFunctions
from t2j_lsp.translate.pure.translation import of_source
from t2j_lsp.translate.rewrites import episodes, own_optimizers, transformed_images
from t2j_lsp.translate.rewrites.episode_text import with_recorded_episodes
from t2j_lsp.translate.rewrites.otherwise import texts_put_otherwise, what_is_left
from t2j_lsp.translate.rule.names import may_use_torch
from t2j_lsp.translate.scan import plan as scan
from t2j_lsp.translate.source.given import NOTHING_GIVEN, Given
from t2j_lsp.translate.source.helpers import helper_names, written_helpers
from t2j_lsp.translate.source.moved_imports import moved_prefixes, moved_text, reads_moved, uses_any
from t2j_lsp.translate.source.positions import first_line
from t2j_lsp.translate.source.syntax import parse
from t2j_lsp.translate.source.text import Edit, Source
from t2j_lsp.translate.source.width import MIN_WIDTH
from t2j_lsp.translate.statements import copied_forward, numpy_masks
from t2j_lsp.translate.statements.dispatch import Statements
from t2j_lsp.translate.statements.made_rngs import make_fixture, make_rngs
from t2j_lsp.translate.training.gate import LOSSES, TRAINING
from t2j_lsp.translate.training.plan import plan_training, refine
from t2j_lsp.translate.training.steps import input_gradients, saved_states

MOST_TEXTS = 16
"""Other texts that a text with gaps is translated as, at most: each is a whole translation."""


def translate(source: str, options: Options | None = None, project: Neighbours | None = None) -> Translation:
    """Convert PyTorch source text to Flax NNX. Pure: text to value.

    A text without torch comes back unchanged. Raises SourceError if the text isn't Python. What is inferred of other
    files is put into ``project``, for drafts of the same text.
    """
    return _quietly(source, options or Options(), None, project or Neighbours())


def draft(source: str, options: Options, lines: Container[int], project: Neighbours) -> Translation:
    """Convert the statements of the module level that begin on some lines, as `translate` would, for while it is typed.

    The rest of the text is only inferred, and the output is not read: it is no program. What ``project`` knows of other
    files from a translation or a draft before is not inferred again.
    """
    project.renew()
    return _quietly(source, options, lines, project)


def _quietly(source: str, options: Options, lines: Container[int] | None, project: Neighbours) -> Translation:
    load_rules()
    with _no_garbage(), kept_walks(), warnings.catch_warnings():
        # What the interpreter has to say of a text (invalid escapes in strings) is for its author.
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        if options.libraries is not None and lines is None:
            return _with_libraries(source, options.libraries, options, project)
        return _translated(source, options, lines, project)


def _with_libraries(source: str, libraries: LibrarySources, options: Options, project: Neighbours) -> Translation:
    """The translation of a text that imports what is converted along of libraries from where that is."""
    moves, makers = moved_prefixes(libraries.modules), libraries.by_name
    if options.resolve is not None:
        options = replace(options, resolve=reads_moved(options.resolve, moves, makers))
    parsed = Source(source)
    text = moved_text(parsed, moves, makers)
    if text is None:
        return _translated(source, options, None, project)
    return of_source(source, text, _translated(parsed.bom + text.text, options, None, project))


def _uses_libraries(source: str, options: Options) -> bool:
    """Whether a text imports what is converted along."""
    return options.libraries is not None and uses_any(source, options.libraries.modules)


_IMPORTS = re.compile(r"^[ \t]*(?:from[ \t]+(\.*)([\w.]*)[ \t]+import|import[ \t]+()([\w.]+))\b", re.MULTILINE)


def _uses_project(source: str, options: Options) -> bool:
    """Whether a text imports other files of its project, whose modules it may make or derive from."""
    if options.resolve is None:
        return False
    imported = ((a or c, b or d) for a, b, c, d in _IMPORTS.findall(source))
    return any(dots or options.resolve(0, module) is not None for dots, module in dict.fromkeys(imported))


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Trees live as long as their translation: looking for garbage among them meanwhile costs a fifth of its time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


_MENDED = (Severity.GAP, Severity.NOTE)


def _translated(
    source: str,
    options: Options,
    lines: Container[int] | None,
    project: Neighbours,
    given: Given = NOTHING_GIVEN,
    tried: set[str] | None = None,
) -> Translation:
    """The translation of a text, which may be put otherwise as none of those that were ``tried`` is."""
    try:
        if not (may_use_torch(source) or _uses_libraries(source, options) or _uses_project(source, options)):
            parse(source.removeprefix("\ufeff"))
            return Translation(source=source, code=source)
        if options.target == "jax":
            return _as_functions(source, options, project)
        parsed = Source(source, lines=lines)
        if given is not NOTHING_GIVEN:
            parsed.given = given
            parsed.written = [s for s in parsed.written if first_line(s) not in given.kept]
        inference = Inference(parsed, options.resolve, project=project if options.resolve is not None else None)
        if not inference.imports_torch and not inference.touches_torch() and not _uses_libraries(source, options):
            return Translation(source=source, code=source)
        if inference.state.asks_call_sites:
            inference = with_call_sites(inference)
        if inference.holds_tests or inference.has(LOSSES):
            inference = refine(inference)
        if lines is None and given is NOTHING_GIVEN and inference.has(episodes.NEEDS):
            recorded = _with_recorded_episodes(inference, options, project)
            if recorded is not None:
                return recorded
        if lines is None and inference.has(own_optimizers.NEEDS):
            own = own_optimizers.with_optimizer_classes_as_functions(inference)
            if own is not None:
                other = _translated(inference.source.bom + own.text, options, None, project, given, tried)
                return of_source(source, own, other)
        known = Known(dict(given.renames))
        while (translation := _convert(inference, options, known, lines)) is None:
            pass  # known grew by a name or a function of the file, and there are only so many of them
        whole = lines is None and given is NOTHING_GIVEN and any(f.severity in _MENDED for f in translation.findings)
        if whole and what_is_left(translation):
            return _put_otherwise(inference, translation, options, project, {source} if tried is None else tried)
        return translation
    except RecursionError:
        raise SourceError("the code is nested too deeply") from None


def _with_recorded_episodes(inference: Inference, options: Options, project: Neighbours) -> Translation | None:
    """The translation of a text in which the episodes of a policy gradient are recorded, if nothing of it is a gap."""
    if MARK in inference.source.text:
        return None
    written = with_recorded_episodes(Context.of(inference, options, Plan(), set()))
    if written is None:
        return None
    text, given = written
    other = _translated(inference.source.bom + text.text, options, None, project, given)
    return of_source(inference.source.bom + inference.source.text, text, other) if not other.gaps else None


def _put_otherwise(
    inference: Inference, translation: Translation, options: Options, project: Neighbours, tried: set[str]
) -> Translation:
    """The translation with fewest gaps: of the text, or of one in which its statements are put otherwise.

    Of two without gaps the one is better whose steps are compiled, which those that select by values aren't.

    Ways that are taken in several orders lead to one text, which is translated once. All of them together are tried
    first, then fewer, up to ``MOST_TEXTS``.
    """
    if MARK in inference.source.text:
        return translation
    best = translation
    for text in texts_put_otherwise(inference, what_is_left(translation)):
        put = inference.source.bom + text.text
        if put in tried:
            continue
        if len(tried) > MOST_TEXTS:
            break
        tried.add(put)
        other = _translated(put, options, None, project, tried=tried)
        if (len(other.gaps), len(what_is_left(other))) < (len(best.gaps), len(what_is_left(best))):
            best = of_source(translation.source, text, other)
        if not what_is_left(best):
            break
    return best


def _as_functions(source: str, options: Options, project: Neighbours) -> Translation:
    """The translation for the target ``jax``: of the text in which modules are functions."""
    parsed = Source(source)
    inference = Inference(parsed, options.resolve, project=project if options.resolve is not None else None)
    if not inference.imports_torch and not inference.touches_torch():
        return Translation(source=source, code=source)
    functions = ModuleFunctions(inference).text()
    translation = _translated(
        parsed.bom + functions.text, replace(options, target="nnx"), None, project, functions.given
    )
    return of_source(source, functions, translation)


def _convert(inference: Inference, options: Options, known: Known, lines: Container[int] | None) -> Translation | None:
    """The translation, as far as ``known`` goes; None where ``known`` grew meanwhile."""
    before = known.size
    context = _planned(inference, options, known)
    if known.size > before:
        return None
    needs = NeededNames(helper_names(), known, set(inference.source.given.helpers))
    needs.claim_top_level(context)
    before = known.size
    renderer = _written(context, needs)
    if known.size > before:
        return None
    output, read = _read_names(context)
    if not inference.torch_names.isdisjoint(read):
        report_leftovers(context, needs.claimed)
    if options.alone:
        report_files_to_convert(context)
    if inference.has(class_names.NEEDS):
        class_names.report_class_names(context)
    if inference.has(live_views.NEEDS):
        live_views.report_live_views(context)
    if context.report.todos:
        mark_todos(context)
    if "#" in context.source.text:
        keep_comments(context.edits)
    own = frozenset(context.edits.made)
    brought = edit_imports(context, read, needs, output if lines is None else None)
    if known.size > before:
        return None
    return _proved(context, renderer, brought, own, whole=lines is None)


def _planned(inference: Inference, options: Options, known: Known) -> Context:
    """What layout, training and the other planners decide, before anything is written."""
    for info in inference.functions.values():
        if info.node in known.drawing:
            info.draws, info.seeds = True, False
    if inference.draws:
        plan_rngs(inference, known.untouched)
    plan = Plan(factory_dicts=inference.factory_dicts, left=known.left)
    if inference.has(layout.NEEDS):
        plan.layout = layout.plan_layout(inference, options, class_names.asked_by_full_names(inference))
        for node, text in plan.layout.texts.items():
            plan.expression_handlers[node] = written_as(text)
        if options.init == "torch":
            plan.short_layers = short_layers(inference, plan.layout)
    if inference.has(shared_storage.NEEDS):
        plan.writes = shared_storage.shared_writes(inference)
    context = Context.of(inference, options, plan, known.drawing)
    if inference.holds_tests and inference.assumed or inference.has(TRAINING):
        plan_training(context)
    stay = [
        info for info in inference.classes.values() if info.node in plan.kept or left_whole(context, info) is not None
    ]
    plan.untouched.update(method.node for info in stay for method in info.methods.values())
    plan.untouched.update(node for node in plan.kept if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    asking = {info.node for info in inference.functions.values() if info.takes_rngs} & plan.untouched
    if not asking <= known.untouched:
        known.untouched |= asking
        return context
    if inference.has(input_gradients.NEEDS):
        input_gradients.plan_input_gradients(context)
    if inference.has(saved_states.NEEDS) and not inference.holds_tests:
        saved_states.plan_saved_states(context)
    if inference.has(transformed_images.NEEDS):
        transformed_images.plan_transformed_images(context)
    if inference.has(copied_forward.NEEDS):
        copied_forward.plan_copied_forwards(context)
    if inference.has(numpy_masks.NEEDS):
        numpy_masks.plan_numpy_masks(context)
    if options.scan and inference.has(scan.NEEDS):
        scan.plan_scans(context)
    plan.freeze()
    return context


def _written(context: Context, needs: NeededNames) -> Renderer:
    """The edits of every statement, and of what the whole file needs: its Rngs."""
    source, renderer = context.source, Renderer(context, needs)
    helpers = written_helpers(source) if context.inference.has_jax else []
    Statements(context, renderer).block(node for node in source.written if node not in helpers)
    if context.plan.writes.snapshots:
        report_outdated(context)
    if context.rngs.module is not None:
        make_rngs(context, context.rngs.module, renderer)
    if context.rngs.asking:
        make_fixture(context, renderer)
    return renderer


def _proved(
    context: Context, renderer: Renderer, brought: Brought, own: frozenset[Edit], *, whole: bool
) -> Translation:
    """The text that the edits make, read once more if it is that of a whole file, with what became of each place.

    ``own`` are the edits of statements, without those of imports and helpers.
    """
    parsed, needs = context.source, renderer.needs
    code, source_map = parsed.apply(context.edits.made)
    if code == parsed.bom + parsed.text:
        source_map = []
    tree = _check(code)
    written = {needs.renames.get(helper.name, helper.name) for helper in brought.helpers}
    if whole and source_map and report_problems(context, tree, source_map, written):
        mark_todos(context)
        code, source_map = parsed.apply(context.edits.made)
        tree = _check(code)
    outcomes = Outcomes(context, own, tree)
    count, moved = len(source_map), [*source_map, *outcomes.entries]
    if any(len(line) > MIN_WIDTH for line in code.split("\n")):
        code, moved = wrap_long_lines(code, parsed.given.original or parsed.text, tree, moved, parsed.newline)
    findings = context.report.once()
    forms, became = outcomes.read(code, moved[:count], moved[count:], findings, rewrites(context, renderer))
    return Translation(
        source=parsed.bom + parsed.text,
        code=code,
        findings=findings,
        source_map=tuple(moved[:count]),
        needs=_contract_needs(brought, needs),
        converted=context.report.converted,
        edits=context.edits.effective(own),
        rewrites=forms,
        outcomes=became,
        helper_source=module_beside(brought.helpers, parsed) if brought.apart and brought.helpers else None,
    )


def _contract_needs(brought: Brought, needs: NeededNames) -> Needs:
    written = tuple((needs.renames.get(h.name, h.name), h.name) for h in brought.helpers)
    return Needs(tuple(brought.lines), tuple(h.name for h in brought.helpers), written)


def _code_of(edits: Edits) -> WrittenCode:
    code, source_map = edits.source.apply(edits.made)
    return WrittenCode(_check(code), source_map)


def _check(code: str) -> ast.Module:
    try:
        return ast.parse(code.lstrip("\ufeff"))
    except SyntaxError as error:
        raise InternalError(f"the conversion does not parse (line {error.lineno}: {error.msg})", code) from error


def _read_names(context: Context) -> tuple[WrittenCode, Counter[str]]:
    """The tree of the output and what it reads, after what nothing in it reads was removed."""
    output = _code_of(context.edits)
    read = loads(output.tree)
    if (context.edits.removable or context.edits.removable_lines) and drop_unread(context, output.tree, read):
        output = _code_of(context.edits)
        read = loads(output.tree)
    return output, read
