#include "sim/accuracy/evidence/files.h"

#include <algorithm>
#include <utility>

namespace reckon {

Expected<void> EvidenceFiles::add_catalog(const std::filesystem::path& directory) {
  const auto kernel = directory / "evidence" / "kernel.csv";
  if (std::filesystem::exists(kernel)) {
    const MappedFile file(kernel.string());
    auto read = read_evidence_kernel(kernel.string(), file.bytes());
    if (!read) return tl::unexpected(std::move(read.error()));
    kernel_ = *read;
  }
  for (const char* name : {"evidence/training_runs.csv", "evidence/megatron_lm_steps.csv",
                           "self-check/vtrain_single.csv"}) {
    const auto file = directory / name;
    if (!std::filesystem::exists(file)) continue;
    if (auto added = add_runs(file); !added) return added;
  }
  return {};
}

Expected<void> EvidenceFiles::add_runs(const std::filesystem::path& path) {
  const MappedFile& file = files_.emplace_back(path.string());
  const auto keep = [this](const PublishedRun& r) { runs_.push_back(r); };
  auto counts = is_vtrain_table(file.bytes())
                    ? read_vtrain_runs(path.string(), file.bytes(), texts_, keep)
                    : read_published_runs(path.string(), file.bytes(), {}, texts_, keep);
  if (!counts) return tl::unexpected(std::move(counts.error()));
  problems_.insert(problems_.end(), counts->problems.begin(), counts->problems.end());
  return {};
}

std::size_t EvidenceFiles::leave_out(std::string_view name) {
  const std::size_t own = std::erase_if(own_, [name](const OwnRow& r) {
    return name == "all" || name == kOwnSource || r.id == name;
  });
  return own + std::erase_if(runs_, [name](const PublishedRun& r) {
           return name == "all" || r.id == name || r.source == name;
         });
}

}  // namespace reckon
