#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "sim/accuracy/tables/batch_scaling.h"
#include "sim/accuracy/tables/cells.h"
#include "sim/accuracy/tables/power_limit.h"
#include "sim/accuracy/tables/tables.h"

// Epochs to a target against the batch, and epochs under power limits.
namespace reckon {
namespace {

constexpr std::array<std::string_view, 14> kEnergyColumns{"kind",
                                                          "id",
                                                          "source",
                                                          "dataset",
                                                          "network",
                                                          "batch",
                                                          "optimizer",
                                                          "target_metric",
                                                          "runs_reached",
                                                          "epochs_median",
                                                          "accelerator",
                                                          "power_limit_watts",
                                                          "seconds_per_epoch",
                                                          "average_watts"};

/// What was trained, and how; texts are the pool's.
using Task = std::tuple<std::string_view, std::string_view, std::string_view>;
/// Of a task: its target, or the accelerator and the batch.
using Part = std::tuple<std::string_view, double>;

template <class Point>
struct Row {
  int line = 0;
  std::string_view id, source;
  Point point;
};
template <class Point>
using Tasks = std::map<Task, std::map<Part, std::vector<Row<Point>>>>;

template <class Point>
std::vector<Point> points_of(const std::vector<Row<Point>>& rows) {
  std::vector<Point> points;
  for (const auto& row : rows) points.push_back(row.point);
  return points;
}

std::string task_name(const Task& task) {
  return fmt::format("{}, {}", std::get<1>(task), std::get<0>(task));
}

ScoredRun scored(int line, std::string_view id, std::string_view source, std::string_view figure,
                 double measured, double predicted) {
  ScoredRun r;
  r.at.line = line;
  r.at.id = id;
  r.at.source = source;
  r.at.trust = 'A';
  r.at.run.variant = id;  // a group of its own
  r.figure = figure;
  r.measured = measured;
  r.predicted = r.low = r.high = predicted;
  return r;
}

/// Every other batch of each target from the middle one; the critical batch is that of the task's
/// other targets.
void score_batches(Tasks<BatchEpochs>& tasks, TextPool& pool, ScoredRuns& out) {
  for (auto& [task, targets] : tasks) {
    const std::string_view name = pool.keep(task_name(task));
    for (auto& [target, rows] : targets)
      std::ranges::sort(rows, {}, [](const auto& r) { return std::pair(r.point.batch, r.line); });
    for (const auto& [target, rows] : targets) {
      std::vector<std::vector<BatchEpochs>> others;
      for (const auto& [other, their_rows] : targets)
        if (other != target) others.push_back(points_of(their_rows));
      const double inverse = inverse_critical_batch(others);
      const auto points = points_of(rows);
      const BatchEpochs& given = given_of(points);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (&points[i] == &given) {
          out.skipped.add("given: the middle batch of its target", rows[i].line);
          continue;
        }
        ScoredRun r =
            scored(rows[i].line, rows[i].id, rows[i].source, "epochs to a target, one batch given",
                   points[i].epochs, epochs_at(given, points[i].batch, inverse));
        r.at.run.model = name;
        r.at.run.global_batch = static_cast<std::int64_t>(points[i].batch);
        out.runs.push_back(r);
      }
    }
  }
}

/// Epochs of all tasks but one on an accelerator.
std::vector<std::vector<LimitedEpoch>> epochs_of_others(const Tasks<LimitedEpoch>& tasks,
                                                        const Task& held_out,
                                                        std::string_view accelerator) {
  std::vector<std::vector<LimitedEpoch>> others;
  for (const auto& [task, parts] : tasks) {
    if (task == held_out) continue;
    for (const auto& [part, rows] : parts)
      if (std::get<0>(part) == accelerator && rows.size() > 1) others.push_back(points_of(rows));
  }
  return others;
}

/// Every lower limit of each accelerator and batch from the highest; the law is that of the other
/// tasks on the accelerator.
void score_limits(Tasks<LimitedEpoch>& tasks, TextPool& pool, ScoredRuns& out) {
  for (auto& [task, parts] : tasks)
    for (auto& [part, rows] : parts)
      std::ranges::sort(rows, {},
                        [](const auto& r) { return std::pair(r.point.limit_watts, r.line); });
  for (const auto& [task, parts] : tasks) {
    const std::string_view name = pool.keep(task_name(task));
    std::map<std::string_view, PowerLimitLaw> laws;  // by accelerator
    for (const auto& [part, rows] : parts) {
      const std::string_view accelerator = std::get<0>(part);
      if (!laws.contains(accelerator))
        laws[accelerator] = fit_power_limit(epochs_of_others(tasks, task, accelerator));
      const LimitedEpoch& given = rows.back().point;
      out.skipped.add("given: the highest power limit", rows.back().line);
      for (const auto& row : std::span(rows).first(rows.size() - 1)) {
        const LimitedEpoch e = under_limit(given, row.point.limit_watts, laws[accelerator]);
        const auto add = [&](std::string_view figure, double measured, double predicted) {
          ScoredRun r = scored(row.line, row.id, row.source, figure, measured, predicted);
          r.at.run.model = name;
          r.at.run.accelerator = accelerator;
          r.at.run.accelerators = 1;
          out.runs.push_back(r);
        };
        add("seconds an epoch under a power limit", row.point.time.count(), e.time.count());
        add("watts under a power limit", row.point.watts, e.watts);
      }
    }
  }
}

}  // namespace

Expected<ScoredTable> score_energy_and_convergence(std::string_view file_name,
                                                   std::string_view bytes, TextPool& pool,
                                                   const Catalog& catalog) {
  auto csv = NamedCsv::open(file_name, bytes, kEnergyColumns);
  if (!csv) return tl::unexpected(std::move(csv.error()));
  ScoredTable table;
  Tasks<BatchEpochs> batches;
  Tasks<LimitedEpoch> limits;
  while (csv->next(table.counts)) {
    Cells cells(*csv, table.counts);
    const auto kept = [&](std::string_view column) { return pool.keep(cells.text(column)); };
    const Task task{kept("dataset"), kept("network"), kept("optimizer")};
    const double batch = cells.above_zero("batch");
    if (cells.text("kind") == "convergence") {
      if (cells.ok() && cells.text("runs_reached") == "0") {
        table.scored.skipped.add("no run reached the target", csv->line());
        continue;
      }
      const double epochs = cells.above_zero("epochs_median");
      if (cells.ok())
        batches[task][{kept("target_metric"), 0}].push_back(
            {csv->line(), kept("id"), kept("source"), {batch, epochs}});
    } else if (cells.text("kind") == "power") {
      const LimitedEpoch epoch{cells.above_zero("power_limit_watts"),
                               Seconds{cells.above_zero("seconds_per_epoch")},
                               cells.above_zero("average_watts")};
      const Accelerator* known = catalog.find_accelerator(cells.text("accelerator"));
      const std::string_view name = known != nullptr ? known->name : kept("accelerator");
      if (cells.ok())
        limits[task][{name, batch}].push_back({csv->line(), kept("id"), kept("source"), epoch});
    } else {
      cells.wrong("kind", "kind is convergence or power");
    }
  }
  score_batches(batches, pool, table.scored);
  score_limits(limits, pool, table.scored);
  return table;
}

}  // namespace reckon
