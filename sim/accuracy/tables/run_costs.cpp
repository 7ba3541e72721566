#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/accuracy/predict.h"
#include "sim/accuracy/tables/cells.h"
#include "sim/accuracy/tables/others_residuals.h"
#include "sim/accuracy/tables/run_schedule.h"
#include "sim/accuracy/tables/tables.h"

// Whole training runs: hours and US dollars.
namespace reckon {
namespace {

constexpr std::array<std::string_view, 18> kCostColumns{
    "id",       "source",       "year",        "framework",    "hardware", "machine",
    "machines", "accelerators", "accelerator", "usd_per_hour", "model",    "model_text",
    "dataset",  "epochs",       "batch",       "hours",        "usd",      "notes"};

bool mentions(std::string_view text, std::string_view part) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; };
  const auto same = [&](char a, char b) { return lower(a) == lower(b); };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

struct Printed {
  std::string_view text, zoo;
};
/// Networks that no catalog names, as entries describe them.
constexpr std::array<Printed, 5> kNetworks{{{"resnet 164 (with bottleneck)", "resnet164_cifar10"},
                                            {"resnet 164 (without", "resnet164_basic_cifar10"},
                                            {"resnet 9", "resnet9_cifar10"},
                                            {"resnet9", "resnet9_cifar10"},
                                            {"baidunet9", "resnet9_cifar10"}}};

std::string_view model_of(const Cells& cells) {
  if (!cells.blank("model")) return cells.text("model");
  for (const Printed& p : kNetworks)
    if (mentions(cells.text("model_text"), p.text)) return p.zoo;
  return cells.text("model_text");
}

/// The stacks that the catalog tells apart; of others the middle of all is taken.
std::string_view stack_of(std::string_view framework) {
  if (mentions(framework, "mxnet")) return "mxnet";
  if (mentions(framework, "tensorflow") || mentions(framework, "tensorpack")) return "tf1";
  return mentions(framework, "torch") ? "pytorch" : "other";
}

/// Nobody prints it. Where fp16 is faster it was used from 2018 on (general knowledge: the
/// frameworks' mixed precision of that year); TPUs multiply in bf16.
std::string_view precision_of(const Accelerator& a, double year) {
  constexpr double kMixedPrecision = 2018, kWorthIt = 1.5;  // year; fp16's peak over fp32's
  if (a.kind == AcceleratorKind::tpu) return "bf16";
  const auto half = a.peak_for(Precision::fp16), full = a.peak_for(Precision::fp32);
  const bool faster = half && full && half->value / full->value > kWorthIt;
  return faster && year >= kMixedPrecision ? "fp16" : "fp32";
}

/// Not printed: 128 for CIFAR-10 [He 2016, arXiv:1512.03385, sec. 4.2], 32 an accelerator for
/// ImageNet (its 256 on eight, sec. 3.4).
double usual_batch(std::string_view dataset, int accelerators) {
  constexpr double kCifar = 128, kOfOne = 32;  // samples of a step; of an accelerator
  return dataset == "cifar10" ? std::max(kCifar, double(accelerators)) : kOfOne * accelerators;
}

/// The network of the machine that the row names; of InfiniBand that nobody describes 100 Gb/s
/// (general knowledge: EDR, of 2018).
std::optional<BytesPerSecond> network_of(const Cells& cells, const Catalog& catalog) {
  constexpr BytesPerSecond kEdr{100e9 / 8};
  for (const Machine& m : catalog.machines)
    if (m.name == cells.text("machine")) return m.network.value;
  if (mentions(cells.text("hardware"), "infiniband")) return kEdr;
  return std::nullopt;
}

RunConfiguration configuration_of(const Cells& cells, const Accelerator& card, int accelerators,
                                  int machines, double year, TextPool& pool,
                                  const Catalog& catalog) {
  RunConfiguration run;
  run.accelerator = card.name;
  run.accelerators = accelerators;
  run.nodes = machines;
  run.accelerators_per_node = accelerators / machines;
  run.inter_node = network_of(cells, catalog);
  run.model = pool.keep(model_of(cells));
  run.precision = precision_of(card, year);
  run.intra_node_link = run.recompute = "unknown";
  run.strategy = accelerators == 1 ? "single" : "all_reduce";
  run.stack = stack_of(cells.text("framework"));
  return run;
}

struct Rows {
  const Catalog& catalog;
  TextPool& pool;
  Predictor predict;
};

/// Hours of arithmetic for the row's schedule.
tl::expected<double, std::string> predicted_hours(const Cells& cells, RunConfiguration run,
                                                  const Schedule& schedule, Rows& rows) {
  const Dataset* data = rows.catalog.find_dataset(cells.text("dataset"));
  if (data == nullptr)
    return tl::unexpected(fmt::format("unknown dataset {}", cells.text("dataset")));
  constexpr double kHour = 3600;
  double seconds = 0;
  for (const SchedulePart& part : schedule.parts) {
    run.batch_per_accelerator = std::max(1.0, part.global_batch / run.accelerators);
    run.global_batch = static_cast<std::int64_t>(run.batch_per_accelerator * run.accelerators);
    const Predicted& p = rows.predict(run);
    if (!p) return tl::unexpected(p.error());
    seconds += part.epochs * data->samples.value.v * schedule.image_cost / p->rate.v;
  }
  return seconds / kHour;
}

/// A row whose hours are predicted by the step model alone.
struct CostedRow {
  ScoredRun hours;
  double price = 0, usd = 0;  // of an hour; measured, 0: not printed
};

CostedRow predicted_row(const Cells& cells, const NamedCsv& csv, const RunConfiguration& run,
                        double hours, TextPool& pool) {
  CostedRow row;
  ScoredRun& r = row.hours;
  r.at.line = csv.line();
  r.at.id = pool.keep(cells.text("id"));
  r.at.source = pool.keep(cells.text("source"));
  r.at.trust = 'B';
  r.at.run = run;
  r.figure = "hours of a whole run";
  r.measured = parse_number(cells.text("hours")).value_or(0);
  r.predicted = hours;
  row.price = parse_number(cells.text("usd_per_hour")).value_or(0);
  row.usd = parse_number(cells.text("usd")).value_or(0);
  return row;
}

/// Each row moved by what the others show, and its bill.
std::vector<ScoredRun> moved_by_others(std::span<const CostedRow> rows) {
  std::vector<RowResidual> residuals;
  for (const CostedRow& row : rows)
    residuals.push_back({row.hours.at.id, row.hours.at.run.model,
                         std::log(row.hours.measured / row.hours.predicted)});
  std::vector<ScoredRun> out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ScoredRun r = rows[i].hours;
    r.at.run.variant = r.at.id;  // a group of its own
    r.predicted *= factor_of_others(residuals, i);
    r.low = r.high = r.predicted;
    out.push_back(r);
    if (rows[i].price <= 0 || rows[i].usd <= 0) continue;
    r.figure = "US dollars of a whole run";
    r.measured = rows[i].usd;
    r.predicted *= rows[i].price;
    r.low = r.high = r.predicted;
    out.push_back(r);
  }
  return out;
}

}  // namespace

Expected<ScoredTable> score_run_costs(std::string_view file_name, std::string_view bytes,
                                      TextPool& pool, const Catalog& catalog) {
  auto csv = NamedCsv::open(file_name, bytes, kCostColumns);
  if (!csv) return tl::unexpected(std::move(csv.error()));
  ScoredTable table;
  Rows rows{catalog, pool, Predictor(catalog)};
  std::vector<CostedRow> predicted;
  while (csv->next(table.counts)) {
    Cells cells(*csv, table.counts);
    const int machines = cells.count("machines");
    const double epochs = cells.above_zero("epochs", 1e6), year = cells.above_zero("year", 1e4);
    cells.above_zero("hours");
    if (!cells.blank("usd_per_hour")) cells.above_zero("usd_per_hour");
    const bool on_cpus = cells.text("accelerators") == "0";
    const int accelerators = on_cpus ? 1 : cells.count("accelerators");
    const auto schedule =
        schedule_of(cells.text("batch"), epochs, usual_batch(cells.text("dataset"), accelerators));
    if (!schedule) cells.wrong("batch", schedule.error());
    if (!cells.ok()) continue;
    const auto skip = [&](const std::string& why) { table.scored.skipped.add(why, csv->line()); };
    const Accelerator* card = catalog.find_accelerator(cells.text("accelerator"));
    if (on_cpus || card == nullptr) {
      skip(on_cpus ? "trained on CPUs"
                   : fmt::format("unknown accelerator {}", cells.text("accelerator")));
      continue;
    }
    const RunConfiguration run =
        configuration_of(cells, *card, accelerators, machines, year, pool, catalog);
    Schedule s = *schedule;
    if (mentions(cells.text("notes"), "progressive image sizes"))
      s.image_cost = kProgressiveImages.value;
    const auto hours = predicted_hours(cells, run, s, rows);
    if (!hours) {
      skip(hours.error());
      continue;
    }
    predicted.push_back(predicted_row(cells, *csv, run, *hours, pool));
  }
  table.scored.runs = moved_by_others(predicted);
  return table;
}

}  // namespace reckon
