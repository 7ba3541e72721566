#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "sim/base/random.h"
#include "sim/scenario/resolve/draft.h"

// Reclaim traces: recorded ones in the format of skypilot-org/spot-traces, and generated ones.
//   {"metadata": {"gap_seconds": 300}, "data": [1, 1, 0, ...]}
// data[k] is how many instances were up at k * gap; a fall from a to b takes the instances b+1..a.
namespace reckon::planning {
namespace {

constexpr Purpose kGeneratedTrace{"reclaim_trace"};
constexpr std::uintmax_t kLargestTrace = 4u << 20;  // a sample takes 350 bytes while it is read
constexpr int kMostUp = 65'536;                     // instances at once, as nodes of a pool
constexpr double kMostReclaims = 1e7;               // that can be held: 8 bytes each
constexpr Seconds kLongestTrace = std::chrono::hours(100 * 365 * 24);

struct Recorded {
  double gap_seconds = 0;
  std::vector<int> up;
};

Parsed<Recorded> read_recorded(const std::filesystem::path& file, const std::string& name) {
  std::error_code unreadable;
  const std::uintmax_t size = std::filesystem::file_size(file, unreadable);
  if (unreadable) return tl::unexpected(fmt::format("cannot read the trace '{}'", name));
  if (size > kLargestTrace)
    return tl::unexpected(fmt::format("the trace '{}' is larger than 4 MiB", name));
  std::ifstream stream(file);
  std::stringstream text;
  text << stream.rdbuf();
  try {  // JSON is YAML
    const YAML::Node root = YAML::Load(text.str());
    Recorded recorded;
    recorded.gap_seconds = root["metadata"]["gap_seconds"].as<double>();
    for (const YAML::Node& item : root["data"]) recorded.up.push_back(item.as<int>());
    return recorded;
  } catch (const YAML::Exception& e) {
    return tl::unexpected(
        fmt::format("'{}' is not a trace of the form {{\"metadata\": {{\"gap_seconds\": 300}}, "
                    "\"data\": [1, 0, ...]}}: {}",
                    name, e.msg));
  }
}

/// What our slots hold together: each recorded one is replayed so often.
bool too_many(double recorded, std::size_t recorded_slots, int nodes) {
  const double rounds = std::ceil(double(nodes) / double(recorded_slots));
  return recorded * rounds > kMostReclaims;
}

std::string too_many_text(const std::string& trace, int nodes) {
  return fmt::format("{} has more than {:.0e} reclaims on {} nodes, which is the limit", trace,
                     kMostReclaims, nodes);
}

/// Node slots beyond the recorded ones replay them again, each later by an equal share of the
/// trace's length: otherwise one recorded reclaim would take many nodes of ours at the same
/// instant.
ReclaimTimes spread_over_slots(const std::vector<std::vector<Seconds>>& recorded, Seconds length,
                               int nodes) {
  ReclaimTimes times;
  times.length = length;
  const std::size_t own = recorded.size();
  const std::size_t slots = static_cast<std::size_t>(nodes);
  const std::size_t rounds = (slots + own - 1) / own;
  for (std::size_t slot = 0; slot < slots; ++slot) {
    const std::size_t round = slot / own;
    const Seconds shift = length * (double(round) / double(rounds));
    std::vector<Seconds> shifted;
    for (const Seconds at : recorded[slot % own])
      shifted.push_back(at + shift < length ? at + shift : at + shift - length);
    std::sort(shifted.begin(), shifted.end());
    times.by_slot.push_back(std::move(shifted));
  }
  return times;
}

Parsed<ReclaimTimes> from_file(const TraceReclaim& trace, const std::filesystem::path& directory,
                               int nodes) {
  const Parsed<Recorded> read = read_recorded(directory / trace.file, trace.file);
  if (!read) return tl::unexpected(read.error());
  const double gap = trace.gap ? trace.gap->count() : read->gap_seconds;
  const int most = read->up.empty() ? 0 : *std::max_element(read->up.begin(), read->up.end());
  if (!(gap > 0) || most < 1 || *std::min_element(read->up.begin(), read->up.end()) < 0)
    return tl::unexpected(
        fmt::format("the trace '{}' has no instance that is ever up, a negative count, or no "
                    "positive gap between its samples",
                    trace.file));
  if (most > kMostUp)
    return tl::unexpected(fmt::format("the trace '{}' has {} instances at once; at most {} can be",
                                      trace.file, most, kMostUp));
  const Seconds length{gap * double(read->up.size())};
  if (length > kLongestTrace)
    return tl::unexpected(
        fmt::format("the trace '{}' is longer than 100 years; is its gap right?", trace.file));
  double falls = 0;
  for (std::size_t k = 1; k < read->up.size(); ++k)
    falls += std::max(0, read->up[k - 1] - read->up[k]);
  if (too_many(falls, std::size_t(most), nodes))
    return tl::unexpected(too_many_text(fmt::format("the trace '{}'", trace.file), nodes));
  std::vector<std::vector<Seconds>> taken(static_cast<std::size_t>(most));
  for (std::size_t k = 1; k < read->up.size(); ++k)
    for (int slot = read->up[k]; slot < read->up[k - 1]; ++slot)
      taken[static_cast<std::size_t>(slot)].push_back(Seconds{gap * double(k)});
  return spread_over_slots(taken, length, nodes);
}

/// A renewal process a node: exponential times between reclaims, each node with its own stream.
ReclaimTimes generate(const TraceReclaim::Generate& g, int nodes) {
  ReclaimTimes times;
  times.length = g.duration;
  std::vector<std::vector<Seconds>> taken(static_cast<std::size_t>(g.nodes));
  for (std::size_t node = 0; node < taken.size(); ++node) {
    RandomStream stream(g.seed, 0, kGeneratedTrace, static_cast<std::uint32_t>(node));
    for (Seconds at = g.mean * stream.exponential(); at < g.duration;
         at += g.mean * stream.exponential())
      taken[node].push_back(at);
  }
  return spread_over_slots(taken, g.duration, nodes);
}

}  // namespace

Parsed<ReclaimTimes> reclaim_times(const TraceReclaim& trace,
                                   const std::filesystem::path& directory, int nodes) {
  if (!trace.generate) return from_file(trace, directory, nodes);
  const TraceReclaim::Generate& g = *trace.generate;
  if (!(g.mean.count() > 0) || !(g.duration.count() > 0) || g.nodes < 1)
    return tl::unexpected(
        std::string("a generated trace needs a mean and a duration above 0 and at least one node"));
  if (g.duration / g.mean * double(g.nodes) > kMostReclaims)
    return tl::unexpected(
        fmt::format("the generated trace has {:.3g} reclaims; at most 1e7 can be held",
                    g.duration / g.mean * double(g.nodes)));
  if (too_many(g.duration / g.mean * double(g.nodes), std::size_t(g.nodes), nodes))
    return tl::unexpected(too_many_text("the generated trace", nodes));
  return generate(g, nodes);
}

}  // namespace reckon::planning
