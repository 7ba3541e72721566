#pragma once
#include "sim/base/diagnostic.h"
#include "sim/scenario/plan.h"

// What of a plan reckon-worker does not train, known before any process is started: everything that
// can be simulated and exported is more.
namespace reckon {

/// What keeps it from training the plan at all: network, strategy, how gradients are summed. All
/// problems, each with what to do and without a place; empty: it trains it. How many processes
/// there are is not asked.
Diagnostics cannot_train(const Plan& plan);

/// What would leave accelerators of the plan's nodes idle, layers without a kernel among it: each
/// rank trains on an NVIDIA GPU of its own, in fp32 (tf32), bf16 or fp16, by all-reduce or through
/// parameter servers. Empty as well where the plan has no accelerators.
Diagnostics leaves_accelerators_idle(const Plan& plan);

/// Whoever watches pods gives them orders, by which some jobs go on with those that are left.
enum class WatchedPods { no, yes };
/// A job whose pods, watched, go on with those that are left (workload.restart of another kind
/// than full): without parameter servers, and of checkpoints in the storage alone.
bool goes_on_in_pods(const Plan& plan);

/// What of its restarts pods do not do: they start again all together, but for goes_on_in_pods();
/// and what they saved on their nodes is there for the next only in a directory of the nodes
/// (`on_nodes`: they have one).
Diagnostics restarts_otherwise_in_pods(const Plan& plan, bool on_nodes = false,
                                       WatchedPods watched = WatchedPods::no);

/// Nothing of the plan is left out by watched pods: what a run in a cluster may go on under.
bool trains_in_watched_pods(const Plan& plan, bool on_nodes);

}  // namespace reckon
