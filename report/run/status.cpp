#include "report/run/status.h"

#include <fmt/format.h>

#include <cmath>
#include <ctime>

#include "report/json_parts.h"
#include "report/table.h"
#include "report/text.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

using SystemTime = std::chrono::system_clock::time_point;

std::tm local_time(SystemTime t) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(t);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  return parts;
}

std::string formatted(const std::tm& t, const char* pattern) {
  char text[64];
  return {text, std::strftime(text, sizeof text, pattern, &t)};
}

std::string end_of_run(const RunStatus& s, SystemTime now) {
  const Quantiles& time = s.estimate.time_seconds;
  if (!std::isfinite(time.p95)) return "may never finish";
  const auto at = [&](double seconds) {
    return now + std::chrono::duration_cast<SystemTime::duration>(Seconds{seconds} - s.elapsed);
  };
  const bool near = time.p95 - s.elapsed.count() < 600;
  const std::string early = time_of_day(at(time.p5), now, near);
  const std::string late = time_of_day(at(time.p95), now, near);
  return "finishes " + (early == late ? early : early + '-' + late);
}

std::string loss_text(std::optional<double> loss) {
  return loss ? fmt::format("{:.4g}", *loss) : std::string("none");
}

}  // namespace

std::string time_of_day(SystemTime at, SystemTime now, bool seconds) {
  const std::tm then = local_time(at), today = local_time(now);
  const bool same_day = then.tm_year == today.tm_year && then.tm_yday == today.tm_yday;
  const char* clock = seconds ? "%H:%M:%S" : "%H:%M";
  return same_day ? formatted(then, clock)
                  : formatted(then, (std::string("%b %d ") + clock).c_str());
}

std::string run_line(const RunStatus& s, SystemTime now, int width) {
  std::vector<std::string> parts;
  parts.push_back(
      fmt::format("step {}/{}", format_count(double(s.steps_done)), format_count(double(s.steps))));
  if (s.step.count() > 0) {
    parts.push_back(end_of_run(s, now));
    if (s.deadline && s.estimate.miss_probability)
      parts.push_back(fmt::format("{} to miss {}", format_percent(*s.estimate.miss_probability),
                                  format_duration(*s.deadline)));
    parts.push_back(fmt::format("step {} (forecast {})", format_duration(s.step),
                                format_duration(s.step_forecast)));
    parts.push_back("loss " + loss_text(s.loss));
    parts.push_back(fmt::format("{:.4g} samples/s", s.samples_per_second.v));
    if (s.estimate.cost_usd) parts.push_back(format_usd(Usd{s.estimate.cost_usd->p50}));
  } else {
    parts.push_back(s.phase == "done" ? "computing" : s.phase);
  }
  if (s.budget && s.spent)
    parts.push_back(fmt::format("{} of {} spent", format_usd(*s.spent), format_usd(*s.budget)));
  if (s.interruptions > 0) parts.push_back(fmt::format("{} interruptions", s.interruptions));
  std::string line;
  for (const std::string& part : parts) {
    const std::string longer = line.empty() ? part : line + "  " + part;
    if (int(longer.size()) <= width) line = longer;
  }
  return line;
}

std::string run_summary(const RunEnd& end, const Forecast& forecast, const WholeRun& whole) {
  const RunStatus& s = end.status;
  const bool finished = end.end.verdict == Verdict::finished;
  std::string out =
      fmt::format("{}: {}\n", forecast.scenario, finished ? "finished" : end.end.reason);
  Columns facts(Columns::Kind::facts);
  facts.row({"", "", "run", "forecast"});
  facts.row({"", "time", time_value(whole.time), time_range(forecast.time_seconds)});
  if (whole.paused.count() > 0) facts.row({"", "paused", time_value(whole.paused), ""});
  if (whole.cost && forecast.cost_usd)
    facts.row({"", "cost", usd_value(whole.cost->v), usd_range(*forecast.cost_usd)});
  facts.row({"", "step", s.step.count() > 0 ? format_duration(s.step) : "none",
             format_duration(s.step_forecast)});
  facts.row({"", "steps", format_count(double(s.steps_done)), format_count(double(s.steps))});
  facts.row({"", "interruptions", std::to_string(s.interruptions),
             fmt::format("{:.2f}", forecast.interruptions_total.mean)});
  facts.row({"", "starts", std::to_string(whole.starts), ""});
  facts.row({"", "loss", loss_text(s.loss), ""});
  return out + facts.text();
}

std::string own_evidence_sentence(const OwnEvidence& e) {
  const std::string runs =
      e.runs == 0 ? "" : fmt::format(" and {} earlier run{} on it", e.runs, e.runs == 1 ? "" : "s");
  return fmt::format("\nStep forecast by a probe of this machine{}: +-{:.0f} %.\n", runs,
                     100 * std::expm1(e.half_width));
}

std::string run_json(const RunEnd& end, const Forecast& forecast, const WholeRun& whole) {
  const RunStatus& s = end.status;
  const bool measured = s.step.count() > 0;
  Json out = head("run");
  out["scenario"] = forecast.scenario;
  out["finished"] = end.end.verdict == Verdict::finished;
  out["reason"] = text_or_null(end.end.reason);
  out["exit_code"] = end.end.exit_code;
  out["time_seconds"] = whole.time.count();
  out["paused_seconds"] = whole.paused.count();
  out["cost_usd"] = whole.cost ? Json(whole.cost->v) : Json(nullptr);
  out["steps"] = s.steps_done;
  out["step"] = {{"seconds", measured ? Json(s.step.count()) : Json(nullptr)}};
  out["samples_per_second"] = measured ? Json(s.samples_per_second.v) : Json(nullptr);
  out["loss"] = s.loss ? number(*s.loss) : Json(nullptr);
  out["starts"] = whole.starts;
  out["interruptions"] = s.interruptions;
  out["checkpoint_step"] = end.checkpoint ? Json(*end.checkpoint) : Json(nullptr);
  out["forecast"] = {{"time_seconds", json_of(forecast.time_seconds)},
                     {"cost_usd", forecast.cost_usd ? json_of(*forecast.cost_usd) : Json(nullptr)},
                     {"step", {{"seconds", forecast.step.step.count()}}},
                     {"steps", forecast.steps}};
  return dump(out, 2);
}

}  // namespace reckon
