#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "sim/accuracy/scoring/fit/fit.h"

// What software stacks have in common on all accelerators: log(stack's speed / row's) = m + v + u +
// noise, with m of the row, v of the stack's family (what follows the last dash: "mlperf", "ngc")
// and u of the stack, each around zero. m moves rows for any stack of which only fast or only slow
// stacks are known.
namespace reckon {
namespace {

// Standard deviations of logarithms.
constexpr double kRowSpread = 0.25, kFamilySpread = 0.25, kStackSpread = 0.2;
constexpr double kRowNoise = 0.15;   // of a stack's factor between rows
constexpr double kHostSpread = 0.7;  // of host times between stacks, and of one between rows

struct Point {
  std::size_t row = 0;  // any's
  std::string_view stack, family;
  double log_factor = 0, weight = 0;
  double log_host = 0, host_weight = 0;
};

std::string_view family_of(std::string_view stack) {
  const std::size_t dash = stack.rfind('-');
  return dash == std::string_view::npos ? stack : stack.substr(dash + 1);
}

double weight_of(double noise, double error) { return 1 / (noise * noise + error * error); }

std::vector<Point> points_of(std::span<const FittedRow> rows, const Catalog& catalog) {
  std::vector<Point> points;
  for (std::size_t any = 0; any < rows.size(); ++any) {
    const Efficiency& middle = rows[any].efficiency;
    if (!middle.stack.empty()) continue;
    for (const FittedRow& row : rows) {
      const Efficiency& e = row.efficiency;
      const bool same = e.accelerator == middle.accelerator && e.precision == middle.precision;
      if (!same || e.stack.empty() || !catalog.class_of_stack(e.stack).empty()) continue;
      points.push_back(
          {any, e.stack, family_of(e.stack), std::log(e.memory.value / middle.memory.value),
           weight_of(kRowNoise, row.standard_errors[0]), std::log(e.host.value.count()),
           weight_of(kHostSpread, row.standard_errors[kHostNumber])});
    }
  }
  return points;
}

/// Weighted mean of what is left of points for one effect, drawn to zero; and its standard error.
class Effect {
 public:
  void add(double residual, double weight) {
    sum_ += weight * residual;
    weight_ += weight;
  }
  double value(double spread) const { return sum_ / (weight_ + 1 / (spread * spread)); }
  double error(double spread) const { return 1 / std::sqrt(weight_ + 1 / (spread * spread)); }

 private:
  double sum_ = 0, weight_ = 0;
};

struct Effects {
  std::map<std::size_t, double> rows;
  std::map<std::string_view, double> families, stacks;
};

/// Each effect in turn from what the others leave, until they stand.
Effects effects_of(std::span<const Point> points) {
  constexpr int kRounds = 200;
  Effects e;
  const auto sweep = [&](auto& values, auto key_of, double spread) {
    std::map<typename std::decay_t<decltype(values)>::key_type, Effect> sums;
    for (const Point& p : points) {
      const double others = e.rows[p.row] + e.families[p.family] + e.stacks[p.stack];
      sums[key_of(p)].add(p.log_factor - others + values[key_of(p)], p.weight);
    }
    for (const auto& [key, sum] : sums) values[key] = sum.value(spread);
  };
  for (int round = 0; round < kRounds; ++round) {
    sweep(
        e.rows, [](const Point& p) { return p.row; }, kRowSpread);
    sweep(
        e.families, [](const Point& p) { return p.family; }, kFamilySpread);
    sweep(
        e.stacks, [](const Point& p) { return p.stack; }, kStackSpread);
  }
  return e;
}

/// A stack ("tf1") or a family ("*-mlperf") of points that belong to it.
FittedStack stack_of(std::string name, double log_speed, std::span<const Point> points,
                     std::span<const FittedRow> rows, double usual_host, auto belongs) {
  FittedStack made;
  Effect speed, host;
  std::set<std::string> sources;
  for (const Point& p : points) {
    if (!belongs(p)) continue;
    speed.add(0, p.weight);
    host.add(p.log_host - usual_host, p.host_weight);
    for (const FittedRow& row : rows)
      if (row.efficiency.stack == p.stack &&
          row.efficiency.accelerator == rows[p.row].efficiency.accelerator &&
          row.efficiency.precision == rows[p.row].efficiency.precision) {
        made.runs += row.runs;
        sources.insert(row.sources.begin(), row.sources.end());
      }
  }
  made.stack.name = std::move(name);
  made.stack.speed = Fact<double>{std::exp(log_speed)};
  made.stack.host = Fact<Seconds>{Seconds{std::exp(usual_host + host.value(kHostSpread))}};
  made.speed_error = speed.error(kStackSpread);
  made.host_error = host.error(kHostSpread);
  made.sources.assign(sources.begin(), sources.end());
  return made;
}

}  // namespace

std::vector<FittedStack> share_stacks(std::vector<FittedRow>& rows, const Catalog& catalog) {
  const std::vector<Point> points = points_of(rows, catalog);
  Effects effects = effects_of(points);
  Effect usual;
  for (const Point& p : points) usual.add(p.log_host, p.host_weight);
  constexpr double kAny = 1e3;
  const double usual_host = usual.value(kAny);
  std::vector<FittedStack> stacks;
  for (const auto& [name, effect] : effects.stacks)
    stacks.push_back(stack_of(std::string(name), effect + effects.families[family_of(name)], points,
                              rows, usual_host,
                              [stack = name](const Point& p) { return p.stack == stack; }));
  for (const auto& [family, effect] : effects.families) {
    std::set<std::string_view> members;
    for (const Point& p : points)
      if (p.family == family) members.insert(p.stack);
    if (members.size() < 2) continue;
    stacks.push_back(stack_of("*-" + std::string(family), effect, points, rows, usual_host,
                              [wanted = family](const Point& p) { return p.family == wanted; }));
  }
  for (const auto& [row, effect] : effects.rows) {
    Efficiency& any = rows[row].efficiency;
    const Fact<Seconds> host = any.host;
    any = with_stack(any, {"", Fact<double>{std::exp(effect)}, host});
  }
  return stacks;
}

}  // namespace reckon
