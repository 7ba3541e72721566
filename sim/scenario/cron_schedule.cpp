#include "sim/scenario/cron_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/text/lower_case.h"

namespace reckon {
namespace {

using FieldNames = std::vector<std::string_view>;
const FieldNames kMonths{"",    "jan", "feb", "mar", "apr", "may", "jun",
                         "jul", "aug", "sep", "oct", "nov", "dec"};
const FieldNames kWeekDays{"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kMacros{
    {{"@hourly", "0 * * * *"},
     {"@daily", "0 0 * * *"},
     {"@midnight", "0 0 * * *"},
     {"@weekly", "0 0 * * 0"},
     {"@monthly", "0 0 1 * *"},
     {"@yearly", "0 0 1 1 *"},
     {"@annually", "0 0 1 1 *"}}};

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

struct FieldRange {
  std::string_view what;
  int low, high;
  const FieldNames* names = nullptr;
};

std::optional<int> value_of(std::string_view text, const FieldRange& field) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size())
    return value >= field.low && value <= field.high ? std::optional(value) : std::nullopt;
  if (field.names == nullptr || text.empty()) return std::nullopt;
  const auto found = std::ranges::find(*field.names, lower_case(text));
  if (found == field.names->end()) return std::nullopt;
  return static_cast<int>(found - field.names->begin());
}

/// False: it is no field of that kind.
template <std::size_t N>
bool read_part(std::string_view part, const FieldRange& field, std::bitset<N>& set) {
  int step = 1;
  const std::vector<std::string_view> stepped = split(part, '/');
  if (stepped.size() > 2) return false;
  if (stepped.size() == 2) {
    const auto s = value_of(stepped[1], {field.what, 1, field.high});
    if (!s) return false;
    step = *s;
  }
  int from = field.low, to = field.high;
  if (stepped[0] != "*") {
    const std::vector<std::string_view> ends = split(stepped[0], '-');
    const auto first = value_of(ends[0], field);
    const auto last = ends.size() == 2 ? value_of(ends[1], field) : first;
    if (!first || !last || ends.size() > 2 || *first > *last) return false;
    from = *first;
    to = ends.size() == 1 && stepped.size() == 2 ? field.high : *last;
  }
  for (int v = from; v <= to; v += step) set.set(static_cast<std::size_t>(v) % N);
  return true;
}

template <std::size_t N>
std::string read_field(std::string_view text, const FieldRange& field, std::bitset<N>& set) {
  for (const std::string_view part : split(text, ','))
    if (!read_part(part, field, set))
      return fmt::format("'{}' is no {} ({} to {})", text, field.what, field.low, field.high);
  return {};
}

}  // namespace

Parsed<CronSchedule> CronSchedule::parse(std::string_view given) {
  std::string_view text = given;
  for (const auto& [name, means] : kMacros)
    if (name == given) text = means;
  std::vector<std::string_view> fields;
  for (const std::string_view word : split(text, ' '))
    if (!word.empty()) fields.push_back(word);
  if (fields.size() != 5)
    return tl::unexpected(
        fmt::format("'{}' has not the five fields of a schedule: minute, hour, day of the month, "
                    "month, day of the week",
                    given));
  CronSchedule made;
  std::bitset<8> week;  // cron's Sunday is 0 and 7
  for (const std::string& wrong :
       {read_field(fields[0], {"minute", 0, 59}, made.minutes_),
        read_field(fields[1], {"hour", 0, 23}, made.hours_),
        read_field(fields[2], {"day of the month", 1, 31}, made.days_),
        read_field(fields[3], {"month", 1, 12, &kMonths}, made.months_),
        read_field(fields[4], {"day of the week", 0, 7, &kWeekDays}, week)})
    if (!wrong.empty()) return tl::unexpected(wrong);
  for (std::size_t d = 0; d < 8; ++d)
    if (week[d]) made.week_days_.set(d % 7);
  made.any_day_ = fields[2].starts_with('*');
  made.any_week_day_ = fields[4].starts_with('*');
  return made;
}

bool CronSchedule::matches(std::chrono::sys_seconds time) const {
  using namespace std::chrono;
  const sys_days day = floor<days>(time);
  const year_month_day date{day};
  const hh_mm_ss<seconds> clock{time - day};
  if (!minutes_[static_cast<std::size_t>(clock.minutes().count())] ||
      !hours_[static_cast<std::size_t>(clock.hours().count())] ||
      !months_[static_cast<unsigned>(date.month())])
    return false;
  const bool in_month = days_[static_cast<unsigned>(date.day())];
  const bool in_week = week_days_[weekday{day}.c_encoding()];
  if (any_day_ || any_week_day_) return (any_day_ || in_month) && (any_week_day_ || in_week);
  return in_month || in_week;
}

bool CronSchedule::covers(std::chrono::sys_seconds at, std::chrono::seconds lasts) const {
  using namespace std::chrono;
  for (sys_seconds t = floor<minutes>(at); t > at - lasts; t -= minutes(1))
    if (matches(t)) return true;
  return false;
}

}  // namespace reckon
