#include <fmt/format.h>

#include <array>

#include "cli/command.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"
#include "report/accuracy.h"
#include "sim/base/mapped_file.h"
#include "sim/base/unit_text.h"

namespace reckon::cli {
namespace {

constexpr std::array<std::string_view, 7> kNames{"format", "trust",   "source", "worst",
                                                 "plot",   "catalog", "help"};

/// "A", "A,B": the letters.
std::string trust_of(const Options& options) {
  std::string letters;
  for (const char c : options.answer("trust"))
    if (c == 'A' || c == 'B' || c == 'C')
      letters += c;
    else if (c != ',')
      throw UsageError(
          fmt::format("--trust takes A, B and C, such as A,B; not '{}'", options.answer("trust")));
  return letters;
}

int worst_of(const Options& options) {
  const std::string text = options.answer("worst");
  if (text.empty()) return 0;
  const auto value = parse_integer(text);
  if (!value || *value < 0 || *value > 1'000'000)
    throw UsageError(fmt::format("--worst takes a whole number, not '{}'", text));
  return static_cast<int>(*value);
}

}  // namespace

std::string accuracy_options() { return describe_options(kNames); }

int run_accuracy(const Command& self, std::span<const std::string> arguments) {
  const Options options = parse_options(self, kNames, arguments);
  if (options.help) {
    print(help_text(self));
    return kDone;
  }
  if (options.files.size() > 1) throw UsageError("accuracy takes one file of measurements");
  const PublishedFilter filter{trust_of(options), options.answer("source")};
  const int worst = worst_of(options);
  const auto catalog = load_catalogs(options);
  if (!catalog) {
    report(catalog.error());
    return kInputIsWrong;
  }
  const MappedFile file(options.files.front());
  TextPool texts;
  std::vector<PublishedRun> measurements;
  const auto counts = read_published_runs(options.files.front(), file.bytes(), filter, texts,
                                        [&](const PublishedRun& m) { measurements.push_back(m); });
  if (!counts) {
    report(counts.error());
    return kInputIsWrong;
  }
  report(counts->problems);
  AccuracyReport result = make_accuracy_report(*counts, score_cold(measurements, *catalog));
  result.from = "normalised";
  result.unit = "samples/s";
  const std::string plot = options.answer("plot");
  if (!plot.empty()) write_file(plot, accuracy_svg(result));
  print(options.format == OutputFormat::json ? accuracy_json(result, worst)
                                             : accuracy_table(result, worst));
  return result.runs.empty() ? kInputIsWrong : kDone;
}

}  // namespace reckon::cli
