#pragma once
#include <array>
#include <string_view>

#include "sim/accuracy/scoring/accuracy.h"
#include "sim/base/words.h"

// Measured tables that are not a training run a row: collectives, whole runs with their bill,
// epochs against the batch, power limits. Each reader predicts a row from what it says was run and
// never reads the measured columns of the row that it predicts; docs/commands/accuracy.md lists
// columns.
namespace reckon {

enum class TableKind {
  runs,         // training runs, one a row (sim/accuracy/published_runs.h)
  vtrain,       // vTrain's iterations
  collectives,  // bus bandwidths by message size (score_collectives)
  collective_profiles,
  time_to_train,
  run_costs,
  energy_and_convergence
};
constexpr auto words_of(TableKind) {
  using Kind = TableKind;
  return std::array{Word<Kind>{"normalised", Kind::runs},
                    Word<Kind>{"vtrain", Kind::vtrain},
                    Word<Kind>{"collectives", Kind::collectives},
                    Word<Kind>{"collective_profiles", Kind::collective_profiles},
                    Word<Kind>{"time_to_train", Kind::time_to_train},
                    Word<Kind>{"run_costs", Kind::run_costs},
                    Word<Kind>{"energy_and_convergence", Kind::energy_and_convergence}};
}
/// By the names in the header; `runs` where it is no other kind.
TableKind table_kind(std::string_view bytes);

struct ScoredTable {
  PublishedCounts counts;
  ScoredRuns scored;
};

/// Collectives on nodes that the row describes (columns kind, system, accelerator, nodes,
/// ranks_per_node, collective, message_bytes, latency_us, peak_GBps, share_of_peak_by_size,
/// time_us, source): a measured all-reduce (kind measured), or a fitted latency and peak (kind
/// fit), which is scored at one message of 1 GiB. Numbers are bus bandwidths in GB/s.
Expected<ScoredTable> score_collective_profiles(std::string_view file_name, std::string_view bytes,
                                                TextPool& pool, const Catalog& catalog);

/// Whole training runs (columns id, source, year, framework, hardware, machine, machines,
/// accelerators, accelerator, usd_per_hour, model, model_text, dataset, epochs, batch, hours, usd,
/// notes): hours from hardware, network, epochs and batch by the step model, moved by what the
/// file's other rows show (others_residuals.h), and their bill at the price of the row. Numbers are
/// hours, and US dollars.
Expected<ScoredTable> score_run_costs(std::string_view file_name, std::string_view bytes,
                                      TextPool& pool, const Catalog& catalog);

/// Epochs to a target against the batch (rows of kind convergence) and the time of an epoch under a
/// power limit (kind power). Of each set of rows that differ in batch or limit alone one is given
/// and the others are predicted (batch_scaling.h, power_limit.h), with what other tasks of the file
/// say of the laws' shapes: no task's own rows are in its fit. Numbers are epochs, seconds an epoch
/// and watts.
Expected<ScoredTable> score_energy_and_convergence(std::string_view file_name,
                                                   std::string_view bytes, TextPool& pool,
                                                   const Catalog& catalog);

}  // namespace reckon
