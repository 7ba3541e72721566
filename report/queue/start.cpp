#include "report/queue/start.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>

#include "report/json_parts.h"
#include "report/text.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

std::string in_time(double seconds) {
  return std::isfinite(seconds) ? format_duration(Seconds{seconds}) : "never";
}

/// "Thu 26 Nov 20:15"; without the day where it is `today`'s.
std::string clock_text(std::int64_t at, double seconds, std::int64_t today = -1) {
  if (!std::isfinite(seconds)) return "never";
  namespace ch = std::chrono;
  constexpr std::array kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                               "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const ch::sys_seconds time{ch::seconds(at + std::llround(seconds))};
  const auto day = ch::floor<ch::days>(time);
  const ch::year_month_day date{day};
  const ch::hh_mm_ss clock{time - day};
  const std::string of_day =
      fmt::format("{:02}:{:02}", clock.hours().count(), clock.minutes().count());
  if (day.time_since_epoch().count() == today) return of_day;
  return fmt::format("{} {} {} {}", kDays[ch::weekday(day).c_encoding()], unsigned(date.day()),
                     kMonths[unsigned(date.month()) - 1], of_day);
}

std::string in_range(const StartQuantiles& q) {
  if (!std::isfinite(q.p5)) return "never";
  return fmt::format("{} ({} .. {})", in_time(q.p50), in_time(q.p5), in_time(q.p95));
}

std::string clock_range(std::int64_t at, const StartQuantiles& q) {
  constexpr std::int64_t kDay = 86400;
  const std::int64_t day =
      std::isfinite(q.p50) ? (at + std::llround(q.p50)) / kDay : std::int64_t{-1};
  return fmt::format("{} ({} .. {})", clock_text(at, q.p50), clock_text(at, q.p5, day),
                     clock_text(at, q.p95, day));
}

std::string blocker_text(const StartAnswer& a, const Blocker& b) {
  const SnapshotJob& job = a.snapshot.jobs[b.job];
  return fmt::format("{}{}{} on {} GPUs, ends in {} ({} of replications)", job.id,
                     job.user.empty() ? "" : " of " + job.user,
                     b.waits ? ", which waits too and starts first," : "", job.gpus,
                     in_range(b.end), format_percent(b.share));
}

std::string counted(double n, const char* what) {
  return fmt::format("{} {}{}", format_count(n), what, n == 1 ? "" : "s");
}

std::vector<std::string> reasons(const StartAnswer& a) {
  constexpr double kAlmostAll = 0.95;
  const StartForecast& f = a.forecast;
  if (f.never)
    return {fmt::format("It can never start: it asks for {} GPUs, and {}.", a.mine.gpus, *f.never)};
  std::vector<std::string> out;
  if (f.at_once >= kAlmostAll)
    out.push_back(
        fmt::format("It starts at once: {} has the GPUs free.", counted(f.nodes, "node")));
  else
    out.push_back(fmt::format("It waits for {}{}", counted(f.nodes, "node"),
                              f.blockers.empty() ? "." : " that are held now by:"));
  if (f.at_once < kAlmostAll)
    for (const Blocker& b : f.blockers) out.push_back("  " + blocker_text(a, b));
  if (f.ahead > 0)
    out.push_back(
        fmt::format("{} that {} now {} before it in the queue; {} ({} .. {}) start first.",
                    counted(double(f.ahead), "job"), f.ahead == 1 ? "waits" : "wait",
                    f.ahead == 1 ? "is" : "are", f.first.p50, f.first.p5, f.first.p95));
  if (f.at_once > 0 && f.at_once < kAlmostAll)
    out.push_back(
        fmt::format("In {} of the replications it starts at once.", format_percent(f.at_once)));
  return out;
}

std::string cluster_text(const ClusterSnapshot& s) {
  int nodes = 0, gpus = 0, held = 0, running = 0, waiting = 0;
  for (const SnapshotNode& node : s.nodes)
    if (node.usable && node.gpus > 0) ++nodes, gpus += node.gpus;
  for (const SnapshotJob& job : s.jobs) {
    (job.start ? running : waiting) += 1;
    if (job.start) held += job.gpus;
  }
  return fmt::format("{} nodes with {} GPUs, {} in use by {} jobs; {} wait", nodes,
                     format_count(gpus), format_count(held), running, counted(waiting, "job"));
}

Json json_of_start(const StartQuantiles& q) {
  return {{"p5", number(q.p5)}, {"p50", number(q.p50)}, {"p95", number(q.p95)}};
}

Json forecast_of_start(const StartAnswer& a, const StartForecast& f) {
  Json blockers = Json::array();
  for (const Blocker& b : f.blockers) {
    const SnapshotJob& job = a.snapshot.jobs[b.job];
    blockers.push_back({{"job", job.id},
                        {"user", text_or_null(job.user)},
                        {"gpus", job.gpus},
                        {"waits", b.waits},
                        {"share", number(b.share)},
                        {"end_seconds", json_of_start(b.end)}});
  }
  return {{"start_seconds", json_of_start(f.start)},
          {"end_seconds", json_of_start(f.end)},
          {"starts_at_once", number(f.at_once)},
          {"nodes", f.nodes},
          {"jobs_ahead", f.ahead},
          {"jobs_first", json_of_start(f.first)},
          {"waits_for", std::move(blockers)},
          {"never", f.never ? Json(*f.never) : Json(nullptr)}};
}

}  // namespace

std::string start_table(const StartAnswer& a, int width) {
  const std::int64_t at = a.snapshot.at;
  std::string out = fmt::format("{}: {}\n\n", a.scenario, a.asks);
  Columns facts(Columns::Kind::facts);
  if (!a.forecast.never) {
    facts.row({"start", "in " + in_range(a.forecast.start), clock_range(at, a.forecast.start)});
    facts.row({"end", "in " + in_range(a.forecast.end), clock_range(at, a.forecast.end)});
  }
  facts.row({"cluster", cluster_text(a.snapshot)});
  facts.row({"as of", clock_text(at, 0)});
  out += facts.text() + "\n";
  for (const std::string& reason : reasons(a))
    for (const std::string& line : wrap(reason, width))
      out += (reason.starts_with("  ") && !line.starts_with("  ") ? "  " + line : line) + "\n";
  if (!a.alternatives.empty()) {
    Columns rows;
    rows.row({"what would change it", "start in", "end in", "starts at once", ""});
    for (const StartAlternative& other : a.alternatives) {
      const StartForecast& f = other.forecast;
      rows.row({other.what, in_range(f.start), in_range(f.end), format_percent(f.at_once),
                f.never.value_or("")});
    }
    out += "\n" + rows.text();
  }
  out += fmt::format("\nmedian (5th .. 95th percentile) of {} replications, seed {}\n",
                     format_count(a.forecast.replications), a.forecast.seed);
  for (const std::string& note : a.notes)
    out += fmt::format("{}\n", fmt::join(wrap("note: " + note, width), "\n"));
  return out;
}

std::string start_json(const StartAnswer& a) {
  Json out = head("simulate");
  out["scenario"] = a.scenario;
  out["asks"] = a.asks;
  out["snapshot_at"] = a.snapshot.at;
  out["seed"] = a.forecast.seed;
  out["replications"] = a.forecast.replications;
  out["gpus"] = a.mine.gpus;
  out["start_forecast"] = forecast_of_start(a, a.forecast);
  Json others = Json::array();
  for (const StartAlternative& other : a.alternatives) {
    Json row{{"what", other.what}};
    row.update(forecast_of_start(a, other.forecast));
    others.push_back(std::move(row));
  }
  out["alternatives"] = std::move(others);
  out["notes"] = a.notes;
  return dump(out, 2);
}

}  // namespace reckon
