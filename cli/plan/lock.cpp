#include "cli/plan/lock.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include "cli/output.h"
#include "sim/base/text/printable.h"
#include "sim/scenario/yaml/scenario_yaml.h"

namespace reckon::cli {
namespace {

namespace fs = std::filesystem;
using planner::Lock;

/// The file that a model is made of; "": it is none's.
std::string file_of(const ModelSpec& model) {
  if (const auto* config = std::get_if<ModelFromHuggingFace>(&model)) return config->config;
  const auto* graph = std::get_if<ModelFromGraphFile>(&model);
  return graph != nullptr ? graph->file : "";
}

/// Files whose content a forecast rests on. They are asked of the text: in the scenario as it was
/// loaded, networks stand in place of their files.
std::vector<fs::path> files_named(const std::string& text, const std::string& scenario) {
  std::vector<fs::path> files;
  const auto written = parse_scenario(text, scenario);
  if (!written) return files;  // whoever loaded it has said why
  const auto add = [&](const char* path, const std::string& name) {
    if (name.empty()) return;
    fs::path file =
        fs::path(name).is_absolute() ? fs::path(name) : directory_of(*written, path) / name;
    std::error_code error;
    if (fs::is_directory(file, error)) file /= "config.json";
    files.push_back(std::move(file));
  };
  const Scenario& s = written->scenario;
  if (s.workload && s.workload->model) add("workload.model", file_of(*s.workload->model));
  for (const JobSpec& job : s.jobs)
    if (job.workload.model) add("jobs", file_of(*job.workload.model));
  if (s.disruptions.preemption)
    if (const auto* trace = std::get_if<TraceReclaim>(&*s.disruptions.preemption))
      add("disruptions.preemption.file", trace->file);
  return files;
}

/// Relative to the scenario, wherever the command runs.
std::string name_in(const std::string& scenario, const fs::path& file) {
  std::error_code error;
  const fs::path directory = fs::path(scenario).parent_path();
  const fs::path name = fs::relative(file, directory.empty() ? "." : directory, error);
  return error || name.empty() ? file.string() : name.string();
}

/// "": it cannot be read.
std::string digest_of_file(const fs::path& file) {
  std::error_code error;
  if (fs::is_directory(file, error)) return "";
  return fs::exists(file, error) ? planner::digest_of_text(read_text(file)) : "";
}

std::string digest_of_prices(const std::vector<planner::LockedPrice>& prices) {
  Lock only;
  only.prices = prices;
  return planner::digest_of_text(write_lock(only));
}

std::string digest_of_evidence(const std::vector<planner::LockedSource>& evidence) {
  Lock only;
  only.evidence = evidence;
  return planner::digest_of_text(write_lock(only));
}

std::string newest(const std::vector<planner::LockedPrice>& prices) {
  std::string date;
  for (const auto& price : prices) date = std::max(date, price.date);
  return date;
}

std::vector<planner::LockedCalibration> calibrations_in(const CatalogChoice& choice) {
  std::vector<planner::LockedCalibration> out;
  for (const fs::path& file : choice.calibrations)
    out.push_back({file.filename().string(), read_text(file)});
  return out;
}

bool same_sources(const std::vector<planner::LockedSource>& a,
                  const std::vector<planner::LockedSource>& b) {
  return std::ranges::equal(
      a, b, [](const auto& x, const auto& y) { return x.source == y.source && x.runs == y.runs; });
}

bool same_calibrations(const std::vector<planner::LockedCalibration>& a,
                       const std::vector<planner::LockedCalibration>& b) {
  return std::ranges::equal(a, b, {}, &planner::LockedCalibration::text,
                            &planner::LockedCalibration::text);
}

std::set<std::string> providers_in(const Lock& lock) {
  std::set<std::string> of;
  for (const auto& price : lock.prices) of.insert(price.provider);
  return of;
}

std::size_t runs_in(const std::vector<planner::LockedSource>& evidence) {
  std::size_t digits = 0;
  for (const auto& source : evidence) digits += source.runs.size();
  return digits / 8;  // NOLINT(readability-magic-numbers): of a run's name
}

}  // namespace

fs::path lock_beside(const fs::path& scenario) {
  fs::path lock = scenario;
  lock.replace_extension(".lock.json");
  return lock;
}

Expected<std::optional<Lock>> read_lock_beside(const std::string& scenario) {
  const fs::path file = lock_beside(scenario);
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return std::nullopt;
  auto lock = planner::read_lock(read_text(file), file.string());
  if (!lock) return tl::unexpected(std::move(lock.error()));
  return std::optional(std::move(*lock));
}

Expected<std::string> locked_text(const std::string& file, const ScenarioChanges& changes) {
  const auto of = scenario_text(file);
  if (!of) return tl::unexpected(of.error());
  constexpr std::array<std::string_view, 1> kInIt{"extends"};
  return flat_scenario(of->text, of->file, changes.overrides, changes.layers, kInIt);
}

Lock lock_of(const LockSubject& subject, const CatalogChoice& choice,
             const LoadedCatalog& catalog) {
  Lock lock;
  lock.scenario = {fs::path(subject.file).filename().string(), subject.text};
  for (const fs::path& file : files_named(subject.text, subject.file))
    lock.files.push_back({name_in(subject.file, file), digest_of_file(file)});
  lock.calibrations = calibrations_in(choice);
  lock.prices = planner::locked_prices(catalog, subject.providers);
  const auto runs = catalog.published_runs();
  lock.evidence = planner::locked_sources(runs);
  const std::set<std::string, std::less<>> used(subject.used.begin(), subject.used.end());
  for (const PublishedRun& run : runs)
    if (used.contains(run.id)) lock.used.push_back(planner::locked(run));
  lock.made = {.reckon_version = RECKON_VERSION,
               .catalog_digest = catalog.digest,
               .prices_digest = digest_of_prices(lock.prices),
               .prices_as_of = newest(lock.prices),
               .evidence_digest = digest_of_evidence(lock.evidence)};
  return lock;
}

std::vector<std::string> changed_files(const Lock& lock, const std::string& scenario,
                                       const std::string& text) {
  std::vector<std::string> changed;
  for (const fs::path& file : files_named(text, scenario)) {
    const std::string name = name_in(scenario, file);
    const auto then = std::ranges::find(lock.files, name, &planner::LockedFile::path);
    if (then != lock.files.end() && then->digest != digest_of_file(file)) changed.push_back(name);
  }
  return changed;
}

void write_lock_beside(const std::string& scenario, const Lock& lock) {
  write_file(lock_beside(scenario), planner::write_lock(lock));
}

LockedCatalogs::LockedCatalogs(const Lock& lock, const CatalogChoice& choice,
                               const LoadedCatalog& today)
    : lock_(lock), choice_(choice), today_(today) {
  prices_ = planner::locked_prices(today, providers_in(lock));
  evidence_ = planner::locked_sources(today.published_runs());
  changes_.repriced = prices_ != lock.prices;
  changes_.evidence = !same_sources(evidence_, lock.evidence) ||
                      !same_calibrations(calibrations_in(choice), lock.calibrations);
}

Expected<const LoadedCatalog*> LockedCatalogs::swapped(std::optional<LoadedCatalog>& made,
                                                       bool prices) {
  if (made) return &*made;
  CatalogSwap swap;
  if (prices) swap.prices = [this](Catalog& c) { planner::set_prices(c, lock_.prices); };
  if (changes_.evidence) {
    swap.evidence = [this](EvidenceFiles& files) {
      files.replace_runs([this](std::span<const PublishedRun> runs, TextPool& pool) {
        auto then = planner::restored_runs(runs, lock_.evidence, lock_.used, pool);
        lost_ = then.lost;
        return std::move(then.runs);
      });
    };
    swap.calibrations.emplace();
    for (const auto& c : lock_.calibrations) swap.calibrations->emplace_back(c.name, c.text);
  }
  auto loaded = load_catalogs(choice_, swap);
  if (!loaded) return tl::unexpected(std::move(loaded.error()));
  made.emplace(std::move(*loaded));
  return &*made;
}

Expected<const LoadedCatalog*> LockedCatalogs::then() {
  if (!changes_.repriced) return evidence_of_then();
  return swapped(then_, true);
}

Expected<const LoadedCatalog*> LockedCatalogs::evidence_of_then() {
  if (!changes_.evidence) return &today_;
  return swapped(evidence_then_, false);
}

std::vector<std::string> LockedCatalogs::notes() const {
  std::vector<std::string> notes;
  const auto& made = lock_.made;
  if (changes_.repriced) {
    std::size_t other = 0;
    for (const auto& price : prices_)
      other += std::ranges::find(lock_.prices, price) == lock_.prices.end();
    notes.push_back(
        fmt::format("prices: {} of {} rows are new or changed; newest of {}, then of {}", other,
                    prices_.size(), newest(prices_), made.prices_as_of));
  }
  if (changes_.evidence)
    notes.push_back(fmt::format(
        "evidence: {} published runs, then {}{}", runs_in(evidence_), runs_in(lock_.evidence),
        same_calibrations(calibrations_in(choice_), lock_.calibrations) ? ""
                                                                        : "; other calibrations"));
  if (lost_ > 0)
    notes.push_back(fmt::format(
        "{} runs of then are gone or changed and not in the lock: what they did is reckon's share",
        lost_));
  if (made.reckon_version != RECKON_VERSION)
    notes.push_back(
        fmt::format("reckon {}, then {}", RECKON_VERSION, printable(made.reckon_version)));
  return notes;
}

bool LockedCatalogs::same_reckon() const { return lock_.made.reckon_version == RECKON_VERSION; }

}  // namespace reckon::cli
