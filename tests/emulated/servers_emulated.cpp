// A grid of jobs with parameter servers on an emulated cluster, dense and with embedding tables of
// which rows travel alone: 1 to 4 workers, 1 to 3 servers. Against `reckon simulate` of the same
// scenarios, before and after `reckon calibrate` on two of the points, one of each kind. Writes a
// Markdown table; exit code 1 where the errors after it are above their bounds, 77 where namespaces
// are not allowed.
//
// Arguments: "apart" keeps pushes and pulls apart (`reckon-worker --phases-apart`) and compares
// their sum; "sparse 4 3" runs one point alone, and calibrates nothing.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "emulated/emulated_job.h"

namespace {
using namespace reckon;
using namespace reckon::emulated;

/// Of the points that calibration has not seen: the median and the worst error after it. The worst
/// is one worker that pushes to three servers at once: TCP gives them unequal parts of its link, so
/// that it pulls from the first while it pushes to the last, and the forecast's shares are equal
/// (docs/measurements/2026-11-27-emulated-servers.md).
constexpr double kBoundMedian = 0.07, kBoundWorst = 0.25;

struct Point {
  Job job;
  bool sparse = false;
  double before = 0, run = 0, after = 0;
};

/// 669,706 weights, which all travel.
const char* const kDense =
    "  model: mlp_mnist\n  dataset: {samples: 100000, bytes_per_sample: 785B}\n"
    "  batch_per_accelerator: 1\n";
/// 43,585 weights that travel whole, and tables of 9,746 users and films (160 numbers each, in two
/// tables): ids by Zipf's law. The batch makes rows most of what travels; its products are 0.5
/// GFLOP, 20 ms of one core.
const char* const kSparse =
    "  model: ncf_ml1m\n  dataset: {samples: 100000, bytes_per_sample: 12B}\n"
    "  data: {format: clicks}\n  batch_per_accelerator: 2048\n";

Point point(bool sparse, int workers, int servers) {
  Point p{.sparse = sparse};
  p.job = {.name = fmt::format("{} worker{}, {} server{}", workers, workers > 1 ? "s" : "", servers,
                               servers > 1 ? "s" : ""),
           .workers = workers,
           .servers = servers,
           .workload = sparse ? kSparse : kDense,
           .learned = workers == 2 && servers == 1};
  if (sparse) p.job.worker_link = 10, p.job.server_link = 20;
  return p;
}

std::vector<Point> grid(bool apart, std::span<const std::string_view> one) {
  std::vector<Point> points;
  for (const bool sparse : {false, true})
    for (int workers = 1; workers <= 4; ++workers)
      for (int servers = 1; servers <= 3; ++servers) {
        const bool asked = one.size() < 3 ||
                           (one[0] == (sparse ? "sparse" : "dense") &&
                            one[1] == std::to_string(workers) && one[2] == std::to_string(servers));
        if (!asked) continue;
        points.push_back(point(sparse, workers, servers));
        if (apart) points.back().job.kind = Exchange::servers_apart;
      }
  return points;
}

void print(const Point& p) {
  const auto error = [&](double said) {
    return fmt::format("{:.3f} | {:+.1f} %", said, (said / p.run - 1) * 100);
  };
  fmt::print("| {} | {} | {} | {:.3f} | {} | {}{} |\n", p.sparse ? "sparse" : "dense", p.job.name,
             p.job.megabytes, p.run, error(p.before), error(p.after),
             p.job.learned ? " (calibrated on)" : "");
  std::fflush(stdout);
}

/// What the workers wait for: of the forecast, and of the run.
double waiting(const Point& p, const Json& said) {
  if (p.job.kind == Exchange::servers) return said.at("exposed_communication_seconds");
  return said.at("push_seconds").get<double>() + said.at("pull_seconds").get<double>();
}
double waited(const test::Workspace& w, const Point& p, const std::string& out) {
  if (p.job.kind == Exchange::servers)
    return measured(w, p.job, out, &StepRecord::exposed_communication);
  return measured(w, p.job, out, &StepRecord::push) + measured(w, p.job, out, &StepRecord::pull);
}

/// Of the points that were not calibrated on; sparse, dense or both.
bool print_errors(const std::vector<Point>& points) {
  bool good = true;
  for (const std::string_view of : {"dense", "sparse", "all"}) {
    std::vector<double> errors;
    for (const Point& p : points)
      if (!p.job.learned && (of == "all" || (of == "sparse") == p.sparse))
        errors.push_back(std::abs(p.after / p.run - 1));
    if (errors.empty()) continue;
    const double middle = median(errors), worst = *std::ranges::max_element(errors);
    fmt::print("\n{}, {} points not calibrated on: median {:.1f} %, worst {:.1f} %\n", of,
               errors.size(), middle * 100, worst * 100);
    good = good && middle <= kBoundMedian && worst <= kBoundWorst;
  }
  return good;
}

}  // namespace

int main(int arguments, char** argument) {
  if (const std::string why = EmulatedCluster::why_not(); !why.empty()) {
    fmt::print("SKIPPED: {}\n", why);
    return 77;
  }
  const test::Workspace w;
  w.write("layer/links.yaml", kLayer);
  std::vector<std::string_view> words(argument + 1, argument + arguments);
  const bool apart = !words.empty() && words.front() == "apart";
  if (apart) words.erase(words.begin());
  std::vector<Point> points = grid(apart, words);
  std::string learned;
  const auto file = [](std::size_t k) { return fmt::format("point-{}.yaml", k); };
  try {
    for (std::size_t k = 0; k < points.size(); ++k) {
      Point& p = points[k];
      const std::string out = fmt::format("run-{}", k);
      w.write(file(k), scenario(p.job));
      p.before = waiting(p, forecast(w, file(k), ""));
      run(w, p.job, file(k), out);
      p.run = waited(w, p, out);
      p.job.megabytes = fmt::format("{:.2f}", megabytes_sent(w, p.job, out));
      fmt::print(stderr, "{}, {}: forecast {:.3f} s, run {:.3f} s\n", p.sparse ? "sparse" : "dense",
                 p.job.name, p.before, p.run);
      if (!p.job.learned) continue;
      w.write(out + "/plan.reckon", scenario(p.job));  // what calibrate takes the job from
      learned += ' ' + out;
    }
    const std::string overlay = points.size() > 1 ? calibrate(w, learned) : "";
    fmt::print(
        "| kind | configuration | MB sent | run, median of {} (s) | forecast (s) | error | "
        "calibrated forecast (s) | error |\n|---|---|---|---|---|---|---|---|\n",
        kRuns);
    for (std::size_t k = 0; k < points.size(); ++k) {
      points[k].after = waiting(points[k], forecast(w, file(k), overlay));
      print(points[k]);
    }
  } catch (const std::exception& error) {
    fmt::print("failed: {}\n", error.what());
    return 1;
  }
  return print_errors(points) ? 0 : 1;
}
