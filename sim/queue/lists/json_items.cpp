#include "sim/queue/lists/json_items.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/reading_iterator.h"
#include "sim/base/text/printable.h"

namespace reckon {
namespace {

SourcePlace place_of_byte(const std::string& file, std::string_view bytes, std::size_t byte) {
  const std::string_view before = bytes.substr(0, byte == 0 ? 0 : byte - 1);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n');
  const std::size_t column =
      start == std::string_view::npos ? before.size() + 1 : before.size() - start;
  return {file, static_cast<int>(line), static_cast<int>(column)};
}

}  // namespace

void each_json_item(const std::string& file, std::string_view bytes, std::string_view key,
                    Diagnostics& problems,
                    const std::function<void(const nlohmann::json&, int)>& item) {
  using Json = nlohmann::json;
  const int item_depth = key.empty() ? 1 : 2;
  const char *now = bytes.data(), *counted = now;
  int line = 1, item_line = 0;
  bool in_list = key.empty(), any_list = false;
  const auto callback = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key && depth == 1 && !key.empty()) in_list = parsed == key;
    if (event == Json::parse_event_t::array_start && depth == item_depth - 1 && in_list)
      any_list = true;
    if (!in_list || depth != item_depth) return true;
    if (event == Json::parse_event_t::object_start) {
      line += static_cast<int>(std::count(counted, now, '\n'));
      counted = now;
      item_line = line;
    }
    if (event != Json::parse_event_t::object_end) return true;
    item(parsed, item_line);
    return false;
  };
  try {
    const auto whole = Json::parse(ReadingIterator(bytes.data(), &now),
                                   ReadingIterator(bytes.data() + bytes.size(), &now), callback);
    if (!any_list)
      problems.push_back(
          {Severity::error,
           {file, 1, 0},
           key.empty() ? "this is no list of jobs" : fmt::format("there is no list '{}'", key),
           ""});
  } catch (const Json::parse_error& e) {
    problems.push_back({Severity::error, place_of_byte(file, bytes, e.byte),
                        fmt::format("this is no JSON: {}", printable(e.what())), ""});
  }
}

}  // namespace reckon
