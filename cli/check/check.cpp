#include "report/check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/check/locked.h"
#include "cli/command.h"
#include "cli/errors.h"
#include "cli/load/load.h"
#include "cli/options/shared.h"
#include "cli/options/usage_error.h"
#include "cli/options/values.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/plan/lock.h"
#include "report/json.h"
#include "report/queue/queue.h"
#include "sim/base/printed_currency.h"

namespace reckon::cli {
namespace {

enum class AnnotationStyle { github };
constexpr auto words_of(AnnotationStyle) {
  return std::array{Word<AnnotationStyle>{"github", AnnotationStyle::github}};
}

struct CheckOptions : Files, AnswerFormat, Sampling, ScenarioChanges, NetworkChoice, CatalogChoice {
  std::string junit, sarif, summary;  // files to write; "": none
  bool lock = false, without_lock = false;
  std::optional<AnnotationStyle> annotations;

  std::vector<Option> declared() {
    return {format_option(),
            {{"junit", "FILE", "results as JUnit XML"}, file_name(junit)},
            {{"sarif", "FILE", "failures as SARIF, for code scanning"}, file_name(sarif)},
            {{"summary", "FILE.md", "results as Markdown, for a job summary or a comment"},
             file_name(summary)},
            {{"annotations", words<AnnotationStyle>(), "print failures as GitHub annotations"},
             word(annotations)},
            {{"lock", "", "write FILE.lock.json beside each scenario: the result with its inputs"},
             given(lock)},
            {{"without-lock", "", "ignore lock files, so that a changed price can fail a check"},
             given(without_lock)},
            seed_option(),
            replications_option(),
            set_option(),
            layer_option(),
            engine_option(),
            catalog_option(),
            calibration_option(),
            evidence_option(),
            without_evidence_option(),
            threads_option()};
  }
  void check() const {
    refuse_same_file({{"--junit", &junit}, {"--sarif", &sarif}, {"--summary", &summary}});
    if (lock && without_lock) throw UsageError("--lock and --without-lock contradict each other");
  }
};

bool is_scenario(const std::filesystem::path& file) {
  return file.extension() == ".yaml" || file.extension() == ".yml";
}

/// Files as given; of a directory every scenario below it, by name.
std::vector<std::string> scenario_files(const std::vector<std::string>& given) {
  std::vector<std::string> files;
  for (const std::string& path : given) {
    if (!std::filesystem::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
      if (entry.is_regular_file() && is_scenario(entry.path()))
        found.push_back(entry.path().lexically_normal().string());
    if (found.empty())
      throw UsageError(fmt::format("no scenario (*.yaml) in directory '{}'", path));
    std::sort(found.begin(), found.end());
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

CheckedScenario check_one(const std::string& file, const CheckOptions& options,
                          const LoadedCatalog& catalog, const NetworkModel& network) {
  CheckedScenario checked{file, std::nullopt, {}, {}};
  const CheckSetting setting{options, options, options, catalog, network};
  const auto loaded = load_all(file, options, catalog);
  if (!loaded) {
    checked.errors = loaded.error();
    return checked;
  }
  const CheckedAnswer answer = check_answer(*loaded, options, network);
  checked.expectations = answer.expectations;
  if (options.lock) {
    const auto lock = lock_of_check(file, setting, *loaded, answer);
    if (!lock) {
      checked.errors = lock.error();
      return checked;
    }
    write_lock_beside(file, *lock);
    return checked;
  }
  if (options.without_lock) return checked;
  const auto lock = read_lock_beside(file);
  if (!lock) {
    checked.errors = lock.error();
  } else if (*lock) {
    if (auto done = attribute_changes(**lock, setting, answer, checked); !done)
      checked.errors = std::move(done.error());
  }
  return checked;
}

/// A question that is too large is a mistake of its file; those behind it are checked all the same.
CheckedScenario checked_or_refused(const std::string& file, const CheckOptions& options,
                                   const LoadedCatalog& catalog, const NetworkModel& network) {
  auto checked = in_bounds(file, [&] { return check_one(file, options, catalog, network); });
  if (checked) return std::move(*checked);
  return CheckedScenario{file, std::nullopt, std::move(checked.error()), {}};
}

int exit_code(const std::vector<CheckedScenario>& scenarios) {
  int code = kDone;
  for (const CheckedScenario& s : scenarios)
    code = std::max<int>(code, has_errors(s.errors) ? kInputIsWrong
                               : s.passed()         ? kDone
                                                    : kAnswerIsNo);
  return code;
}

}  // namespace

std::vector<OptionText> check_options() { return shown_options<CheckOptions>(); }

int run_check(const Command& self, std::span<const std::string> arguments) {
  const auto options = parse<CheckOptions>(self, arguments);
  if (!options) return kDone;
  const std::vector<std::string> files = scenario_files(options->files);
  const auto catalog = checked(load_catalogs(*options));
  const auto network = make_network(*options);
  std::vector<CheckedScenario> scenarios;
  for (const std::string& file : files) {
    scenarios.push_back(checked_or_refused(file, *options, catalog, *network));
    report(scenarios.back().errors);
  }
  print_money_in({});  // expectations are in dollars, and so is what they are compared with
  const bool json = options->format == OutputFormat::json;
  print(json ? check_json(scenarios) : check_text(scenarios));
  if (options->annotations) {
    const std::string annotations = check_annotations(scenarios);
    json ? print_error(annotations) : print(annotations);  // GitHub reads both streams
  }
  if (!options->junit.empty()) write_file(options->junit, check_junit(scenarios));
  if (!options->summary.empty()) write_file(options->summary, check_markdown(scenarios));
  if (!options->sarif.empty()) write_file(options->sarif, check_sarif(scenarios, RECKON_VERSION));
  return exit_code(scenarios);
}

}  // namespace reckon::cli
