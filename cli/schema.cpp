#include <array>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "report/scenario_schema.h"

namespace reckon::cli {
namespace {

constexpr std::array<std::string_view, 1> kSchemaNames{"help"};

}  // namespace

std::vector<OptionText> schema_options() { return describe_options(kSchemaNames); }

int run_schema(const Command& self, std::span<const std::string> arguments) {
  const Options options = parse_options(self, kSchemaNames, arguments);
  if (options.help) {
    print(help_text(self));
    return kDone;
  }
  if (!options.files.empty()) throw UsageError("schema takes no file: it prints the one schema");
  print(scenario_schema());
  return kDone;
}

}  // namespace reckon::cli
