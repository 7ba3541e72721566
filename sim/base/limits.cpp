#include "sim/base/limits.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "sim/base/unit_text.h"

namespace reckon {
namespace {

constexpr const char* kMaxTime = "RECKON_MAX_CPU_TIME";
constexpr const char* kMaxMemory = "RECKON_MAX_MEMORY";

template <class Parse>
double from_environment(const char* name, double otherwise, Parse parse) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  const Parsed<double> value = parse(text);
  if (!value || *value <= 0)
    throw std::runtime_error(
        fmt::format("{}: {}", name, value ? "it must be above 0" : value.error()));
  return *value;
}

}  // namespace

WorkLimits work_limits() {
  const WorkLimits usual;
  const auto seconds = [](std::string_view text) {
    return parse_duration(text).map([](Seconds s) { return s.count(); });
  };
  const auto bytes = [](std::string_view text) {
    return parse_bytes(text).map([](Bytes b) { return b.v; });
  };
  return {from_environment(kMaxTime, usual.cpu_seconds, seconds),
          from_environment(kMaxMemory, usual.bytes, bytes)};
}

std::string hint_of_time(std::string_view ways_out, double cpu_seconds) {
  return fmt::format("{}; {}={:.0f}h allows it", ways_out, kMaxTime, std::ceil(cpu_seconds / 3600));
}

std::string hint_of_memory(std::string_view ways_out, double bytes) {
  return fmt::format("{}; {}={:.0f}GB allows it", ways_out, kMaxMemory, std::ceil(bytes / 1e9));
}

}  // namespace reckon
