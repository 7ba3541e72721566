#pragma once
#include "executor/kubernetes/run_state.h"

// Which plan a run in a cluster is of, and of which parts it consists: in its ConfigMap NAME-run,
// so that another launcher goes on under the plan that was decided, and knows what was spent.
namespace reckon::kubernetes {

/// plan_from, parts, ends and decisions of the state, as the ConfigMap's `data` holds them.
Json plan_data(const RunState& state);
/// The same from there. What cannot be read, of an older or newer reckon, is left out.
void read_plan_data(const Json& data, RunState& state);

/// Puts the plan and plan_data() of the state in place of what is there. Throws KubectlError.
void write_plan_state(const Kubectl& kubectl, const RunState& state);
/// The ends of all parts. Throws KubectlError.
void write_ends(const Kubectl& kubectl, const std::string& run, const std::vector<EndRecord>& ends);

}  // namespace reckon::kubernetes
