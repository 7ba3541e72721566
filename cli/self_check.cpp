#include <fmt/format.h>

#include <vector>

#include "cli/command.h"
#include "cli/errors.h"
#include "cli/load/load.h"
#include "cli/options/shared.h"
#include "cli/options/values.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "report/accuracy/accuracy.h"
#include "sim/base/mapped_file.h"
#include "sim/catalog/catalog.h"

namespace reckon::cli {
namespace {

struct SelfCheckOptions : Files, AnswerFormat, CatalogChoice {
  int worst = 0;

  std::vector<Option> declared() {
    return {format_option(), worst_option(worst), catalog_option()};
  }
  void check() const {
    if (!files.empty())
      throw UsageError("self-check takes no file; its measurements come with reckon");
  }
};

/// Mean absolute errors that others print for the same runs [Bang et al. 2024, vTrain, section
/// V-B; Isaev et al. 2023, Calculon, as scored there].
constexpr std::string_view kOthers =
    "For comparison, the mean on the same runs: vTrain, which profiles its kernels on the hardware,"
    "\n8.4 %; Calculon, uncalibrated, 39.0 %.\n";

/// What was fitted to what is known of the shipped catalog only.
std::string heading(const std::filesystem::path& file, bool shipped_catalog) {
  const std::string_view fits =
      shipped_catalog ? " A sixth of them is in the fit of the shipped catalog\n(held out: "
                        "docs/MODELS.md); its figures of the nvswitch link are from the same\n"
                        "publication's table of all-reduces."
                      : "";
  return fmt::format(
      "{}\n1,440 iterations of GPT that vTrain's authors measured on 8 x A100-80 (MIT licence "
      "beside the\nfile).{}\n\n",
      file.string(), fits);
}

}  // namespace

std::vector<OptionText> self_check_options() { return shown_options<SelfCheckOptions>(); }

int run_self_check(const Command& self, std::span<const std::string> arguments) {
  const auto options = parse<SelfCheckOptions>(self, arguments);
  if (!options) return kDone;
  const auto catalog = checked(load_catalogs(*options));
  const auto path = default_catalog_directory() / "self-check" / "vtrain_single.csv";
  const MappedFile file(path.string());
  TextPool texts;
  std::vector<PublishedRun> runs;
  const auto counts = read_vtrain_runs(path.string(), file.bytes(), texts,
                                       [&](const PublishedRun& r) { runs.push_back(r); });
  if (!counts) {
    report(counts.error());
    return kEnvironmentFailed;
  }
  AccuracyReport result = make_accuracy_report(*counts, score_cold(runs, catalog));
  result.from = "vtrain";
  if (options->format == OutputFormat::json)
    print(accuracy_json(result, options->worst));
  else
    print(heading(path, options->catalogs.empty()) + accuracy_table(result, options->worst) + "\n" +
          std::string(kOthers));
  return result.runs.empty() ? kEnvironmentFailed : kDone;
}

}  // namespace reckon::cli
