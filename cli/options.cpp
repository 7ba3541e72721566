#include "cli/options.h"
#include "cli/usage_hint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/program_options.hpp>
#include <span>

#include "sim/base/diagnostic.h"
#include "sim/base/printable.h"
#include "sim/base/unit_text.h"

namespace reckon::cli {
namespace {

namespace po = boost::program_options;

struct OptionRow {
  std::string_view name;
  std::string_view value;  // "" : a switch
  std::string_view help;
  bool repeatable = false;
};
constexpr std::array kOptions{
    OptionRow{"format", "table|json", "what to print (table)"},
    OptionRow{"set", "PATH=VALUE",
              "change a value of the scenario, such as cluster.pools.p100.nodes.max=8; may be "
              "given again",
              true},
    OptionRow{"layer", "FILE", "a file whose keys are read over the scenario's; may be given again",
              true},
    OptionRow{"seed", "N", "root of all randomness (the scenario's forecast.seed)"},
    OptionRow{"replications", "N",
              "how many times the run is simulated (the scenario's forecast.replications)"},
    OptionRow{
        "sweep", "PATH=VALUES",
        "forecast every value: 8..64 doubles, 8..64..8 steps, 8,16,32 lists; given again: all "
        "combinations",
        true},
    OptionRow{"csv", "FILE", "write the rows of --sweep as CSV"},
    OptionRow{"memo", "FILE.md", "write the answer as one page for who decides"},
    OptionRow{"html", "FILE.html", "write the answer as one page with charts, for any browser"},
    OptionRow{"trace", "FILE",
              "write the events of one replication for ui.perfetto.dev or chrome://tracing"},
    OptionRow{
        "engine", "ENGINE",
        "who answers for the network: fluid, closed-forms, or simgrid, a second opinion, slow "
        "(fluid, and closed-forms for a model that is cut)"},
    OptionRow{"catalog", "DIR",
              "a catalog of your own over the one that comes with reckon; may be given again",
              true},
    OptionRow{"calibration", "FILE", "calibration file from 'reckon calibrate' (repeatable)", true},
    OptionRow{
        "evidence", "FILE.csv",
        "published or own runs that forecasts take for evidence besides those of the catalog; "
        "may be given again",
        true},
    OptionRow{"without-evidence", "ID|SOURCE",
              "run or source that is no evidence; 'all': the step model alone; may be given again",
              true},
    OptionRow{"threads", "N", "threads to use; changes no digit of a forecast (one a core)"},
    OptionRow{"junit", "FILE", "write the results as JUnit XML"},
    OptionRow{"annotations", "github",
              "print failures as annotations that GitHub shows beside the line"},
    OptionRow{"help", "", "this text"},
};

// What `reckon init` asks: its answers are judged there.
constexpr std::array kInitOptions{
    OptionRow{
        "model", "NAME",
        "a model of the zoo such as resnet50 or gpt2_small: what to train (init), whose layers "
        "to measure (probe)"},
    OptionRow{"tokens", "N", "how long, for models of sequences: tokens such as 10B"},
    OptionRow{"epochs", "N", "how long, for other models: passes over the dataset (90)"},
    OptionRow{"dataset", "NAME", "what a model that is no sequence model sees (imagenet)"},
    OptionRow{
        "accelerator", "NAME",
        "on what: a GPU of the catalog such as H100-SXM5-80; plan: several, h100 is the family"},
    OptionRow{"count", "N", "on how many accelerators (1)"},
    OptionRow{"provider", "NAME",
              "whose machines; the first that offers it at a known price (plan: gcp,aws,azure)"},
    OptionRow{"region", "NAME",
              "where; the first that offers it at a known price (plan: everywhere)"},
    OptionRow{"pricing", "on_demand|spot", "what is paid (on_demand; plan: both)"},
    OptionRow{"out", "PATH",
              "where to write: a file (- is standard output), or of run the directory (runs/NAME)"},
};

// What `reckon run` takes besides: judged there.
constexpr std::array kRunOptions{
    OptionRow{"on", "local|kubernetes", "where the processes are (local: this machine)"},
    OptionRow{"context", "NAME", "of the kubeconfig, on Kubernetes (kubectl's current one)"},
    OptionRow{"pull-secret", "NAME",
              "on Kubernetes: the namespace's secret for the image's registry"},
    OptionRow{"dry-run", "",
              "on Kubernetes: print what would be applied, and whether it would run"},
    OptionRow{"attach", "NAME", "on Kubernetes: watch a run that is there, and go on with it"},
    OptionRow{"pending", "DURATION",
              "on Kubernetes: pods without a node for so long find no room (15min)"},
    OptionRow{"checkpoints", "", "with the volume claim that was made for its checkpoints"},
    OptionRow{"resume", "", "go on with the run in that directory, from its last checkpoint"},
    OptionRow{"accept-changes", "",
              "with --resume: go on although settings of the training have changed since"},
    OptionRow{"checkpoint-steps", "N",
              "steps between two checkpoints (the scenario's workload.checkpoint)"},
    OptionRow{"deadline", "DURATION",
              "when the job has to be done, after its first start (run: the scenario's expect on "
              "time; plan: 72h@95% is with that probability)"},
    OptionRow{"notice", "DURATION",
              "what processes get for a checkpoint when the run is to stop (30s)"},
    OptionRow{"retries", "N", "failures after which the job is given up (the service's)"},
    OptionRow{"retry-delay", "DURATION",
              "wait before the first new start; doubles (the service's)"},
    OptionRow{"hang", "DURATION",
              "a process that makes no progress for so long is ended (1min, or 20 steps)"},
    OptionRow{"metrics", "[ADDRESS:]PORT",
              "Prometheus port for the run's metrics, on this machine alone unless an address is "
              "given, such as 0.0.0.0:9090 (port 0 picks a free one)"},
    OptionRow{"token-file", "FILE", "bearer token that --metrics asks for (none)"},
};

// What `reckon trial` takes besides.
constexpr std::array kTrialOptions{
    OptionRow{"steps", "N", "steps of the sample (50), or in a trace that does not mark them"},
    OptionRow{
        "container-command", "COMMAND",
        "a program of your own in place of ours, run by sh; the scenario's container has one"},
    OptionRow{"progress", "REGEX",
              "what of its lines is progress: groups named step, seconds, milliseconds, "
              "steps_per_second, samples_per_second, loss (what common programs print)"},
    OptionRow{"timeout", "DURATION", "for all of the sample (10min)"},
    OptionRow{"like-pool", "",
              "this machine is like those of the plan's workers: rescale the plan (so it is where "
              "they have no accelerators)"},
    OptionRow{"price", "PRICE", "what this machine costs, such as '0.40 USD/h'"},
};

// What `reckon probe` takes besides.
constexpr std::array kProbeOptions{
    OptionRow{"device", "NAME",
              "what is measured besides the CPUs: auto (a GPU if there is one), cpu, cuda"},
    OptionRow{"item-time", "DURATION", "measured time an item, warm-up apart (300ms)"},
    OptionRow{"processes", "N", "processes of this machine that collectives are measured between"},
    OptionRow{"checkpoint-dir", "DIR",
              "where checkpoints would lie: measures writing with fsync, and reading"},
};

// What `reckon export` takes besides.
constexpr std::array kExportOptions{
    OptionRow{"as", "job|tfjob|pytorchjob|jobset|serving|tensorflow-serving",
              "Kubernetes' own Job (the default) or an operator's resource; the serving block by "
              "reckon-worker, or by TensorFlow Serving"},
    OptionRow{"kubernetes-version", "1.N", "of the cluster (1.31)"},
    OptionRow{"namespace", "NAME", "where the job runs; made by the manifests (the plan's name)"},
    OptionRow{"image", "NAME", "the image with reckon-worker, where the scenario has no container"},
    OptionRow{"bucket", "NAME", "GKE: the bucket that is mounted for checkpoints"},
    OptionRow{"claim", "NAME", "an existing volume claim for checkpoints (one is made)"},
    OptionRow{"storage-class", "NAME", "of the claim that is made (the cluster's default)"},
    OptionRow{"attempt", "N", "part of all names: one more for each new start (1)"},
    OptionRow{"with-secret", "",
              "write a new secret of the job into the manifests (they say what makes one)"},
};

// What `reckon plan` takes besides. Lists are separated by commas; they say what may vary.
constexpr std::array kPlanOptions{
    OptionRow{"zone", "A,B", "zones to consider; any: all that the catalog knows"},
    OptionRow{"nodes", "1..64", "numbers of nodes to consider"},
    OptionRow{"autoscaling", "A,B",
              "bounds of the workers' pool as shares of the job's nodes: fixed,0..100%,125%"},
    OptionRow{"strategy", "A,B", "kinds of strategy to consider (any)"},
    OptionRow{"layouts", "", "try every split of the model; it needs --global-batch"},
    OptionRow{"global-batch", "N", "samples of an optimizer step; 1..8192: at most so many, free"},
    OptionRow{"base", "A,B",
              "shares of a job's nodes that are not spot, such as '25% on_demand,50% reserved'"},
    OptionRow{"fallback", "A,B",
              "use on-demand nodes when spot nodes have not come within 10min,30min"},
    OptionRow{"parameter-servers", "0..16", "numbers of parameter servers to consider"},
    OptionRow{"parameter-server-machine", "A,B", "machines of the parameter servers to consider"},
    OptionRow{"recompute", "A,B", "none, selective, full or any"},
    OptionRow{"checkpoint-interval", "A,B", "durations, optimal or none"},
    OptionRow{"checkpoint-storage", "A,B", "storages of the catalog to consider"},
    OptionRow{"quota", "PLACE=N,...",
              "accelerators that may be had: gcp/us-central1/H100-SXM5-80=128, or .../spot=128"},
    OptionRow{"memory", "AMOUNT", "of an accelerator that may be used at most: 70GiB or 90%"},
    OptionRow{"max-nodes", "N", "most nodes at once, servers and those that stand in included"},
    OptionRow{"budget", "MONEY", "what it may cost: 20000USD@90% is with that probability"},
    OptionRow{"residency", "A,B", "where data may be: countries (ISO 3166), or EU"},
    OptionRow{"carbon-free", "SHARE",
              "least share of a region's power that is free of carbon, such as 80%"},
    OptionRow{"objective", "NAME",
              "what is best: cost, time, cost_time, throughput_per_dollar, cost_under_deadline, "
              "p95_cost or p95_time (cost)"},
    OptionRow{"svg", "FILE.svg", "draw time against cost of the plans that no other beats in both"},
    OptionRow{"plans", "N", "how many plans to show (5)"},
    OptionRow{"fewest", "",
              "will it fit, and how many accelerators at least; of parameter servers, how many"},
    OptionRow{"baseline", "FILE",
              "a plan of --out: exit code 1 if today's best is worse than it said then"},
    OptionRow{"tolerance", "PERCENT", "by how much it may be worse, such as 3% (0%)"},
    OptionRow{"diff", "FILE.md", "write what is different from the baseline, for a comment"},
};

// What `reckon model show` asks of a model, besides the accelerator.
constexpr std::array kModelOptions{
    OptionRow{"batch", "N", "samples of one step on one accelerator (1, or the scenario's)"},
    OptionRow{"sequence-length", "N", "tokens of a sequence (the model's own)"},
    OptionRow{"precision", "NAME",
              "fp32, tf32, fp16, bf16, fp8, mxfp8 or nvfp4 (bf16, or what the accelerator has)"},
    OptionRow{"finetune", "lora:RANK", "train adapters of that rank and freeze the model"},
    OptionRow{"over", "N", "accelerators that share state or model under ZeRO and the like (8)"},
};

// What `reckon compare` alone takes.
constexpr std::array kCompareOptions{
    OptionRow{"spot", "",
              "the scenario's nodes on spot beside on demand, and when spot is cheaper"},
};

// What `reckon accuracy` alone takes.
constexpr std::array kAccuracyOptions{
    OptionRow{"from", "KIND",
              "normalised, vtrain, collectives, collective_profiles, time_to_train, run_costs or "
              "energy_and_convergence (told by the header)"},
    OptionRow{"cross-validate", "source|publisher|model",
              "fit the catalog's efficiencies anew without each of them in turn, and predict it"},
    OptionRow{"step-model", "", "predict by the step model alone, without evidence"},
    OptionRow{"warm", "K", "score too what is predicted after K runs of each group are measured"},
    OptionRow{"regret", "", "how much slower the layout is that we would take than the fastest"},
    OptionRow{"refit", "FILE.csv",
              "fit efficiencies to all sources and write them over this efficiencies.csv"},
    OptionRow{"tune", "FILE.csv", "tune the numbers of this kernel of evidence on held-out runs"},
    OptionRow{"trust", "A[,B]", "score rows of this trust only"},
    OptionRow{"source", "NAME", "score rows of this source only"},
    OptionRow{"worst", "N", "list the N runs with the largest errors"},
    OptionRow{"plot", "FILE.svg", "draw what was measured against what is predicted"},
};

// What `reckon calibrate` takes besides.
constexpr std::array kCalibrateOptions{
    OptionRow{"scenario", "FILE", "what was measured, for files that do not say so"},
    OptionRow{
        "pattern", "REGEX",
        "the steps of a log: a regular expression with a group named seconds, milliseconds or "
        "samples_per_second"},
    OptionRow{"force", "", "write the overlay although held-out forecasts become worse by it"},
};

// What `reckon import` takes besides.
constexpr std::array kImportOptions{
    OptionRow{"machine", "NAME", "the machine of the workers, where the file does not say it"},
    OptionRow{"pool", "NAME",
              "gke, cluster: the node pool that trains (the one with most accelerators)"},
    OptionRow{"servers", "NAME",
              "gke: the node pool of the parameter servers; tf-config: their machine"},
};

// What `reckon doctor` takes besides.
constexpr std::array kDoctorOptions{
    OptionRow{"check", "", "with RUN: report what is damaged, repair nothing"},
};

// Options that one command alone takes and judges itself.
constexpr std::array<std::span<const OptionRow>, 12> kOwnOptions{
    kCompareOptions, kInitOptions,      kRunOptions,      kTrialOptions,
    kProbeOptions,   kModelOptions,     kAccuracyOptions, kExportOptions,
    kPlanOptions,    kCalibrateOptions, kImportOptions,   kDoctorOptions};

const OptionRow& row_of(std::string_view name) {
  for (const auto rows : kOwnOptions)
    for (const OptionRow& row : rows)
      if (row.name == name) return row;
  return *std::find_if(kOptions.begin(), kOptions.end(),
                       [&](const OptionRow& r) { return r.name == name; });
}

po::options_description describe(OptionNames names) {
  po::options_description all;
  for (const std::string_view name : names) {
    const OptionRow& row = row_of(name);
    if (row.value.empty()) {
      all.add_options()(row.name.data(), row.help.data());
      continue;
    }
    auto* value = po::value<std::vector<std::string>>();  // add_options takes it
    if (row.repeatable) value->composing();
    all.add_options()(row.name.data(), value, row.help.data());
  }
  all.add_options()("files", po::value<std::vector<std::string>>()->composing(), "");
  return all;
}

void refuse_unknown(const po::parsed_options& parsed, OptionNames names) {
  std::vector<std::string> known;
  for (const std::string_view name : names) known.push_back("--" + std::string(name));
  std::vector<std::string> problems;
  for (const auto& option : parsed.options) {
    if (!option.unregistered) continue;
    const std::string given =
        option.original_tokens.empty() ? "--" + option.string_key : option.original_tokens.front();
    const std::string name = given.substr(0, given.find('='));
    problems.push_back(
        printable(fmt::format("unknown option '{}'{}", name, did_you_mean(name, known))));
  }
  if (problems.empty()) return;
  throw UsageErrorWithHint(
      problems.front(), fmt::format("{}", fmt::join(problems.begin() + 1, problems.end(), "\n")));
}

std::int64_t integer_between(std::string_view name, const std::string& text, std::int64_t low,
                             std::int64_t high) {
  const auto value = parse_integer(text);
  if (!value || *value < low || *value > high)
    throw UsageError(
        fmt::format("--{} takes a whole number from {} to {}, not '{}'", name, low, high, text));
  return *value;
}

/// One of `words`, or a UsageError that lists them.
std::string one_of(std::string_view name, const std::string& text,
                   std::initializer_list<std::string> words) {
  const std::vector<std::string> allowed(words);
  if (std::find(allowed.begin(), allowed.end(), text) != allowed.end()) return text;
  throw UsageError(fmt::format("--{} takes {}, not '{}'{}", name, fmt::join(allowed, " or "), text,
                               did_you_mean(text, allowed)));
}

class Values {
 public:
  explicit Values(const po::variables_map& map) : map_(map) {}
  std::vector<std::string> all(const char* name) const {
    return map_.count(name) ? map_[name].as<std::vector<std::string>>()
                            : std::vector<std::string>{};
  }
  std::optional<std::string> one(const char* name) const {
    const auto values = all(name);
    if (values.empty()) return std::nullopt;
    if (values.size() > 1)
      throw UsageError(fmt::format("--{} is given {} times", name, values.size()));
    return values.front();
  }

 private:
  const po::variables_map& map_;
};

/// Files to write. An empty one is an unset variable of a script, one that is named twice would
/// keep the later text only.
void read_paths(const Values& values, Options& o) {
  const std::pair<const char*, std::string*> paths[] = {{"trace", &o.trace},
                                                        {"junit", &o.junit},
                                                        {"csv", &o.csv},
                                                        {"memo", &o.memo},
                                                        {"html", &o.html}};
  std::map<std::string, std::string> taken;
  for (const auto& [name, path] : paths) {
    const auto given = values.one(name);
    if (!given) continue;
    if (given->empty()) throw UsageError(fmt::format("--{} needs the name of a file", name));
    *path = *given;
    const auto [other, fresh] = taken.emplace(*given, name);
    if (!fresh && *given != "-")
      throw UsageError(fmt::format("--{} and --{} both write {}", other->second, name, *given));
  }
}

Options interpret(const po::variables_map& map) {
  constexpr std::int64_t kSeedMax = std::numeric_limits<std::int64_t>::max();
  const Values values(map);
  Options o;
  o.help = map.count("help") > 0;
  o.files = values.all("files");
  o.overrides = values.all("set");
  for (const std::string& file : values.all("layer")) o.layers.emplace_back(file);
  const auto keep = [&](const OptionRow& row) {
    const std::string name(row.name);
    if (row.value.empty()) {
      if (map.count(name) > 0) o.answers[name] = "yes";
    } else if (const auto v = values.one(name.c_str())) {
      o.answers[name] = *v;
    }
  };
  for (const auto rows : kOwnOptions)
    for (const OptionRow& row : rows) keep(row);
  o.sweeps = values.all("sweep");
  for (const std::string& directory : values.all("catalog")) o.catalogs.emplace_back(directory);
  for (const std::string& file : values.all("calibration")) o.calibrations.emplace_back(file);
  o.evidence = values.all("evidence");
  o.without_evidence = values.all("without-evidence");
  if (const auto v = values.one("format"))
    o.format = one_of("format", *v, {"table", "json"}) == "json" ? OutputFormat::json
                                                                 : OutputFormat::table;
  if (const auto v = values.one("engine"))
    o.engine = one_of("engine", *v, {"fluid", "closed-forms", "simgrid"});
  if (const auto v = values.one("annotations"))
    o.annotations = one_of("annotations", *v, {"github"});
  if (const auto v = values.one("seed"))
    o.seed = std::uint64_t(integer_between("seed", *v, 0, kSeedMax));
  if (const auto v = values.one("replications"))
    o.replications = int(integer_between("replications", *v, 1, 1'000'000));
  if (const auto v = values.one("threads"))
    o.threads = int(integer_between("threads", *v, 1, 1024));
  read_paths(values, o);
  return o;
}

}  // namespace

Options parse_options(const Command& command, OptionNames names,
                      std::span<const std::string> arguments) {
  try {
    const po::options_description description = describe(names);
    po::positional_options_description positional;
    positional.add("files", -1);
    using namespace po::command_line_style;
    const po::parsed_options parsed =
        po::command_line_parser(std::vector<std::string>(arguments.begin(), arguments.end()))
            .options(description)
            .positional(positional)
            .style(unix_style & ~allow_guessing)
            .allow_unregistered()
            .run();
    refuse_unknown(parsed, names);
    po::variables_map map;
    po::store(parsed, map);
    const Options options = interpret(map);
    const bool file_is_elsewhere = options.answers.contains("attach");
    if (!options.help && command.needs_file && options.files.empty() && !file_is_elsewhere)
      throw UsageError(fmt::format("a file is missing: {}", command.usage));
    return options;
  } catch (const po::error& e) {
    throw UsageError(e.what());
  }
}

std::string describe_options(OptionNames names) {
  std::string out = "Options:\n";
  for (const std::string_view name : names) {
    const OptionRow& row = row_of(name);
    out += fmt::format("  {:<24} {}\n", fmt::format("--{} {}", row.name, row.value), row.help);
  }
  return out;
}

int count_answer(const Options& options, const std::string& name) {
  const std::string text = options.answer(name);
  if (text.empty()) return 0;
  constexpr std::int64_t kMost = 1'000'000;
  const auto value = parse_integer(text);
  if (!value || *value < 1 || *value > kMost)
    throw UsageError(fmt::format("--{} takes a whole number from 1, not '{}'", name, text));
  return static_cast<int>(*value);
}

}  // namespace reckon::cli
