#include "report/explain/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/json_parts.h"
#include "report/text.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

struct Part {
  std::string_view name, key;
  Seconds ProfiledParts::*time;
};
constexpr std::array kParts{Part{"products", "product_seconds", &ProfiledParts::product},
                            Part{"attention", "attention_seconds", &ProfiledParts::attention},
                            Part{"memory-bound", "memory_bound_seconds", &ProfiledParts::memory},
                            Part{"exposed communication", "exposed_communication_seconds",
                                 &ProfiledParts::exposed_communication},
                            Part{"idle", "idle_seconds", &ProfiledParts::idle}};

std::string steps_text(const Profile& p) {
  if (p.steps.empty()) return "no step is marked: the time of all";
  const auto [least, most] = std::ranges::minmax(p.steps);
  return fmt::format("{} step{} of {} ({} .. {})", p.steps.size(), p.steps.size() == 1 ? "" : "s",
                     format_duration(p.parts.total()), format_duration(Seconds{least}),
                     format_duration(Seconds{most}));
}

std::string section(const Profile& p, const std::optional<ProfileForecast>& forecast) {
  std::string out =
      fmt::format("{}{}, {}\n", p.tool, p.device.empty() ? "" : ", " + p.device, steps_text(p));
  Columns rows;
  const double total = std::max(1e-12, p.parts.total().count());
  for (const Part& part : kParts) {
    const Seconds t = p.parts.*part.time;
    rows.row({"  " + std::string(part.name), format_duration(t), format_percent(t.count() / total),
              bar(t.count() / total, 40)});
  }
  out += rows.text();
  if (p.parts.communication.count() > 0 && !p.steps.empty())
    out += fmt::format("  communication {}, {} of it hidden behind other kernels\n",
                       format_duration(p.parts.communication),
                       format_duration(p.parts.communication - p.parts.exposed_communication));
  constexpr std::size_t kMost = 5;
  for (const ProfiledCollective& c :
       std::span(p.collectives).first(std::min(kMost, p.collectives.size())))
    out += fmt::format("  {:.3g} {} of {} a step, {} each\n", c.calls, c.name, format_bytes(c.size),
                       format_duration(c.time));
  if (forecast && !p.steps.empty())
    out += fmt::format("  forecast without it: step {}, exposed communication {}\n",
                       format_duration(forecast->step.step),
                       format_duration(forecast->step.exposed_communication));
  return out;
}

std::string section(const DeviceActivity& a, const std::optional<ProfileForecast>& forecast) {
  std::string out = fmt::format("DCGM, {} GPU{}, {} samples at work, {} idle\n", a.gpus,
                                a.gpus == 1 ? "" : "s", a.samples, a.idle_samples);
  Columns rows;
  const auto share = [&](const char* name, const std::optional<double>& value) {
    if (value) rows.row({name, format_percent(*value), bar(*value, 40)});
  };
  share("  any work", a.active);
  share("  multiprocessors", a.multiprocessors);
  share("  warps", a.occupancy);
  share("  tensor cores", a.tensor);
  share("  memory interface", a.memory);
  out += rows.text();
  if (a.watts)
    out += fmt::format(
        "  power {:.0f} W a GPU, {:.0f} W at most{}\n", *a.watts, a.watts_most.value_or(*a.watts),
        forecast && forecast->watts > 0 ? fmt::format(", {} W by the data sheet", forecast->watts)
                                        : "");
  if (a.memory_used)
    out += fmt::format(
        "  memory {} at most{}\n", format_bytes(*a.memory_used),
        forecast ? fmt::format(", {} forecast of {}", format_bytes(forecast->memory.required()),
                               format_bytes(forecast->memory.available))
                 : "");
  return out;
}

std::string section(const CollectiveLog& log, const std::optional<ProfileForecast>&) {
  const CollectiveLine line = line_through(log.samples);
  const auto& largest =
      std::ranges::max(log.samples, {}, [](const CollectiveSample& s) { return s.size.v; });
  std::string out = fmt::format(
      "nccl-tests, {} of {}{}, {} sizes\n  latency {}, bandwidth {} (algorithm) through all "
      "sizes\n  {} take {} out of place",
      log.collective, log.type, log.ranks > 0 ? fmt::format(" on {} ranks", log.ranks) : "",
      log.samples.size(), format_duration(line.latency), format_bandwidth(line.bandwidth),
      format_bytes(largest.size), format_duration(largest.time));
  if (largest.in_place.count() > 0)
    out += fmt::format(", {} in place", format_duration(largest.in_place));
  return out + '\n';
}

Json object(const Profile& p) {
  Json parts = Json::object();
  for (const Part& part : kParts)
    parts[std::string(part.key)] = number((p.parts.*part.time).count());
  parts["communication_seconds"] = number(p.parts.communication.count());
  Json collectives = Json::array();
  for (const ProfiledCollective& c : p.collectives)
    collectives.push_back({{"name", c.name},
                           {"bytes", number(c.size.v)},
                           {"calls_per_step", number(c.calls)},
                           {"seconds", number(c.time.count())}});
  return {{"kind", "profile"},
          {"tool", p.tool},
          {"device", text_or_null(p.device)},
          {"step_seconds", p.steps},
          {"parts", std::move(parts)},
          {"collectives", std::move(collectives)}};
}
Json object(const DeviceActivity& a) {
  const auto value = [](const std::optional<double>& v) { return v ? number(*v) : Json(nullptr); };
  return {{"kind", "activity"},
          {"gpus", a.gpus},
          {"samples", a.samples},
          {"active", value(a.active)},
          {"multiprocessors", value(a.multiprocessors)},
          {"occupancy", value(a.occupancy)},
          {"tensor", value(a.tensor)},
          {"memory_interface", value(a.memory)},
          {"power_watts", value(a.watts)},
          {"memory_used_bytes", a.memory_used ? number(a.memory_used->v) : Json(nullptr)}};
}
Json object(const CollectiveLog& log) {
  const CollectiveLine line = line_through(log.samples);
  Json samples = Json::array();
  for (const CollectiveSample& s : log.samples)
    samples.push_back({{"bytes", number(s.size.v)},
                       {"seconds", number(s.time.count())},
                       {"in_place_seconds", number(s.in_place.count())}});
  return {{"kind", "collective"},
          {"collective", log.collective},
          {"ranks", log.ranks},
          {"latency_seconds", number(line.latency.count())},
          {"bandwidth_bytes_per_second", number(line.bandwidth.v)},
          {"samples", std::move(samples)}};
}

}  // namespace

std::string profile_sections(std::span<const ProfiledFile> files, int width) {
  std::string out;
  for (const ProfiledFile& f : files) {
    const std::string text =
        std::visit([&](const auto& what) { return section(what, f.forecast); }, f.what);
    for (const std::string& line : wrap(f.file + ':', width)) out += line + '\n';
    out += "  " + text + '\n';
  }
  return out;
}

Json profiles_array(std::span<const ProfiledFile> files) {
  Json all = Json::array();
  for (const ProfiledFile& f : files) {
    Json one = std::visit([](const auto& what) { return object(what); }, f.what);
    one["file"] = f.file;
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace reckon
