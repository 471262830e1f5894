"""What the client can do, read once from its capabilities and, where LSP has no word for it, its options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lsprotocol import types


@dataclass(frozen=True)
class ClientAbilities:
    """One flag for each ability that changes an answer."""

    markdown: bool = False
    code_action_literals: bool = False
    lazy_actions: bool = False
    """Whether an action's edit may come with ``codeAction/resolve``."""
    disabled_actions: bool = False
    document_changes: bool = False
    create_files: bool = False
    annotations: bool = False
    pull_diagnostics: bool = False
    diagnostic_refresh: bool = False
    related_information: bool = False
    code_description: bool = False
    progress: bool = False
    configuration: bool = False
    dynamic_configuration: bool = False
    watched_files: bool = False
    code_lens_refresh: bool = False
    inlay_hint_refresh: bool = False
    apply_edit: bool = False
    edit_metadata: bool = False
    show_document: bool = False
    command_links: bool = False
    """Whether links to commands run in a hover, ``t2j.explainName`` and ``t2j.showFixes`` [ids] among them."""
    panels: bool = False
    """Whether the client has the command ``t2j.showDifference`` [uri, name], which shows a panel."""
    previews: bool = False
    """Whether the client has the command ``t2j.previewConversion`` [uri, name?], which shows a conversion."""
    asks_before_rewriting: bool = False
    """Whether the client asks the question with which ``t2j.convert`` answers, and then sends it confirmed."""
    shows_checks: bool = False
    """Whether the client shows running checks by ``t2j/status``, and needs no progress for them."""
    asks_before_checks: bool = False
    """Whether the client asks the user when a check is wanted and code may not run yet."""
    asks_before_sending: bool = False
    """Whether the client shows what would be sent to a model, asks, and names the host that was agreed to."""


def client_of(params: types.InitializeParams) -> ClientAbilities:
    """The client behind an ``initialize`` request."""
    caps = params.capabilities

    def get(path: str) -> Any:
        value: Any = caps
        for name in path.split("."):
            value = getattr(value, name, None)
        return value

    formats = get("text_document.hover.content_format") or []
    resolvable = get("text_document.code_action.resolve_support.properties") or []
    options = params.initialization_options
    options = options if isinstance(options, dict) else {}
    operations = get("workspace.workspace_edit.resource_operations") or []
    return ClientAbilities(
        markdown=types.MarkupKind.Markdown in formats,
        code_action_literals=get("text_document.code_action.code_action_literal_support") is not None,
        lazy_actions="edit" in resolvable and bool(get("text_document.code_action.data_support")),
        disabled_actions=bool(get("text_document.code_action.disabled_support")),
        document_changes=bool(get("workspace.workspace_edit.document_changes")),
        create_files=types.ResourceOperationKind.Create in operations,
        annotations=get("workspace.workspace_edit.change_annotation_support") is not None,
        pull_diagnostics=get("text_document.diagnostic") is not None,
        diagnostic_refresh=bool(get("workspace.diagnostics.refresh_support")),
        related_information=bool(get("text_document.publish_diagnostics.related_information")),
        code_description=bool(get("text_document.publish_diagnostics.code_description_support")),
        progress=bool(get("window.work_done_progress")),
        configuration=bool(get("workspace.configuration")),
        dynamic_configuration=bool(get("workspace.did_change_configuration.dynamic_registration")),
        watched_files=bool(get("workspace.did_change_watched_files.dynamic_registration")),
        code_lens_refresh=bool(get("workspace.code_lens.refresh_support")),
        inlay_hint_refresh=bool(get("workspace.inlay_hint.refresh_support")),
        apply_edit=bool(get("workspace.apply_edit")),
        edit_metadata=bool(get("workspace.workspace_edit.metadata_support")),
        show_document=bool(get("window.show_document.support")),
        command_links=options.get("commandLinks") is True,
        panels=options.get("panels") is True,
        previews=options.get("previews") is True,
        asks_before_rewriting=options.get("asksBeforeRewriting") is True,
        shows_checks=options.get("showsChecks") is True,
        asks_before_checks=options.get("asksBeforeChecks") is True,
        asks_before_sending=options.get("asksBeforeSending") is True,
    )
