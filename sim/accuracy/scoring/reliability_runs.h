#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/accuracy/published_runs.h"
#include "sim/forecast/forecast.h"

// Large training runs of which it was published how often they were interrupted and how much of
// their time was training, against what the cluster's life says of such a run.
namespace reckon {

/// A number as it was published: "419", "1-2 a week", ">0.90".
struct PublishedRange {
  double low = 0, high = 0;  // a count of the whole run; of goodput 0..1
};

struct ReliabilityRun {
  std::string name, accelerator, kind, evidence;
  int accelerators = 0, nodes = 0, line = 0;
  bool rented = false;       // of a cloud
  bool takes_hours = false;  // a restart, not told more exactly
  double parameters = 0;     // of the model, by the run's name; 0: not known
  Seconds length{};
  std::optional<PublishedRange> interruptions, goodput;
  std::optional<Seconds> interval, save, restart;  // as far as they were published
};

struct ScoredReliability {
  ReliabilityRun run;
  Quantiles interruptions, goodput_lost;
  bool interruptions_inside() const;  // of what was published some lies in the 5 .. 95 %
  bool goodput_inside() const;
};

struct ReliabilityScores {
  PublishedCounts counts;
  std::vector<ScoredReliability> runs;
};

/// Is it such a table, by its header?
bool is_reliability_table(std::string_view bytes);

/// Rows that count failures of machines, of runs whose length is known, each forecast from its
/// size, its length and, where they were published, its checkpoints and the time of a restart; all
/// else is the catalog's, drawn from its ranges in each of `replications` lives. What was measured
/// is only looked at to score. Errors: a header that lacks a column.
Expected<ReliabilityScores> score_reliability(std::string_view file_name, std::string_view bytes,
                                              const Catalog& catalog, int replications = 400);

}  // namespace reckon
