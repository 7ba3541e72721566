#pragma once
#include <optional>

#include "sim/base/diagnostic.h"
#include "sim/scenario/plan.h"

namespace reckon {

/// Memory of the parameter server that holds most: its variables in fp32 and the optimizer's state,
/// and a buffer of gradients for each variable that travels whole; of embedding tables whose rows
/// alone travel there is none.
struct ServerMemory {
  Bytes variables{}, optimizer{}, gradients{};
  Bytes available{};      // of its machine
  Bytes largest_piece{};  // variable, or piece of one, that a server holds alone
  Bytes required() const { return variables + optimizer + gradients; }
  bool fits() const { return required() <= available; }
};
/// With so many servers in place of the plan's. The job has parameter servers (checked); with none
/// the first worker's host holds all.
ServerMemory server_memory(const Plan& plan, const PlannedWorkload& job, int servers);

/// nullopt: they fit, or the job has none. Else the error, with the fewest servers that would hold
/// the model, or what else would.
std::optional<Diagnostic> check_server_memory(const Plan& plan, const PlannedWorkload& job,
                                              const Places& places);

}  // namespace reckon
