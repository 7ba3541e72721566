#include "executor/train/records/pod_orders.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "sim/base/unit_text.h"

namespace reckon {
namespace {

constexpr std::string_view kWaitsBehind = "reckon-worker: waits for an order; start left: ";

}  // namespace

std::optional<std::filesystem::path> orders_file() {
  const char* file = std::getenv("RECKON_ORDERS_FILE");
  return file != nullptr && *file != '\0' ? std::optional<std::filesystem::path>(file)
                                          : std::nullopt;
}

std::optional<std::int64_t> read_start(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string text;
  if (!(in >> text)) return std::nullopt;
  const auto number = parse_integer(text);
  return number && *number >= 0 ? std::optional<std::int64_t>(*number) : std::nullopt;
}

std::string waiting_line(std::int64_t behind) {
  return fmt::format("{}{}\n", kWaitsBehind, behind < 0 ? "none" : std::to_string(behind));
}

std::optional<std::int64_t> parse_waiting_line(std::string_view line) {
  if (!line.starts_with(kWaitsBehind)) return std::nullopt;
  line.remove_prefix(kWaitsBehind.size());
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line == "none") return -1;
  const auto number = parse_integer(std::string(line));
  return number && *number >= 0 ? std::optional<std::int64_t>(*number) : std::nullopt;
}

}  // namespace reckon
