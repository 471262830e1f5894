"""Texts that say what a file with gaps says, in statements that have a form of their own in JAX."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from t2j_lsp.contract import Finding, Severity, Translation
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.source.own_lines import on_own_lines
from t2j_lsp.translate.source.rearranged import RearrangedText
from t2j_lsp.translate.training.data.masks import SIZES

from .asked_gradients import with_asked_gradients_stored
from .asked_in_functions import with_gradients_returned_at_once
from .asserted_methods import with_asserted_methods_called
from .attribute_values import with_attributes_as_variables, with_attributes_of_a_call_as_variables
from .batch_statistics import with_statistics_updated_first
from .batches_given_again import with_batches_of_their_own
from .branch_zeroing import with_gradients_zeroed_in_branches
from .called_backward import with_backward_passes_as_methods
from .children_by_name import with_children_by_name
from .chosen_functions import with_chosen_functions_called_by_name
from .chosen_optimizers import with_chosen_optimizers_as_branches
from .class_patterns import with_class_patterns_as_conditions
from .clipped_lists import with_clipped_lists_walked
from .flag_setters import with_flag_setters_inlined
from .inlined import with_parts_of_steps_inlined
from .inlined_makers import with_makers_of_optimizers_inlined
from .input_attributes import with_inputs_as_variables
from .kept_generators import with_seeds_as_statements
from .kernel_masks import with_masks_of_kernels_renamed
from .known_branches import with_known_branches_taken
from .later_updates import with_updates_made_later
from .layers_asked import with_layers_asked_by_class
from .lazy_layers import with_sizes_of_lazy_layers
from .leaves_as_parameters import with_leaves_as_parameters
from .left_out_caches import with_caches_left_out
from .left_out_go_betweens import with_go_betweens_left_out
from .left_out_scalers import with_scalers_left_out
from .listed_children import with_children_listed
from .logged_norms import with_norms_of_gradients_called
from .marked_rows import with_rows_filled_by_masks
from .named_keywords import with_named_keywords
from .named_lambdas import with_named_lambdas_as_functions
from .names_given_again import with_names_of_their_own
from .numbers_of_losses import with_old_items_as_numbers
from .optimizers_apart import with_optimizers_of_groups_apart
from .optional_clips import with_optional_clips_unconditional
from .optional_scalers import with_optional_scalers_left_out
from .parameter_names import with_parameters_under_their_names
from .placeholders import without_placeholders
from .plain_forms import with_plain_forms
from .plain_sequences import with_sequences_handed_as_they_are
from .renamed_to_itself import with_modes_as_statements
from .script_hooks import with_script_hooks_left_out
from .sorted_parameters import with_sorted_parameters_as_lists
from .spread_settings import with_settings_as_keywords
from .starred_tuples import with_starred_tuples_named
from .tensor_classes import with_tensor_classes_as_modules
from .trained_flags import with_trained_flags_by_name
from .unrolled import with_loops_over_optimizers_unrolled
from .walked_sequentials import with_sequentials_walked
from .weighted_backward import with_weighted_losses_summed
from .wrapped_layers import with_layers_built_where_wrapped
from .written_arguments import with_written_arguments_handed_back
from .written_states import with_writes_into_states_copied

_WAYS = (
    with_go_betweens_left_out,
    with_caches_left_out,
    with_layers_built_where_wrapped,
    with_script_hooks_left_out,
    with_old_items_as_numbers,
    with_sizes_of_lazy_layers,
    with_known_branches_taken,
    with_named_keywords,
    with_named_lambdas_as_functions,
    with_loops_over_optimizers_unrolled,
    with_gradients_zeroed_in_branches,
    with_updates_made_later,
    with_rows_filled_by_masks,
    with_sorted_parameters_as_lists,
    with_children_by_name,
    with_children_listed,
    with_sequentials_walked,
    with_flag_setters_inlined,
    with_trained_flags_by_name,
    with_masks_of_kernels_renamed,
    with_parameters_under_their_names,
    with_class_patterns_as_conditions,
    with_layers_asked_by_class,
    with_modes_as_statements,
    with_backward_passes_as_methods,
    with_weighted_losses_summed,
    with_gradients_returned_at_once,
    with_asked_gradients_stored,
    with_clipped_lists_walked,
    with_norms_of_gradients_called,
    with_optional_clips_unconditional,
    with_scalers_left_out,
    with_optional_scalers_left_out,
    without_placeholders,
    with_tensor_classes_as_modules,
    with_names_of_their_own,
    with_batches_of_their_own,
    with_leaves_as_parameters,
    with_optimizers_of_groups_apart,
    with_inputs_as_variables,
    with_attributes_as_variables,
    with_attributes_of_a_call_as_variables,
    with_chosen_optimizers_as_branches,
    with_chosen_functions_called_by_name,
    with_asserted_methods_called,
    with_settings_as_keywords,
    with_makers_of_optimizers_inlined,
    with_seeds_as_statements,
    with_starred_tuples_named,
    with_statistics_updated_first,
    with_written_arguments_handed_back,
    with_writes_into_states_copied,
    with_sequences_handed_as_they_are,
    with_plain_forms,
)


def texts_put_otherwise(inference: Inference, gaps: Sequence[Finding]) -> Iterator[RearrangedText]:
    """The texts of a file with ``gaps``, each put otherwise in one way.

    First with a line for each statement, then in the ways above, of which each module says what it rewrites and when
    the meaning is the same, last with functions that are parts of training steps put where they are called.
    """
    if (text := on_own_lines(inference.source, gaps)) is not None:
        yield text
    for put in _WAYS:
        if (text := put(inference, gaps)) is not None:
            yield text
    yield from with_parts_of_steps_inlined(inference, gaps)


def what_is_left(translation: Translation) -> list[Finding]:
    """The gaps, and the training steps that aren't compiled because they select by values."""
    notes = [f for f in translation.findings if f.severity is Severity.NOTE and f.name == "training loop"]
    return [*translation.gaps, *(replace(one, code="training-loop") for one in notes if SIZES in one.reason)]
