#include "sim/queue/lists/timestamp.h"

#include <chrono>
#include <cstdio>
#include <string>

namespace reckon {

std::optional<std::int64_t> parse_timestamp(std::string_view text, char between) {
  constexpr std::size_t kBetweenAt = 10;
  std::string copy(text);
  if (copy.size() <= kBetweenAt || copy[kBetweenAt] != between) return std::nullopt;
  copy[kBetweenAt] = ' ';
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, end = 0;
  if (std::sscanf(copy.c_str(), "%4d-%2d-%2d %2d:%2d:%2d%n", &year, &month, &day, &hour, &minute,
                  &second, &end) != 6 ||
      end != static_cast<int>(copy.size()))
    return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  const bool in_day =
      hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second < 61;
  if (!date.ok() || !in_day) return std::nullopt;
  return (std::chrono::sys_seconds(std::chrono::sys_days(date)) + std::chrono::hours(hour) +
          std::chrono::minutes(minute) + std::chrono::seconds(second))
      .time_since_epoch()
      .count();
}

}  // namespace reckon
