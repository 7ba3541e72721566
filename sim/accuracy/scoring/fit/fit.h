#pragma once
#include <array>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/accuracy/evidence/kernel.h"
#include "sim/accuracy/published_runs.h"
#include "sim/accuracy/scoring/accuracy.h"
#include "sim/base/words.h"
#include "sim/catalog/catalog.h"

// The catalog's efficiencies, fitted to published runs (docs/MODELS.md, "Efficiencies: fit and
// error"). A row of the catalog is one kind of accelerator (its own row, else its architecture's)
// at one precision, for one class of stacks (catalogs/stack_classes.csv) or for all that are in
// none; classes are of 16 bits and less, and fp16 and bf16 are one for them. Its eight numbers, and
// of each stack a factor, an attention and a host time of its own, are the maximum a posteriori of
//   ln(predicted / measured) ~ Huber(10 %),
// around the catalog's rows of stack "prior" (else its general-knowledge row), in logarithms. GPUs
// inherit from their neighbours: what is the chip's (convolutions, matrix products, memory) is
// moved by how far those of other rows were found from their own priors, rows of near years first;
// what is the program's (attention, sizes of kernels, launches, host) by rows of the same class;
// launches and host of a class also by the row of all other stacks on the same accelerator, which
// ran on the same machines.
namespace reckon {

/// Of a row: convolution, matmul, attention, memory, half size, launch, host, winograd.
inline constexpr std::size_t kFittedNumbers = 8;
inline constexpr std::size_t kAttentionNumber = 2, kLaunchNumber = 5, kHostNumber = 6,
                             kWinogradNumber = 7;
/// What the catalog calls rows that hold what is known without any measurement.
inline constexpr std::string_view kPriorStack = "prior";
/// What the catalog calls the source of rows that a fit made.
inline constexpr std::string_view kFittedSource = "fitted";

/// What is held out together: a source; all rounds of a benchmark (MLPerf's mlp06, mlp07, ...) as
/// one publisher; one model of one source.
enum class HoldOut { source, publisher, model };
constexpr auto words_of(HoldOut) {
  return std::array{Word<HoldOut>{"source", HoldOut::source},
                    Word<HoldOut>{"publisher", HoldOut::publisher},
                    Word<HoldOut>{"model", HoldOut::model}};
}
std::string fold_of(const PublishedRun& run, HoldOut by);

struct FittedRow {
  Efficiency efficiency;  // stack "" or a class: the middle of the stacks, of those of the class
  bool middle = true;     // of several stacks, not one stack's
  int runs = 0;           // of different configuration, source or stack
  std::array<double, kFittedNumbers> standard_errors{};  // of the logarithms; a stack's: of its
                                                         // factor, but for attention and host
  std::vector<std::string> sources;
};

class EfficiencyFit {
 public:
  /// Runs of trust A and B that the step model plans, on one accelerator or within one node whose
  /// links are the accelerators' own, or on a TPU slice; equal configurations of one source count
  /// once, with their median. Of more than 30 of one source, stack and model, which share an error,
  /// 30 evenly spread ones. Never TPU v2, which scenarios are held to.
  EfficiencyFit(std::span<const PublishedRun> runs, const Catalog& catalog);
  ~EfficiencyFit();

  /// Every row with runs of at least three models or sources, `without` one fold ("": none); and
  /// of GPUs without so many, what they inherit: `runs` is 0. A class that ran where no other stack
  /// did gives the row for any stack too.
  std::vector<FittedRow> rows(HoldOut by = HoldOut::source, std::string_view without = "") const;

  /// Of everything that the fit depends on: the runs, what the step model makes of them with the
  /// numbers that the fit starts from (and so the zoo and the rest of the catalog), and these
  /// numbers; six digits of each. 16 hexadecimal digits.
  std::string inputs_digest() const;

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

struct FittedStack {
  SoftwareStack stack;
  int runs = 0;                            // independent ones
  double speed_error = 0, host_error = 0;  // standard errors of the logarithms
  std::vector<std::string> sources;
};
/// What stacks, and families of at least two, have in common over all rows; rows for any stack are
/// moved to the middle of all stacks, whichever of them ran there. Stacks of a class have none: the
/// class has its rows.
std::vector<FittedStack> share_stacks(std::vector<FittedRow>& rows, const Catalog& catalog);

/// The catalog with these rows and stacks in place of all that were fitted before; what has no row
/// falls back to its prior.
Catalog with_fitted(const Catalog& catalog, std::span<const FittedRow> rows,
                    std::span<const FittedStack> stacks = {});

/// Each run predicted from a catalog that was fitted without its fold. Intervals are the 5th to
/// 95th percentile of log(measured / predicted) of the other sources' runs in this same table, of
/// runs whose stack is known or not alike, drawn towards those of all rows where a row has few.
/// With a kernel, the runs of the other folds are evidence (evidence_scores.h), and intervals are
/// its posterior's; and folds without a run that is `wanted` are then left out (without a kernel
/// all are needed, for the intervals).
ScoredRuns score_cross_validated(std::span<const PublishedRun> runs, const Catalog& catalog,
                                 HoldOut by = HoldOut::source,
                                 const EvidenceKernel* kernel = nullptr,
                                 const PublishedFilter& wanted = {});
/// The same with the fit to these runs that there is already.
ScoredRuns score_cross_validated(const EfficiencyFit& fit, std::span<const PublishedRun> runs,
                                 const Catalog& catalog, HoldOut by = HoldOut::source,
                                 const EvidenceKernel* kernel = nullptr,
                                 const PublishedFilter& wanted = {});

/// step_spread of each row from such a table; `rows` are changed.
void set_spreads(std::vector<FittedRow>& rows, std::span<const ScoredRun> cross_validated,
                 const Catalog& catalog);

/// Which row of the catalog a run rests on: "Volta" or "T4".
std::string_view row_name(const Accelerator& accelerator, const Catalog& catalog);

}  // namespace reckon
