#pragma once
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/accuracy/evidence/kernel.h"
#include "sim/accuracy/own_row.h"
#include "sim/accuracy/published_runs.h"
#include "sim/base/mapped_file.h"

namespace reckon {

/// Published runs with the kernel that compares them, as directories of catalogs hold them:
/// evidence/kernel.csv, and of the rest what there is of evidence/training_runs.csv,
/// evidence/megatron_lm_steps.csv and self-check/vtrain_single.csv.
class EvidenceFiles {
 public:
  /// A directory without evidence adds nothing; the last kernel counts.
  Expected<void> add_catalog(const std::filesystem::path& directory);
  /// A table of published runs. Errors of its header; rows that are wrong are told in problems().
  Expected<void> add_runs(const std::filesystem::path& file);
  /// Of a calibration.
  void add_own(std::span<const OwnRow> rows) { own_.insert(own_.end(), rows.begin(), rows.end()); }
  /// Runs of that id or of that source (own: rows of one's own, all: every run) are no evidence.
  /// Returns how many they were.
  std::size_t leave_out(std::string_view id_or_source);
  /// Other published runs in place of these: `made` keeps texts that they have not in the pool.
  void replace_runs(const std::function<std::vector<PublishedRun>(std::span<const PublishedRun>,
                                                                  TextPool&)>& made) {
    runs_ = made(runs_, texts_);
  }

  std::span<const PublishedRun> runs() const { return runs_; }
  const std::vector<OwnRow>& own() const { return own_; }
  /// nullopt: no directory has one.
  const std::optional<EvidenceKernel>& kernel() const { return kernel_; }
  const Diagnostics& problems() const { return problems_; }

 private:
  std::deque<MappedFile> files_;  // whose elements cannot be moved
  TextPool texts_;
  std::vector<PublishedRun> runs_;
  std::vector<OwnRow> own_;
  std::optional<EvidenceKernel> kernel_;
  Diagnostics problems_;
};

}  // namespace reckon
