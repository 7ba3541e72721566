#include "sim/scenario/mig_profiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace reckon {
namespace {

/// Placements of `nvidia-smi mig -lgipp` on A100 and H100 (MIG User Guide, "Getting Started with
/// MIG", "Creating GPU Instances"), and those of an A30 ("A30 MIG Profiles").
const std::vector<MigProfile>& profiles_of(std::string_view accelerator) {
  static const std::vector<MigProfile> kSeven{{1, 1, {0, 1, 2, 3, 4, 5, 6}},
                                              {1, 2, {0, 2, 4, 6}},
                                              {2, 2, {0, 2, 4}},
                                              {3, 4, {0, 4}},
                                              {4, 4, {0}},
                                              {7, 8, {0}}};
  static const std::vector<MigProfile> kFour{{1, 1, {0, 1, 2, 3}}, {2, 2, {0, 2}}, {4, 4, {0}}};
  return accelerator.starts_with("A30") ? kFour : kSeven;
}
int memory_slices(std::string_view accelerator) { return accelerator.starts_with("A30") ? 4 : 8; }

std::optional<int> digits_in(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The 80 of A100-SXM4-80.
std::optional<int> gigabytes_of(std::string_view accelerator) {
  if (accelerator.starts_with("A30")) return 24;
  const auto at = accelerator.rfind('-');
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view last = accelerator.substr(at + 1);
  if (last.ends_with("GB")) last.remove_suffix(2);
  return digits_in(last);
}

constexpr std::string_view kMedia = "+me";

/// "3g.40gb" in numbers.
struct NameOfProfile {
  int slices = 0, gigabytes = 0;
};
std::optional<NameOfProfile> parts_of_profile(std::string_view name) {
  if (name.ends_with(kMedia)) name.remove_suffix(kMedia.size());
  const auto dot = name.find("g.");
  if (dot == std::string_view::npos || !name.ends_with("gb")) return std::nullopt;
  const auto slices = digits_in(name.substr(0, dot));
  const auto gigabytes = digits_in(name.substr(dot + 2, name.size() - dot - 4));
  if (!slices || !gigabytes) return std::nullopt;
  return NameOfProfile{*slices, *gigabytes};
}

/// One instance after the other at each of its places that is free.
bool places_all(const std::vector<MigProfile>& instances, std::size_t next, unsigned taken) {
  if (next == instances.size()) return true;
  for (const int start : instances[next].starts) {
    const unsigned own = ((1u << instances[next].memory) - 1) << start;
    if ((taken & own) == 0 && places_all(instances, next + 1, taken | own)) return true;
  }
  return false;
}

}  // namespace

std::optional<MigProfile> mig_profile(std::string_view name, std::string_view accelerator) {
  const auto parts = parts_of_profile(name);
  if (!parts) return std::nullopt;
  const auto gigabytes = gigabytes_of(accelerator);
  const int slices = memory_slices(accelerator);
  for (const MigProfile& profile : profiles_of(accelerator)) {
    if (profile.slices != parts->slices) continue;
    const bool fits =
        !gigabytes || std::lround(double(parts->gigabytes) * slices / *gigabytes) == profile.memory;
    if (fits) return profile;
  }
  return std::nullopt;
}

std::vector<std::string> mig_profile_names(std::string_view accelerator) {
  const int gigabytes = gigabytes_of(accelerator).value_or(80);
  std::vector<std::string> names;
  for (const MigProfile& p : profiles_of(accelerator))
    names.push_back(
        fmt::format("{}g.{}gb", p.slices,
                    std::lround(double(gigabytes) * p.memory / memory_slices(accelerator))));
  return names;
}

std::optional<std::string> mig_mistake(const std::map<std::string, int>& instances,
                                       std::string_view accelerator) {
  std::vector<MigProfile> all;
  int media = 0, slices = 0, memory = 0;
  for (const auto& [name, count] : instances) {
    const auto profile = mig_profile(name, accelerator);
    if (!profile) return fmt::format("{} has no profile '{}'", accelerator, name);
    if (name.ends_with(kMedia)) media += count;
    slices += count * profile->slices;
    memory += count * profile->memory;
    // More would not fit whatever the others are.
    all.insert(all.end(), static_cast<std::size_t>(std::min(count, 8)), *profile);
  }
  if (media > 1) return "one instance of a GPU has media extensions (+me) at most";
  const int all_slices = profiles_of(accelerator).back().slices;
  if (slices > all_slices)
    return fmt::format("they take {} compute slices, and a GPU has {}", slices, all_slices);
  if (memory > memory_slices(accelerator))
    return fmt::format("they take {} memory slices, and a GPU has {}", memory,
                       memory_slices(accelerator));
  std::ranges::stable_sort(all, std::greater<>{}, &MigProfile::memory);
  if (!places_all(all, 0, 0)) return "their places overlap, as each begins at certain slices only";
  return std::nullopt;
}

}  // namespace reckon
