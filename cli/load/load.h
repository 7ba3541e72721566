#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli/options/shared.h"
#include "sim/accuracy/evidence/evidence.h"
#include "sim/accuracy/evidence/files.h"
#include "sim/base/limits.h"
#include "sim/base/overflow.h"
#include "sim/catalog/catalog.h"
#include "sim/forecast/forecast.h"
#include "sim/queue/trace.h"
#include "sim/scenario/artifact/artifact.h"
#include "sim/scenario/plan.h"
#include "sim/scenario/resolve/serving.h"
#include "sim/scenario/scenario.h"
#include "sim/serving/serving.h"
#include "sim/step/network/network.h"

namespace reckon::cli {

/// A catalog with the published runs that forecasts from it take for evidence.
class LoadedCatalog : public Catalog {
 public:
  /// `unread`: layers whose evidence is read when it is first asked for.
  LoadedCatalog(Catalog catalog, EvidenceFiles files, std::vector<std::filesystem::path> unread);
  ~LoadedCatalog();
  LoadedCatalog(LoadedCatalog&&) noexcept;
  /// Against this catalog, which must not move any more; read and made when it is first asked for.
  /// Throws WrongInput where a file cannot be read. nullptr: the catalogs hold none, or
  /// --without-evidence names all.
  const Evidence* evidence() const;
  /// The same with rows of one's own besides. nullptr: there is no kernel to compare with.
  std::unique_ptr<const Evidence> evidence_with(const OwnRow& row) const;
  /// The published runs behind it, whether or not a kernel compares them.
  std::span<const PublishedRun> published_runs() const;

 private:
  struct Made;
  std::unique_ptr<Made> made_;
};

/// What stands in place of what the catalogs say; empty: nothing.
struct CatalogSwap {
  std::function<void(Catalog&)> prices;
  std::function<void(EvidenceFiles&)> evidence;
  /// Name and text of calibrations, in place of the choice's.
  std::optional<std::vector<std::pair<std::string, std::string>>> calibrations;
};

/// Our catalogs with the user's layers and calibrations over them. Throws when ours are nowhere.
Expected<LoadedCatalog> load_catalogs(const CatalogChoice& choice, const CatalogSwap& swap = {});

/// The plan of a run: `file` is its directory or its plan.reckon. nullopt: it is neither.
std::optional<Expected<ReadArtifact>> load_artifact(const std::string& file);

/// The text of a scenario, and where it stands, or stood when it was run.
struct ScenarioText {
  std::string text, file;
};
Expected<ScenarioText> scenario_text(const std::string& file);

/// Texts print money in the first currency that a command reads (sim/base/printed_currency.h).
void print_in_its_currency(const ScenarioFile& file);

/// The file with the command line's changes, and the files of others that it names. Of a run (a
/// directory, or its plan.reckon) the scenario that was run: its job, with the facts of today's
/// catalog.
Expected<ScenarioFile> load_scenario(const std::string& file, const ScenarioChanges& changes);
/// The same of a text that stood in `file`, by whose place relative paths go.
Expected<ScenarioFile> load_scenario_text(std::string_view text, const std::string& file,
                                          const ScenarioChanges& changes);

struct LoadedPlan {
  ScenarioFile file;
  Plan plan;  // its step's median and range as evidence has them
};
/// Scenario file, with `--set` and the layers over it, and the model files it names, to a plan.
Expected<LoadedPlan> read_plan(const std::string& file, const ScenarioChanges& changes,
                               const LoadedCatalog& catalog);
/// The same, refused with the numbers where it does not fit in memory, unless its
/// `expect` lines speak of `feasible`: then not fitting is an answer.
Expected<LoadedPlan> load_plan(const std::string& file, const ScenarioChanges& changes,
                               const LoadedCatalog& catalog);
/// The same, refused whatever its `expect` lines say: of what is to be run somewhere.
Expected<LoadedPlan> load_plan_that_fits(const std::string& file, const ScenarioChanges& changes,
                                         const LoadedCatalog& catalog);
/// What a run of that plan is of, before it is bound to a place.
RunArtifact artifact_of(LoadedPlan loaded, const std::string& file, const ScenarioChanges& changes);
/// On standard error: what our own program leaves out of a run, where it is what runs.
void tell_left_out(const RunArtifact& planned);
/// "best.reckon" of "best.yaml": where `plan --out` writes the artifact of its scenario.
std::filesystem::path artifact_beside(const std::string& scenario);
/// What a run is of. An artifact without changes is run as it is: its plan, whatever the catalog
/// says today; refused where it is of another version. Of a scenario, or with changes: load_plan().
Expected<LoadedPlan> load_plan_to_run(const std::string& file, const ScenarioChanges& changes,
                                      const CatalogChoice& choice, const LoadedCatalog& catalog);

/// What a scenario asks of the simulator: a training, a service, both beside each other, or a trace
/// of jobs.
struct LoadedScenario {
  ScenarioFile file;
  std::optional<Plan> plan;  // nullopt: it trains nothing
  std::optional<ServingPlan> serving;
  std::optional<TraceQuestion> trace;  // stands alone
};
/// As load_plan, with the serving block; what is wrong with either is reported together.
Expected<LoadedScenario> load_all(const std::string& file, const ScenarioChanges& changes,
                                  const LoadedCatalog& catalog);
/// The same of a scenario that was read. `as_written`: without the command line's changes;
/// nullptr: there are none.
Expected<LoadedScenario> load_all(ScenarioFile scenario, const LoadedCatalog& catalog,
                                  const ScenarioFile* as_written = nullptr);

/// What evidence says of a scenario with a measured step (sim/accuracy/profiled_step.h), with that
/// step in it. nullptr: the scenario has none, and the catalog's own holds.
Expected<std::unique_ptr<const Evidence>> evidence_of_profile(const ScenarioFile& as_written,
                                                              const LoadedCatalog& catalog);

std::unique_ptr<NetworkModel> make_network(const NetworkChoice& choice);

/// The trace with the command line's seed, threads and replications (one where it says none).
TraceResult answer_trace(TraceQuestion question, const Sampling& sampling);

/// Seed, replications and threads of the command line; without the effects of assumptions, which
/// only `simulate` tells.
ForecastOptions forecast_options(const Sampling& sampling);

/// How long the training beside a service pays the cluster's fee; nullopt: there is none.
std::optional<Seconds> trained_for(const std::optional<Forecast>& forecast);
/// Of what is served, if anything is. The training beside it pays the cluster's fee for as long as
/// `forecast` has it take.
std::optional<ServingForecast> forecast_service(const LoadedScenario& loaded,
                                                const std::optional<Forecast>& forecast,
                                                const Sampling& sampling);

/// What to do where `html_assets()` has no scripts.
inline constexpr const char* kHtmlTodo =
    "install Node.js with npm and build again; only --html needs it";
/// Throws where this build cannot write --html: before anything is simulated.
void require_html();

/// What a question that is too large is told: mistakes of the file (or program) `of`.
Diagnostic mistake_of(const std::string& of, const TooMuchWork& e);
Diagnostic mistake_of(const std::string& of, const Overflow& e);
/// What `work` returns, or that its question is too large: a mistake of `file`.
template <class Work>
auto in_bounds(const std::string& file, Work work) -> Expected<decltype(work())> {
  try {
    return work();
  } catch (const TooMuchWork& e) {
    return tl::unexpected(Diagnostics{mistake_of(file, e)});
  } catch (const Overflow& e) {
    return tl::unexpected(Diagnostics{mistake_of(file, e)});
  }
}

/// Prints diagnostics on standard error.

/// Ends a command: main() reports what is wrong with its input, and returns kInputIsWrong.
struct WrongInput : std::runtime_error {
  explicit WrongInput(Diagnostics found)
      : std::runtime_error("the input is wrong"), diagnostics(std::move(found)) {}
  Diagnostics diagnostics;
};

/// The value. Throws WrongInput where there is none.
template <class T>
T checked(Expected<T> value) {
  if (!value) throw WrongInput(std::move(value.error()));
  if constexpr (!std::is_void_v<T>) return std::move(*value);
}

/// Of what takes one job ("a run", "a trial"): throws WrongInput at the scenario's `jobs` where
/// there are several.
void require_one_job(const LoadedPlan& loaded, std::string_view what);

}  // namespace reckon::cli
