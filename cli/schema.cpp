#include "cli/command.h"
#include "cli/options/shared.h"
#include "cli/options/values.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "report/scenario_schema.h"

namespace reckon::cli {
namespace {

struct SchemaOptions : Files {
  std::vector<Option> declared() { return {}; }
  void check() const {
    if (!files.empty()) throw UsageError("schema takes no file: it prints the one schema");
  }
};

}  // namespace

std::vector<OptionText> schema_options() { return shown_options<SchemaOptions>(); }

int run_schema(const Command& self, std::span<const std::string> arguments) {
  const auto options = parse<SchemaOptions>(self, arguments);
  if (!options) return kDone;
  print(scenario_schema());
  return kDone;
}

}  // namespace reckon::cli
