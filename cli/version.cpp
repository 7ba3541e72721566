#include "cli/version.h"

#include <fmt/format.h>

#include "reckon_commit.h"

namespace reckon::cli {

std::string version_line(std::string_view program, std::string_view catalog_date) {
  std::string from;
  if (constexpr std::string_view commit = RECKON_COMMIT; !commit.empty())
    from = fmt::format("commit {}", commit);
  if (!catalog_date.empty())
    from += fmt::format("{}catalog of {}", from.empty() ? "" : ", ", catalog_date);
  return fmt::format("{} " RECKON_VERSION "{}{}{}", program, from.empty() ? "" : " (", from,
                     from.empty() ? "" : ")");
}

}  // namespace reckon::cli
