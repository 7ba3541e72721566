#pragma once
#include "sim/accuracy/published_runs.h"
#include "sim/scenario/artifact/fields.h"

// Fields of a published run (sim/accuracy/published_runs.h). A list that lacks one does not
// compile.
namespace reckon {

RECKON_FIELDS(RunConfiguration, accelerator, accelerators, accelerators_per_node, nodes,
              intra_node_link, inter_node, model, variant, layers, hidden, heads, kv_heads,
              head_width, feed_forward, vocabulary, parameters, experts, experts_per_token,
              shared_experts, gated_feed_forward, active_parameters, dense_layers,
              dense_feed_forward, q_lora_rank, kv_lora_rank, nope_head_width, rope_head_width,
              value_head_width, precision, likely_precision, strategy, parameter_servers, data,
              tensor, pipeline, context, expert, zero_stage, interleave, layers_per_stage,
              stage_accelerators, sequence_parallel, overlap, micro_batch, batch_per_accelerator,
              global_batch, sequence_length, recompute, stack, framework)

}  // namespace reckon
