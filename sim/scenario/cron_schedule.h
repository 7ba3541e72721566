#pragma once
#include <bitset>
#include <chrono>
#include <string>
#include <string_view>

#include "sim/base/unit_text.h"

// Times of a schedule in cron's five fields, in UTC.
namespace reckon {

/// Minute, hour, day of the month, month, day of the week (0 and 7: Sunday), each `*`, a value, a
/// range, a list of them or steps of one (`*/15`); names of months and days; or @hourly, @daily
/// (@midnight), @weekly, @monthly, @yearly (@annually). Where both days are restricted, either is
/// enough [crontab(5); kubernetes.io, "CronJob", "Writing a CronJob spec"].
class CronSchedule {
 public:
  /// The error is a sentence.
  static Parsed<CronSchedule> parse(std::string_view text);
  bool matches(std::chrono::sys_seconds minute) const;
  /// Is `at` within `lasts` of one of the schedule's times, that time included?
  bool covers(std::chrono::sys_seconds at, std::chrono::seconds lasts) const;

 private:
  std::bitset<60> minutes_;
  std::bitset<24> hours_;
  std::bitset<32> days_;
  std::bitset<13> months_;
  std::bitset<7> week_days_;
  bool any_day_ = true, any_week_day_ = true;
};

}  // namespace reckon
