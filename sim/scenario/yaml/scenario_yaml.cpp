#include "sim/scenario/yaml/scenario_yaml.h"

#include <fmt/format.h>

#include <set>

#include "sim/base/unit_text.h"
#include "sim/scenario/yaml/document.h"
#include "sim/scenario/yaml/fields.h"
#include "sim/scenario/yaml/layers.h"
#include "sim/scenario/yaml/pace_fields.h"

namespace reckon {
namespace {

constexpr double kMostRepeats = 1000;

const Fields<JobSpec>& job_fields() {
  using J = JobSpec;
  constexpr double kMostGpusOfJob = 1e6;
  static const Fields<J> table = with_owner<J>({
      required(name_field("name", &JobSpec::name, "Unique name.", "a")),
      number_field("submit", &JobSpec::submit, Form{Form::Kind::duration, 0, kLatestSubmit},
                   "When it is queued; default: 0h.", "2h"),
      number_field("every", &JobSpec::every, above_zero(Form::Kind::duration, kLatestSubmit),
                   "It is submitted again after each such time; needs times.", "1d"),
      number_field("times", &JobSpec::times, whole(1, kMostRepeats),
                   "How often it is submitted in all; needs every.", "7"),
      block_field<workload_fields>("workload", &JobSpec::workload, check_workload,
                                   "What it trains; or give its duration or `job`.",
                                   "{model: resnet50_v1_5, dataset: imagenet, train: "
                                   "{epochs: 90}, batch_per_accelerator: 64}"),
      number_field("gpus", &J::gpus, whole(1, kMostGpusOfJob),
                   "Under cluster.scheduler: its GPUs, all at once.", "8"),
      number_field("duration", &J::duration, duration_above_zero(),
                   "Under cluster.scheduler: how long it runs.", "2h"),
      text_field("job", &J::job,
                 "Under cluster.scheduler: scenario of one training, relative to this file, whose "
                 "length on each pool is the step model's.",
                 "bert.yaml"),
      number_field("limit", &J::limit, duration_above_zero(),
                   "Time limit that it asks for; default: none.", "4h"),
      pace_field<J>(),
      across_leaves_field<J>(),
      pod_field<J>(),
      text_field("user", &J::user, "Whose job it is.", "ann"),
      text_field("team", &J::team, "Team of the user (account of Slurm).", "vision"),
  });
  return table;
}

void check_last_submit(Reader& reader, const YamlNode& node, const JobSpec& job) {
  const auto* times = node.find("times");
  const Seconds last = job.submit + (job.times - 1) * job.every.value_or(Seconds{0});
  if (times == nullptr || last.count() <= kLatestSubmit) return;
  reader.error(
      times->value.at,
      fmt::format("{} is submitted for the last time after {}, but must be within {}",
                  reader.subject(), format_duration(last), format_duration(Seconds{kLatestSubmit})),
      "a smaller every, or fewer times");
}

/// What says how long it takes; check_queue() says where all but `workload` may stand.
void check_length(Reader& reader, const YamlNode& item) {
  constexpr std::array<std::string_view, 3> kLengths{"workload", "duration", "job"};
  const bool said = std::ranges::any_of(
      kLengths, [&](auto key) { return item.has(key) || reader.misspelt(key); });
  if (!said)
    reader.error(fmt::format("{} needs 'workload'", reader.subject()),
                 "what it trains; under cluster.scheduler a duration or the file of a job will do");
  else
    check_one_of(reader, item, kLengths, 0);
  if (!item.has("duration"))
    for (const std::string_view key : {"pace", "across_leaves", "resource"})
      if (const auto* beside = item.find(key))
        reader.error(beside->key_at, fmt::format("'{}' needs 'duration'", key),
                     "the step model says how long a training takes, and where");
}

void read_jobs(Reader& reader, const YamlNode& node, Scenario& scenario) {
  if (node.kind == YamlNode::Kind::list && node.entries.empty()) reader.error("jobs is empty");
  std::set<std::string> names;
  reader.each(node, [&](const YamlNode& item) {
    JobSpec job;
    if (!read_fields(reader, item, job_fields(), job)) return;
    if (item.has("every") != item.has("times"))
      reader.error(fmt::format("{} needs both 'every' and 'times', or none", reader.subject()),
                   "example: every: 1d, times: 7");
    job.has_workload = item.has("workload");
    check_length(reader, item);
    check_last_submit(reader, item, job);
    if (!job.name.empty() && !names.insert(job.name).second)
      reader.error(item.find("name")->value.at, fmt::format("a second job is named '{}'", job.name),
                   "job names must be unique: results and --set use them");
    scenario.jobs.push_back(std::move(job));
  });
}

const Fields<ForecastSpec>& forecast_fields() {
  static const Fields<ForecastSpec> table{
      number_field("replications", &ForecastSpec::replications, whole(1, 1e6),
                   "Simulated samples; default: 1000.", "1000"),
      number_field("seed", &ForecastSpec::seed, whole(0, 0x1p53), "Root of randomness; default: 1.",
                   "1"),
  };
  return table;
}

constexpr std::string_view kNames =
    "none of '-', '.', ':' and blanks first, no control characters, at most 128 bytes";

void read_name(Reader& reader, const YamlNode& node, Scenario& scenario) {
  auto name = reader.text(node);
  if (!name) return;
  if (const std::string mistake = scenario_name_mistake(*name); !mistake.empty())
    return reader.error(fmt::format("the name '{}' {}", shortened(*name), mistake),
                        std::string(kNames));
  scenario.name = std::move(*name);
}

void read_expectations(Reader& reader, const YamlNode& node, Scenario& scenario) {
  reader.each(node, [&](const YamlNode& item) {
    const auto text = reader.text(item);
    if (!text) return;
    constexpr std::size_t kLongest = 200;
    auto expectation = text->size() > kLongest
                           ? tl::make_unexpected(fmt::format("it has {} characters", text->size()))
                           : parse_expectation(*text);
    if (expectation)
      scenario.expect.push_back(std::move(*expectation));
    else
      reader.error(fmt::format("expectation '{}': {}", shortened(*text), expectation.error()),
                   "example: - p95(time) <= 48h");
  });
}

/// Amounts of the currency in which the scenario gives prices, in USD from here on.
void settle_currencies(Reader& reader, const YamlNode& root, Scenario& scenario) {
  const PricesSpec* prices = scenario.prices ? &*scenario.prices : nullptr;
  for (Expectation& e : scenario.expect) {
    if (e.currency.empty()) continue;
    if (prices != nullptr && prices->currency == e.currency && prices->usd_rate) {
      e.value /= *prices->usd_rate;
      continue;
    }
    const auto& lines = root.find("expect")->value.entries;
    const auto line = std::ranges::find_if(lines, [&](const YamlNode::Entry& x) {
      return x.value.text.find(e.text) != std::string::npos;
    });
    check_currency(reader, line->value.at, fmt::format("expectation '{}'", e.text),
                   MoneyText{e.value, e.currency}, prices);
  }
}

void check_scenario(Reader& reader, const YamlNode& root, Scenario& scenario,
                    const Places& places) {
  constexpr std::array<std::string_view, 4> kWork{"workload", "jobs", "trace", "arrivals"};
  const bool serves = root.has("serving") || reader.misspelt("serving");
  check_one_of(reader, root, kWork, serves ? 0 : 1);
  check_queue(reader, root, scenario);
  settle_currencies(reader, root, scenario);
  const auto money_at = [&](const std::string& path, const MoneyText& money) {
    check_currency(reader, places.find(path), path, money,
                   scenario.prices ? &*scenario.prices : nullptr);
  };
  for (const PoolSpec& pool : scenario.cluster.pools)
    if (const auto* machine = std::get_if<MachineInline>(&pool.machine); machine != nullptr) {
      const std::string path = "cluster.pools." + pool.name + ".machine.";
      if (machine->price) money_at(path + "price", *machine->price);
      if (machine->purchase) money_at(path + "purchase", *machine->purchase);
      if (machine->tariff) money_at(path + "tariff", *machine->tariff);
    }
}

/// Of the file, where the scenario gives none.
void take_name_of_file(const std::string& file, Scenario& scenario, Diagnostics& diagnostics) {
  scenario.name = std::filesystem::path(file).stem().string();
  if (const std::string mistake = scenario_name_mistake(scenario.name); !mistake.empty())
    diagnostics.push_back(
        {.at = {.file = file},
         .what = fmt::format("the file's name is the scenario's, and {}", mistake),
         .hint = fmt::format("give another by name: ({})", kNames)});
}

tl::unexpected<Diagnostics> unreadable(const std::filesystem::path& file, std::string what,
                                       std::string hint = "") {
  return tl::unexpected<Diagnostics>(
      Diagnostics{{Severity::error, {file.string(), 0, 0}, std::move(what), std::move(hint)}});
}

}  // namespace

const Fields<Scenario>& scenario_fields() {
  using S = Scenario;
  Form jobs{Form::Kind::list}, expect{Form::Kind::list};
  jobs.fields = &infos_of<job_fields>;
  expect.item = Form::Kind::text;
  static const Fields<S> table{
      field<S>("name", Form{Form::Kind::text}, read_name,
               "Of the scenario; default: the file's name.", "resnet50-spot-p100"),
      field<S>(
          "extends", Form{Form::Kind::text},
          // In a file it is followed before the values are read: what is left came otherwise.
          [](Reader& r, const YamlNode&, S&) {
            r.error("extends stands once, in a file", "give another file with --layer FILE");
          },
          "A scenario that this one changes, relative to this file.", "base.yaml"),
      field<S>(
          "start", Form{Form::Kind::time},
          [](Reader& r, const YamlNode& n, S& s) { s.start = r.time(n); },
          "When it begins, in UTC; calendars need it.", "2026-12-04T18:00:00Z"),
      block_field<workload_fields>("workload", &S::workload, check_workload,
                                   "What is trained, and how.",
                                   "{model: resnet50_v1_5, dataset: imagenet, train: {epochs: 90}, "
                                   "batch_per_accelerator: 64}"),
      required(block_field<cluster_fields>("cluster", &S::cluster, check_cluster,
                                           "What it runs on.",
                                           "{provider: gcp, region: us-central1, pools: [...]}")),
      block_field<prices_fields>("prices", &S::prices, check_prices,
                                 "What you pay, over the catalog's prices.", "{discount: 30%}"),
      block_field<disruptions_fields>("disruptions", &S::disruptions, {}, "What takes nodes away.",
                                      "{preemption: !exponential {mean: 8h}}"),
      field<S>("jobs", jobs, read_jobs, "Instead of workload: several jobs share the cluster.",
               "[{name: a, submit: 0h, workload: {...}}]"),
      block_field<trace_spec_fields>("trace", &S::trace, {}, "Instead of workload: recorded jobs.",
                                     "{file: jobs.csv, format: csv}"),
      block_field<arrivals_fields>("arrivals", &S::arrivals, check_arrivals,
                                   "Instead of workload: jobs of many users, drawn at random.",
                                   "{period: 14d, classes: [{name: small, jobs_per_hour: 12, "
                                   "gpus: 1, duration: 2h}]}"),
      block_field<serving_fields>("serving", &S::serving, check_serving,
                                  "Requests to a trained model, on the pool with role inference.",
                                  "{requests_per_second: 200, batch: {max: 16, wait: 5ms}, "
                                  "replicas: {min: 2, max: 10}}"),
      block_field<forecast_fields>("forecast", &S::forecast, {}, "How often and from which seed.",
                                   "{replications: 1000, seed: 1}"),
      field<S>("expect", expect, read_expectations, "What `reckon check` checks.",
               "[p95(time) <= 48h]"),
      block_field<plan_fields>("plan", &S::plan, {}, "What `reckon plan` may vary and must keep.",
                               "{vary: {nodes: 1..64}, objective: cost}"),
      block_field<planned_fields>(
          "planned", &S::planned, {}, "Of a plan file: what it was made with.",
          "{schema_version: 1, reckon_version: 0.1.0, catalog_digest: 93ce1f0a5b7d2468}"),
  };
  return table;
}

namespace {

Expected<ScenarioFile> read_document(LayeredDocument document, const std::string& name,
                                     std::span<const std::string> overrides) {
  Diagnostics diagnostics;
  ScenarioFile out;
  out.places.file = name;
  out.directory = std::filesystem::path(name).parent_path();
  apply_overrides(document.root, overrides, diagnostics);
  Reader reader(diagnostics, out.places);
  {
    const Reader::Scope scope(reader, "", document.root.at, nullptr);
    if (read_fields(reader, document.root, scenario_fields(), out.scenario))
      check_scenario(reader, document.root, out.scenario, out.places);
  }
  document.name_both_files(diagnostics);
  if (!document.root.has("name")) take_name_of_file(name, out.scenario, diagnostics);
  if (has_errors(diagnostics)) return tl::unexpected<Diagnostics>(std::move(diagnostics));
  return out;
}

Expected<LayeredDocument> layered_document(std::string_view text, const std::string& name,
                                           std::span<const std::filesystem::path> layers) {
  Expected<YamlNode> root = parse_yaml(text, name);
  if (!root) return tl::unexpected<Diagnostics>(std::move(root.error()));
  if (root->kind == YamlNode::Kind::null)
    return unreadable(name, "the scenario is empty", "it needs at least a workload and a cluster");
  auto document = LayeredDocument::of(std::move(*root), name);
  if (!document) return tl::unexpected<Diagnostics>(std::move(document.error()));
  Diagnostics problems;
  for (const std::filesystem::path& layer : layers)
    for (Diagnostic& d : document->add_layer(layer)) problems.push_back(std::move(d));
  if (!problems.empty()) return tl::unexpected<Diagnostics>(std::move(problems));
  return document;
}

}  // namespace

Expected<ScenarioFile> parse_scenario(std::string_view text, std::string name,
                                      std::span<const std::string> overrides,
                                      std::span<const std::filesystem::path> layers) {
  auto document = layered_document(text, name, layers);
  if (!document) return tl::unexpected<Diagnostics>(std::move(document.error()));
  return read_document(std::move(*document), name, overrides);
}

Expected<std::string> flat_scenario(std::string_view text, const std::string& name,
                                    std::span<const std::string> overrides,
                                    std::span<const std::filesystem::path> layers,
                                    std::span<const std::string_view> left_out) {
  auto document = layered_document(text, name, layers);
  if (!document) return tl::unexpected<Diagnostics>(std::move(document.error()));
  Diagnostics problems;
  YamlNode& root = document->root;
  apply_overrides(root, overrides, problems);
  if (has_errors(problems)) return tl::unexpected<Diagnostics>(std::move(problems));
  std::erase_if(root.entries, [&](const YamlNode::Entry& entry) {
    return std::ranges::find(left_out, entry.key) != left_out.end();
  });
  return write_yaml(root);
}

Expected<ScenarioFile> read_scenario(const std::filesystem::path& file,
                                     std::span<const std::string> overrides,
                                     std::span<const std::filesystem::path> layers) {
  const auto text = read_text(file);
  if (!text) return tl::unexpected<Diagnostics>(text.error());
  return parse_scenario(*text, file.string(), overrides, layers);
}

}  // namespace reckon
