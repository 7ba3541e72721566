#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "cli/errors.h"
#include "cli/load/load.h"
#include "cli/output.h"
#include "sim/measurement/calibration/calibration.h"

// The catalogs that the command line names, with the runs that are evidence.
namespace reckon::cli {
namespace {

void add_layer(Diagnostics& problems, const Expected<void>& read) {
  if (!read) problems.insert(problems.end(), read.error().begin(), read.error().end());
}

Diagnostics read_evidence(EvidenceFiles& evidence,
                          const std::vector<std::filesystem::path>& layers) {
  Diagnostics problems;
  for (const std::filesystem::path& layer : layers)
    add_layer(problems, evidence.add_catalog(layer));
  return problems;
}

bool speaks_of_evidence(const CatalogChoice& choice) {
  return !choice.evidence.empty() || !choice.without_evidence.empty();
}

/// What the layers hold and --evidence adds, without what --without-evidence names.
Diagnostics read_evidence(EvidenceFiles& evidence, const std::vector<std::filesystem::path>& layers,
                          const CatalogChoice& choice) {
  Diagnostics problems = read_evidence(evidence, layers);
  const auto known = static_cast<std::ptrdiff_t>(evidence.problems().size());
  for (const std::string& file : choice.evidence) add_layer(problems, evidence.add_runs(file));
  report({evidence.problems().begin() + known, evidence.problems().end()});  // rows left out
  for (const std::string& name : choice.without_evidence) {
    if (evidence.leave_out(name) > 0) continue;
    Diagnostic d;
    d.what = fmt::format("--without-evidence: '{}' is neither a run nor a source", name);
    d.hint = "sources: catalogs/evidence/sources.csv";
    problems.push_back(std::move(d));
  }
  return problems;
}

}  // namespace

struct LoadedCatalog::Made {
  std::vector<std::filesystem::path> unread;  // layers
  EvidenceFiles files;
  std::once_flag once;
  std::unique_ptr<const Evidence> evidence;
};

LoadedCatalog::LoadedCatalog(Catalog catalog, EvidenceFiles files,
                             std::vector<std::filesystem::path> unread)
    : Catalog(std::move(catalog)), made_(std::make_unique<Made>()) {
  made_->unread = std::move(unread);
  made_->files = std::move(files);
}
LoadedCatalog::~LoadedCatalog() = default;
LoadedCatalog::LoadedCatalog(LoadedCatalog&&) noexcept = default;

std::span<const PublishedRun> LoadedCatalog::published_runs() const {
  evidence();
  return made_->files.runs();
}

std::unique_ptr<const Evidence> LoadedCatalog::evidence_with(const OwnRow& row) const {
  evidence();
  const EvidenceFiles& files = made_->files;
  if (!files.kernel()) return nullptr;
  std::vector<OwnRow> own = files.own();
  own.push_back(row);
  return std::make_unique<const Evidence>(files.runs(), *this, *files.kernel(), std::move(own));
}

const Evidence* LoadedCatalog::evidence() const {
  std::call_once(made_->once, [this] {
    Diagnostics problems = read_evidence(made_->files, made_->unread);
    if (!problems.empty()) throw WrongInput(std::move(problems));
    const EvidenceFiles& files = made_->files;
    if (!files.kernel() || (files.runs().empty() && files.own().empty())) return;
    made_->evidence =
        std::make_unique<const Evidence>(files.runs(), *this, *files.kernel(), files.own());
  });
  return made_->evidence.get();
}

namespace {

std::vector<std::pair<std::string, std::string>> calibrations_of(const CatalogChoice& choice) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const std::filesystem::path& file : choice.calibrations)
    files.emplace_back(file.string(), read_text(file));
  return files;
}

}  // namespace

Expected<LoadedCatalog> load_catalogs(const CatalogChoice& choice, const CatalogSwap& swap) {
  std::vector<std::filesystem::path> layers{default_catalog_directory()};
  if (layers.front().empty())
    throw std::runtime_error("the catalogs are not found; set RECKON_CATALOGS to their directory");
  layers.insert(layers.end(), choice.catalogs.begin(), choice.catalogs.end());
  auto catalog = load_catalog(layers);
  if (!catalog) return tl::unexpected(std::move(catalog.error()));
  EvidenceFiles evidence;
  Diagnostics problems;
  for (const auto& [name, text] :
       swap.calibrations ? *swap.calibrations : calibrations_of(choice)) {
    const auto calibration = parse_calibration(name, text);
    const Diagnostics found = calibration ? lay_over(*catalog, *calibration) : calibration.error();
    problems.insert(problems.end(), found.begin(), found.end());
    if (calibration) evidence.add_own(calibration->own_runs);
  }
  if (swap.prices) swap.prices(*catalog);
  if (speaks_of_evidence(choice) || swap.evidence) {
    const Diagnostics found = read_evidence(evidence, std::exchange(layers, {}), choice);
    problems.insert(problems.end(), found.begin(), found.end());
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  if (swap.evidence) swap.evidence(evidence);
  return LoadedCatalog(std::move(*catalog), std::move(evidence), std::move(layers));
}

}  // namespace reckon::cli
