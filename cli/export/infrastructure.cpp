#include <fmt/format.h>

#include "cli/exit_code.h"
#include "cli/export/parts.h"
#include "sim/base/standard_streams.h"

// `reckon export terraform|eksctl|karpenter|aks`.
namespace reckon::cli {

int export_infrastructure(Infrastructure tool, const ExportOptions& options,
                          const LoadedCatalog& catalog) {
  const auto loaded = checked(load_plan(options.files[1], options, catalog));
  const auto made = checked(
      infrastructure_text(tool, cloud_cluster_of(loaded.plan, catalog), loaded.file.places));
  put_out(options, made.text);
  for (const std::string& left : made.left_to_user)
    print_error(fmt::format("reckon: left to you: {}\n", left));
  return kDone;
}

}  // namespace reckon::cli
