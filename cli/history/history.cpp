#include "report/run/history.h"
#include "cli/command.h"
#include "cli/history/history_store.h"
#include "cli/options/shared.h"
#include "cli/options/values.h"
#include "cli/output.h"
#include "cli/parse.h"

namespace reckon::cli {
namespace {

struct HistoryOptions : Files, AnswerFormat {
  std::vector<Option> declared() { return {format_option()}; }
  void check() const {
    if (!files.empty()) throw UsageError("history takes no file");
  }
};

constexpr std::size_t kShown = 20;

}  // namespace

std::vector<OptionText> history_options() { return shown_options<HistoryOptions>(); }

int run_history(const Command& self, std::span<const std::string> arguments) {
  const auto options = parse<HistoryOptions>(self, arguments);
  if (!options) return kDone;
  const auto file = history_file();
  const bool there = file && std::filesystem::exists(*file);
  const HistoryScore score = score_history(parse_history(there ? read_text(*file) : ""));
  print(options->format == OutputFormat::json ? history_json(score) : history_table(score, kShown));
  return kDone;
}

}  // namespace reckon::cli
