#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/base/quantity.h"

// What a server has measured of itself, for the forecast of the next load.
namespace reckon {

/// Batches of about one size, summed.
struct MeasuredBatches {
  double batches = 0, instances = 0;
  Seconds busy{};

  double size() const { return instances / batches; }
  Seconds time() const { return busy / batches; }
};

/// Whether a text is what a `reckon-worker serve` says at /metrics.
bool is_serving_metrics(std::string_view text);

/// Its batches, by size. The errors name `name`.
Expected<std::vector<MeasuredBatches>> parse_serving_metrics(const std::string& name,
                                                             std::string_view text);

/// Of a batch of b requests: S(b) = batch + b request, and what a request takes outside the queue.
struct MeasuredOverhead {
  Seconds batch{}, request{};
  double error = 0;  // the largest of a size, relative
};

/// Least squares of the relative errors of S, each size weighted by its batches; neither part is
/// below 0. nullopt: all batches had one size, from which the parts cannot be told apart.
std::optional<MeasuredOverhead> fit_serving_overhead(const std::vector<MeasuredBatches>& measured);

/// What a request took on average between its first byte and its place in the queue, and between
/// its result and the last byte of its answer; nullopt: the page does not say it.
std::optional<Seconds> measured_outside(std::string_view text);

/// What /metrics says of a server: batches as a line, and where the line is off by more than
/// kLineError of some size as a table of what each took.
struct MeasuredService {
  std::optional<MeasuredOverhead> line;           // nullopt: all batches had one size
  std::vector<std::pair<double, Seconds>> times;  // by size, ascending; empty: the line does
  Seconds outside{};
};
inline constexpr double kLineError = 0.1;
MeasuredService fit_serving(const std::vector<MeasuredBatches>& measured,
                            std::optional<Seconds> outside);

/// The layer of a scenario (--layer) that says so.
std::string serving_layer(const MeasuredService& service, const std::string& from);

}  // namespace reckon
