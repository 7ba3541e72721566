#include <array>

#include "cli/command.h"
#include "cli/history_store.h"
#include "cli/options.h"
#include "cli/output.h"
#include "report/run/history.h"

namespace reckon::cli {
namespace {

constexpr std::array<std::string_view, 2> kHistoryNames{"format", "help"};
constexpr std::size_t kShown = 20;

}  // namespace

std::vector<OptionText> history_options() { return describe_options(kHistoryNames); }

int run_history(const Command& self, std::span<const std::string> arguments) {
  const Options options = parse_options(self, kHistoryNames, arguments);
  if (options.help) {
    print(help_text(self));
    return kDone;
  }
  if (!options.files.empty()) throw UsageError("history takes no file");
  const auto file = history_file();
  const bool there = file && std::filesystem::exists(*file);
  const HistoryScore score = score_history(parse_history(there ? read_text(*file) : ""));
  print(options.format == OutputFormat::json ? history_json(score) : history_table(score, kShown));
  return kDone;
}

}  // namespace reckon::cli
