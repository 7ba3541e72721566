// A grid of jobs with parameter servers on an emulated cluster, dense and with embedding tables of
// which rows travel alone: 1 to 4 workers, 1 to 3 servers. Against `reckon simulate` of the same
// scenarios, before and after `reckon calibrate` on two of the points, one of each kind. Writes a
// Markdown table; exit code 1 where the errors after it are above their bounds, 77 where namespaces
// are not allowed. With an argument ("sparse 4 3") it runs one point, and calibrates nothing.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>

#include <fmt/format.h>

#include "emulated/emulated_job.h"

namespace {
using namespace reckon;
using namespace reckon::emulated;

/// Of the points that calibration has not seen: the median and the worst error after it.
constexpr double kBoundMedian = 0.04, kBoundWorst = 0.12;

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

std::vector<Point> grid(int arguments, char** argument) {
  std::vector<Point> points;
  for (const bool sparse : {false, true})
    for (int workers = 1; workers <= 4; ++workers)
      for (int servers = 1; servers <= 3; ++servers) {
        const bool asked = arguments < 4 ||
                           (argument[1] == std::string_view(sparse ? "sparse" : "dense") &&
                            argument[2] == std::to_string(workers) &&
                            argument[3] == std::to_string(servers));
        if (asked) points.push_back(point(sparse, workers, servers));
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
  constexpr const char* kKey = "exposed_communication_seconds";
  const test::Workspace w;
  w.write("layer/links.yaml", kLayer);
  std::vector<Point> points = grid(arguments, argument);
  std::string learned;
  const auto file = [](std::size_t k) { return fmt::format("point-{}.yaml", k); };
  try {
    for (std::size_t k = 0; k < points.size(); ++k) {
      Point& p = points[k];
      const std::string out = fmt::format("run-{}", k);
      w.write(file(k), scenario(p.job));
      p.before = forecast(w, file(k), "").at(kKey);
      run(w, p.job, file(k), out);
      p.run = measured(w, p.job, out, &StepRecord::exposed_communication);
      p.job.megabytes = fmt::format("{:.2f}", megabytes_sent(w, p.job, out));
      fmt::print(stderr, "{}, {}: forecast {:.3f} s, run {:.3f} s\n",
                 p.sparse ? "sparse" : "dense", p.job.name, p.before, p.run);
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
      points[k].after = forecast(w, file(k), overlay).at(kKey);
      print(points[k]);
    }
  } catch (const std::exception& error) {
    fmt::print("failed: {}\n", error.what());
    return 1;
  }
  return print_errors(points) ? 0 : 1;
}
