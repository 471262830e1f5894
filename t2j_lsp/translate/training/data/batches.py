"""Batches: where a loop takes one from a PyTorch loader, it becomes JAX arrays."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.inference.forward_pass import is_known
from t2j_lsp.translate.rule.definitions import Instance
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, ListOf, MixedDict, Object, Qual, Tensor, Tuple
from t2j_lsp.translate.rule.pieces import ATOM, Piece
from t2j_lsp.translate.training.program.dict_order import DictOrder, shown_dicts
from t2j_lsp.translate.training.program.kept_values import as_arrays, last_given, makes_arrays, makes_numpy
from t2j_lsp.translate.training.program.objects import Objects

from .batch_loops import (
    batch_targets,
    goes_over_dict,
    hides_items,
    is_loader,
    is_object,
    is_of_pipeline,
    is_walked,
    loader_of,
    names_in,
    zipped,
)
from .batch_uses import BatchUses
from .device_moves import DeviceMoves
from .padded_ids import PaddedIds
from .sample_parts import TEXTS, SampleParts, is_mixed

OBJECTS = "The batches of this loader are objects, whose tensors stay PyTorch's: have collate_fn give a dict of them."


class Batches:
    """Puts handlers on the loops that iterate a loader: ``x.to(device)`` becomes ``jnp.asarray(x)``."""

    def __init__(self, context: Context, objects: Objects) -> None:
        self.ctx = context
        self.objects = objects
        self.moves = DeviceMoves(context)
        self.samples = SampleParts(context.inference)
        self.inserted: dict[ast.stmt, list[tuple[str, bool]]] = {}
        """Batches to convert in front of the first statement of a loop: the name, and whether it is one tensor."""
        self.handed: Callable[[ast.Name], bool] = lambda target: False
        """Whether compiled functions alone read a batch: once steps are planned."""
        self.unpacked: Callable[[ast.Assign], bool] = lambda statement: False
        """Whether they alone read what a statement takes out of one: ``x, y = batch``."""
        self.part: Callable[[ast.Call], bool] = lambda move: False
        """Whether they alone read what a part of one is assigned to: ``x = batch["x"].to(device)``."""
        self.targets: dict[tuple[ast.stmt, str], ast.Name] = {}
        self.mixed: set[tuple[ast.stmt, str]] = set()
        """Those that may be or hold texts: by what samples hold, or since only some items are moved to a device."""
        self.ordered: set[tuple[ast.stmt, str]] = set()
        """Those that are dicts, in a file that reads the order of such."""
        self.padded: set[tuple[ast.stmt, str]] = set()
        """Those that are ids of bags, which are filled up to few lengths."""

    def plan(self) -> None:
        for node in self.ctx.source.nodes:
            if isinstance(node, ast.For) and self.iterates_batches(node):
                if any(is_object(node, target.id) for target in self._targets(node)):
                    self._refuse_objects(loader_of(node.iter))
                else:
                    self._loop(node)
            elif isinstance(node, ast.comprehension):
                self._comprehension(node)
            elif isinstance(node, ast.Call):
                self._collected(node)
            elif isinstance(node, ast.Subscript):
                self._item(node)
            elif isinstance(node, ast.Attribute):
                self._part(node)

    def _refuse_objects(self, loader: ast.expr) -> None:
        """A loader whose batches are objects: their tensors stay PyTorch's, which JAX takes none of."""

        def handler(renderer: ExpressionRenderer) -> Piece:
            self.ctx.report.gap(loader, "torch.utils.data", "refused", OBJECTS)
            return Piece(self.ctx.source.segment(loader))

        self.ctx.plan.on_expression(loader, handler)

    def iterates_batches(self, loop: ast.For) -> bool:
        """Whether a loop's iterable is a loader, or something unknown whose items are used as batches."""
        fact = self.ctx.fact(loader_of(loop.iter))
        if is_loader(fact):
            return True
        if goes_over_dict(loop, self.ctx.inference.facts):
            return False
        if self._of_zipped(loop):
            return True
        targets = batch_targets(loop)
        unknown = not is_known(fact) or hides_items(fact)
        used = unknown and any(t in self.ctx.inference.assumed for t in targets)
        return used or self._may_be_loader(loader_of(loop.iter))

    def _of_zipped(self, loop: ast.For) -> list[list[ast.Name]]:
        """The targets of a loop over several iterables that hold batches of those of them that are loaders."""
        targets = ((names_in(target), self.ctx.fact(iterable)) for target, iterable in zipped(loop))
        assumed = self.ctx.inference.assumed
        return [
            names
            for names, fact in targets
            if is_loader(fact) or not is_known(fact) and any(n in assumed for n in names)
        ]

    def _targets(self, loop: ast.For) -> list[ast.Name]:
        """The targets of a loop that hold batches."""
        return [n for names in self._of_zipped(loop) for n in names] or batch_targets(loop)

    def _may_be_loader(self, node: ast.expr) -> bool:
        """Whether nothing is known of an iterable but that it is a loader in one of its uses, and something else in
        another: a function's parameter, of which one call gives a loader and one an object that wraps it."""
        if not isinstance(node, ast.Name) or is_known(self.ctx.fact(node)):
            return False
        values = [value for value, _ in self.objects.sources(node, self.objects.scope(node))]
        return any(is_loader(self.ctx.fact(value)) for value in values if value is not None)

    def _loop(self, loop: ast.For) -> None:
        perhaps = self._may_be_loader(loader_of(loop.iter))
        unclear = self._unclear(loop)
        targets = [
            t
            for t in self._targets(loop)
            if isinstance(fact := self.ctx.fact(t), Tensor | ListOf | Tuple | MixedDict)
            and fact != TEXTS
            or not is_known(fact)
            and (perhaps or t.id in unclear)
        ]
        waiting = {
            t.id: isinstance(self.ctx.fact(t), Tensor) or t.id in unclear
            for t in targets
            if self._is_read(loop, t.id) and not self.moves.are_made(loop, t.id)
        }
        if not waiting:
            return
        padded = PaddedIds(self.ctx)
        ids = {t.id for t in targets if waiting.get(t.id) and padded.are_ids(t)}
        parts: dict[str, list[ast.Call]] = {}
        for statement in loop.body:
            used = self._names(statement) & waiting.keys()
            if not used:
                continue
            moves = self.moves.of(statement, used)
            if self._is_jax(statement) or self._unpacked(statement, used):
                moves = []
            if moves is None:
                break
            if moves and all(isinstance(self.moves.receiver(move), ast.Subscript) for move in moves):
                for name in used:
                    parts.setdefault(name, []).extend(moves)
                continue
            self._on_moves(moves, ids)
            for name in used:
                waiting.pop(name)
        for name, moves in parts.items():
            if self.moves.are_all_that(loop, name, moves):
                self._on_moves(moves)
                waiting.pop(name)
        order = DictOrder(self.ctx)
        ordered = {t.id for t in targets if order.is_batch(t) and order.is_read}
        self.ordered |= {(loop.body[0], name) for name in ordered}
        for node in shown_dicts(self.ctx.source, loop, ordered & waiting.keys()):
            self.ctx.plan.on_expression(node, lambda renderer, node=node: Piece(f"dict({node.id})"))  # type: ignore[misc]
        self.mixed |= {(loop.body[0], name) for name in waiting if self.moves.of_items(loop, name)}
        self.mixed |= {(loop.body[0], t.id) for t in targets if is_mixed(self.ctx.fact(t))}
        self.mixed |= {(loop.body[0], name) for name in unclear}
        self.padded |= {(loop.body[0], name) for name in ids}
        if waiting:
            self._insert(loop, waiting)

    def _unclear(self, loop: ast.For) -> set[str]:
        """The variables of a loop that are texts or tensors, as far as is known."""
        parts = self._of_zipped(loop) or [batch_targets(loop)]
        several = [part for part in parts if len(part) > 1]
        names = {t.id for part in several for index, t in enumerate(part) if self.samples.part(index) == UNKNOWN}
        return {name for name in names if not BatchUses(self.ctx.inference).is_tensor(loop, name)}

    def _is_read(self, loop: ast.For, name: str) -> bool:
        """Whether a loop's variable is read where it means something: ``_`` of ``for images, _`` need be no array."""
        around = symbols.nearest(ast.FunctionDef, loop, self.ctx.source.parents) or self.ctx.source.tree
        return any(
            isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in symbols.walk(around)
        )

    def _comprehension(self, node: ast.comprehension) -> None:
        """``[model(x) for x, _ in loader]``: what it goes over are batches of arrays."""
        around = self.ctx.source.parents[node]
        if not makes_arrays(self.ctx, getattr(around, "elt", around)):
            for loader in [iterable for _, iterable in zipped(node)] or [loader_of(node.iter)]:
                self._walk(loader)

    def _collected(self, node: ast.Call) -> None:
        """``list(loader)``, and ``zip(*loader)``, where no loop takes the batches."""
        match node:
            case ast.Call(func=ast.Name(id="list" | "tuple"), args=[loader], keywords=[]):
                if self._gives_batches(loader) and not is_walked(node, self.ctx.source.parents):
                    self._take(node, self.ctx.source.segment(node), loader)
            case ast.Call(args=[ast.Starred(value=loader)]) if self._gives_batches(loader):
                self._take(loader, f"list({self.ctx.source.segment(loader)})", loader)
            case ast.Call(func=func, args=given) if self._goes_over(func) and not is_walked(
                node, self.ctx.source.parents
            ):
                for loader in given:
                    self._walk(loader)

    def _goes_over(self, called: ast.expr) -> bool:
        """Whether a function gives the items of what it is given, or picks among them: ``enumerate(loader)``."""
        fact = self.ctx.fact(called)
        if isinstance(fact, Qual):
            return fact.name.startswith("itertools.")
        return isinstance(called, ast.Name) and called.id in ("enumerate", "zip", "reversed", "max", "min", "sorted")

    def _take(self, node: ast.expr, batches: str, loader: ast.expr) -> None:
        """Have a list of all batches stand for an expression, as arrays."""
        parent = self.ctx.source.parents.get(node)
        if parent is not None and not makes_arrays(self.ctx, parent):
            report, mixed = self.ctx.report, self._may_be_mixed(loader)
            self.ctx.plan.on_expression(node, lambda renderer: as_arrays(report, renderer, batches, False, mixed=mixed))

    def _gives_batches(self, loader: ast.expr) -> bool:
        """Whether JAX code that goes over a value gets batches, or items of a data set, of PyTorch's tensors."""
        if not isinstance(loader, ast.Name | ast.Attribute) or self.ctx.plan.keeps(loader, self.ctx.source.parents):
            return False
        return is_loader(self.ctx.fact(loader)) or self._is_dataset(loader) or self._may_be_loader(loader)

    def _may_be_mixed(self, loader: ast.expr) -> bool:
        """Whether what a value gives may hold texts, or images that a data set has beside its tensors."""
        return self.samples.may_hold_texts or self._is_dataset(loader)

    def _walk(self, loader: ast.expr) -> None:
        """Have what goes over a loader get batches of arrays."""
        if not self._gives_batches(loader):
            return
        text, report = self.ctx.source.segment(loader), self.ctx.report
        call = self.ctx.source.parents.get(loader)
        alone = isinstance(call, ast.Call) and call.args == [loader] and not call.keywords

        def handler(renderer: ExpressionRenderer) -> Piece:
            mixed = self._may_be_mixed(loader)
            walk = f"{as_arrays(report, renderer, 'batch', False, mixed=mixed).text} for batch in {text}"
            return Piece(walk if alone else f"({walk})", ATOM)

        self.ctx.plan.on_expression(loader, handler)

    def _item(self, node: ast.Subscript) -> None:
        """``x, y = dataset[0]``, and ``loader.dataset[0]["image"]``, of which only that item becomes an array."""
        if not self._is_dataset(node.value) or isinstance(node.slice, ast.Slice):
            return
        whole: ast.expr = node
        while isinstance(around := self.ctx.source.parents.get(whole), ast.Subscript) and around.value is whole:
            if not isinstance(around.slice, ast.Constant):
                break
            whole = around
        self._read(whole, whole is not node, node.slice)

    def _part(self, node: ast.Attribute) -> None:
        """``dataset.tensors[0]`` and the tensors that a data set of the file, or ``MNIST(...)``, holds."""
        owner = self.ctx.fact(node.value)
        if not self._is_dataset(node.value) and not (isinstance(owner, Object) and owner.kind == "image dataset"):
            return
        around = self.ctx.source.parents.get(node)
        if node.attr == "tensors" and isinstance(around, ast.Subscript) and isinstance(around.slice, ast.Constant):
            self._read(around, True)
        elif (
            node.attr == "tensors" or isinstance(self.ctx.fact(node), Tensor) or self._becomes_tensor(node.attr, owner)
        ):
            self._read(node, node.attr != "tensors")

    def _becomes_tensor(self, name: str, owner: Fact) -> bool:
        """Whether an object's constructor gives an attribute a tensor last: ``self.xs = torch.stack(self.xs)``."""
        value = last_given(owner.cls.info, name) if isinstance(owner, Instance) else None
        return value is not None and isinstance(self.ctx.fact(value), Tensor)

    def _read(self, node: ast.expr, one: bool, index: ast.expr | None = None) -> None:
        """What JAX code reads of a data set becomes ``one`` array, or as many as it has tensors.

        ``index``: which item is asked for, what JAX code computes.
        """
        parent = self.ctx.source.parents.get(node)
        if not isinstance(getattr(node, "ctx", None), ast.Load) or self.ctx.plan.keeps(node, self.ctx.source.parents):
            return
        if makes_arrays(self.ctx, parent) or isinstance(parent, ast.Call) and parent.func is node:
            return
        if isinstance(parent, ast.Attribute) and parent.attr in ("shape", "ndim"):
            return
        source, report = self.ctx.source, self.ctx.report
        mixed = not one and self.samples.may_hold_texts

        def handler(renderer: ExpressionRenderer) -> Piece:
            text = source.segment(node)
            if index is not None:
                start, (at, end) = source.span(node)[0], source.span(index)
                text = f"{text[: at - start]}{renderer.argument(index).text}{text[end - start :]}"
            return as_arrays(report, renderer, text, one, mixed=mixed)

        self.ctx.plan.on_expression(node, handler)

    def _is_dataset(self, node: ast.expr) -> bool:
        """Whether indexing a value gives an item of a torch data set: of that of a loader, too."""
        if isinstance(node, ast.Attribute) and node.attr == "dataset":
            return is_loader(self.ctx.fact(node.value))
        return _is_dataset(self.ctx.fact(node))

    def _is_jax(self, statement: ast.stmt) -> bool:
        """Whether a statement makes arrays of the batch already, in a file that was converted before."""
        calls = [n for n in symbols.walk(statement) if isinstance(n, ast.Call)]
        return isinstance(statement, ast.Assign) and any(
            makes_arrays(self.ctx, n) or makes_numpy(self.ctx, n) for n in calls
        )

    def _names(self, node: ast.AST) -> set[str]:
        return {n.id for n in symbols.walk(node) if isinstance(n, ast.Name)}

    # --- x = x.to(device) -----------------------------------------------------------------------------------------

    def _on_moves(self, moves: list[ast.Call], ids: Collection[str] = ()) -> None:
        for move in moves:
            if (test := self.moves.asked(move)) is not None:
                held = self.ctx.source.segment(self.moves.receiver(move))
                self.ctx.plan.on_expression(test, lambda renderer, held=held: Piece(f'hasattr({held}, "shape")', ATOM))  # type: ignore[misc]
            self.ctx.plan.on_expression(move, lambda renderer, move=move: self._asarray(renderer, move, ids))  # type: ignore[misc]

    def _asarray(self, renderer: ExpressionRenderer, node: ast.Call, ids: Collection[str]) -> Piece:
        assert isinstance(node.func, ast.Attribute)
        receiver = self.ctx.source.segment(node.func.value)
        dtype = next((k.value for k in node.keywords if k.arg == "dtype"), None)
        for given in node.args:
            fact = self.ctx.fact(given)
            if isinstance(fact, Object) and fact.kind == "dtype" or _is_dtype(renderer, given):
                dtype = given
        self.ctx.report.count_converted()
        moved = node.func.value
        handed = self.handed(moved) if isinstance(moved, ast.Name) else self.part(node)
        if receiver in ids and dtype is None:
            return Piece(self._padded(renderer, receiver, handed))
        if dtype is None and handed:
            return Piece(f"{renderer.need('np')}.asarray({receiver})")
        options = f", dtype={renderer.render(dtype).text}" if dtype is not None else ""
        return Piece(f"{renderer.need('jnp')}.asarray({receiver}{options})")

    # --- x, y = batch ---------------------------------------------------------------------------------------------

    def _unpacked(self, statement: ast.stmt, used: set[str]) -> bool:
        """``x, y = batch`` takes a list of tensors apart."""
        match statement:
            case ast.Assign(targets=[ast.Tuple() | ast.List()], value=ast.Name(id=name) as value) if used == {name}:
                report, mixed = self.ctx.report, is_mixed(self.ctx.fact(value))

                def handler(renderer: ExpressionRenderer) -> Piece:
                    library = "np" if not mixed and self.unpacked(statement) else "jnp"
                    return as_arrays(report, renderer, name, False, mixed=mixed, library=library)

                self.ctx.plan.on_expression(value, handler)
                return True
        return False

    # --- in front of the first use --------------------------------------------------------------------------------

    def _insert(self, loop: ast.For, waiting: dict[str, bool]) -> None:
        """Convert the batch in the first line of the loop."""
        self.targets |= {(loop.body[0], target.id): target for target in self._targets(loop)}
        self.inserted[loop.body[0]] = list(waiting.items())

    def lines(self, statement: ast.stmt, renderer: ExpressionRenderer) -> list[str]:
        """What goes in front of a statement."""
        batches = self.inserted.get(statement, [])
        if not batches:
            return []
        names = [name for name, _ in batches]
        arrays = [self._arrays(statement, renderer, name, one) for name, one in batches]
        return [f"{', '.join(names)} = {', '.join(arrays)}"]

    def _arrays(self, statement: ast.stmt, renderer: ExpressionRenderer, name: str, one: bool) -> str:
        ordered, mixed = (statement, name) in self.ordered, (statement, name) in self.mixed
        target = self.targets.get((statement, name))
        if (statement, name) in self.padded and not mixed:
            self.ctx.report.count_converted()
            return self._padded(renderer, name, target is not None and self.handed(target))
        handed = not mixed and not ordered and target is not None and self.handed(target)
        library = "np" if handed else "jnp"
        return as_arrays(self.ctx.report, renderer, name, one, ordered, mixed, library).text

    def _padded(self, renderer: ExpressionRenderer, name: str, handed: bool) -> str:
        """Ids that are filled up by NumPy, which takes no tensor of a card."""
        return f"{renderer.need('padded_ids')}({name if handed else renderer.need('jnp') + f'.asarray({name})'})"


def _is_dataset(fact: Fact) -> bool:
    """Whether indexing the value gives an item of a torch data set."""
    return is_of_pipeline(fact) or isinstance(fact, Object) and fact.kind == "dataset"


def _is_dtype(renderer: ExpressionRenderer, node: ast.expr) -> bool:
    return renderer.render(node).text.startswith("jnp.") and isinstance(node, ast.Attribute)
