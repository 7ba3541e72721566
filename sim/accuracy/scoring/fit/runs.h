#pragma once
#include <map>
#include <span>
#include <vector>

#include "sim/accuracy/scoring/fit/group.h"
#include "sim/accuracy/scoring/fit/inherit.h"

// Which published runs a fit takes, and which row of the catalog each tells of. Included by
// fit*.cpp only: Eigen is heavy.
namespace reckon {

/// As EfficiencyFit's constructor says. Their strings are those of `runs`.
std::map<GroupKey, std::vector<FitRun>> runs_by_row(std::span<const PublishedRun> runs,
                                                    const Catalog& catalog);

/// The row that the fit starts from: "prior", else what is not fitted.
const Efficiency* prior_of(const Catalog& catalog, const GroupKey& key);

/// Fused kernels are of 16 bits and less (Megatron-LM's softmax asks for fp16 or bf16
/// [megatron/model/fused_softmax.py, is_kernel_available], FlashAttention too).
bool has_classes(Precision precision);

}  // namespace reckon
