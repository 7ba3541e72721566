#include "cli/worker/options.h"

#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <limits>
#include <stdexcept>

#include "sim/base/diagnostic.h"
#include "sim/base/unit_text.h"

namespace reckon::worker {
namespace {
namespace po = boost::program_options;

struct Row {
  const char *name, *value, *help;
};
constexpr Row kRows[] = {
    {"plan", "FILE", "plan of a run, or a scenario; may stand alone as well"},
    {"set", "PATH=VALUE", "change a value of the plan; may be repeated"},
    {"layer", "FILE", "a scenario laid over the plan; may be repeated"},
    {"catalog", "DIR", "a catalog laid over ours; may be repeated"},
    {"seed", "N", "of weights, order of samples and dropout (the plan's)"},
    {"data", "PATH", "where the samples are (the plan's workload.data.path)"},
    {"steps", "N", "end after so many optimizer steps (the plan's)"},
    {"out", "DIR", "measurements, checkpoints, trained parameters (none)"},
    {"log-records", "",
     "print measurements as JSON lines in place of writing them to --out, which may then be\n"
     "                               storage that machines share"},
    {"accept-changes", "",
     "go on from a checkpoint although settings of the training have changed since"},
    {"keep", "N", "complete checkpoints that are kept (2)"},
    {"checkpoint-steps", "N", "steps between two checkpoints (the plan's interval)"},
    {"micro-batch", "N", "samples of one pass; the rest is accumulated (batch_per_accelerator)"},
    {"alone", "",
     "be one worker of the plan by itself: strategy single, batch_per_accelerator samples a step"},
    {"phases-apart", "",
     "synchronous parameter servers: no pull before all pushes, so that each can be measured"},
    {"sum-directly", "",
     "workers on CPUs: no ring, each rank adds up its part of all gradients; not as forecast"},
    {"device", "NAME", "what computes: auto, cpu or cuda (auto)"},
    {"threads", "N", "that compute (the machine's cores, shared by its processes)"},
    {"data-threads", "N", "that read samples ahead (1)"},
    {"deadline", "DURATION", "until all processes of the job have come (300s)"},
    {"role", "NAME", "worker, chief, ps or evaluator (TF_CONFIG, RANK)"},
    {"rank", "N", "of this process, within its role"},
    {"workers", "N", "processes that compute"},
    {"servers", "N", "parameter servers"},
    {"local-rank", "N", "among the processes of this machine"},
    {"master", "HOST:PORT", "where the processes meet"},
    {"secret-file", "FILE",
     "the job's secret, the same 64 hexadecimal digits for all its processes\n"
     "                               (RECKON_SECRET_FILE)"},
    {"address", "HOST", "where the others reach this process"},
    {"job", "NAME", "processes of other jobs are turned away"},
    {"attempt", "N", "which start of the job this is"},
};

po::options_description description() {
  po::options_description all;
  for (const Row& row : kRows) {
    if (*row.value == '\0')
      all.add_options()(row.name, "");
    else
      all.add_options()(row.name, po::value<std::vector<std::string>>()->composing());
  }
  all.add_options()("help,h", "")("version", "")("libraries", "");
  return all;
}

std::string unknown(const std::string& option) {
  std::vector<std::string> names{"help", "version", "libraries"};
  for (const Row& row : kRows) names.emplace_back(row.name);
  const auto bare = option.substr(std::min(option.find_first_not_of('-'), option.size()));
  return fmt::format("unknown option '{}'{}", option, did_you_mean(bare, names));
}

class Values {
 public:
  explicit Values(const po::variables_map& map) : map_(map) {}
  std::vector<std::string> all(const char* name) const {
    return map_.count(name) > 0 ? map_[name].as<std::vector<std::string>>()
                                : std::vector<std::string>{};
  }
  bool given(const char* name) const { return map_.count(name) > 0; }
  std::optional<std::string> one(const char* name) const {
    const auto values = all(name);
    if (values.size() > 1) throw std::invalid_argument(fmt::format("--{} is given twice", name));
    return values.empty() ? std::nullopt : std::optional(values[0]);
  }
  template <class T>
  std::optional<T> whole(const char* name, std::int64_t least) const {
    const auto text = one(name);
    if (!text) return std::nullopt;
    const auto value = parse_integer(*text);
    if (!value || *value < least || *value > std::numeric_limits<T>::max())
      throw std::invalid_argument(
          fmt::format("--{}: '{}' is no whole number from {} on", name, *text, least));
    return static_cast<T>(*value);
  }

 private:
  const po::variables_map& map_;
};

IdentityFlags identity_of(const Values& values) {
  return {.rank = values.whole<int>("rank", 0),
          .workers = values.whole<int>("workers", 1),
          .servers = values.whole<int>("servers", 0),
          .local_rank = values.whole<int>("local-rank", 0),
          .attempt = values.whole<int>("attempt", 0),
          .role = values.one("role"),
          .master = values.one("master"),
          .job = values.one("job"),
          .address = values.one("address")};
}

DeviceWish device_of(const std::string& name) {
  if (name == "auto") return DeviceWish::automatic;
  if (name == "cpu") return DeviceWish::cpu;
  if (name == "cuda") return DeviceWish::cuda;
  const std::vector<std::string> names{"auto", "cpu", "cuda"};
  throw std::invalid_argument(
      fmt::format("--device: '{}' is none of auto, cpu, cuda{}", name, did_you_mean(name, names)));
}

Options interpret(const Values& values) {
  Options o;
  const auto plans = values.all("plan");
  if (plans.size() != 1)
    throw std::invalid_argument(plans.empty() ? "a plan is missing" : "one plan, not several");
  o.plan = plans[0];
  o.overrides = values.all("set");
  for (const std::string& file : values.all("layer")) o.layers.emplace_back(file);
  for (const std::string& directory : values.all("catalog")) o.catalogs.emplace_back(directory);
  if (const auto seed = values.whole<std::int64_t>("seed", 0))
    o.seed = static_cast<std::uint64_t>(*seed);
  o.data = values.one("data").value_or("");
  o.steps = values.whole<std::int64_t>("steps", 1);
  o.alone = values.given("alone");
  o.phases_apart = values.given("phases-apart");
  o.sum_directly = values.given("sum-directly");
  o.out = values.one("out").value_or("");
  o.secret_file = values.one("secret-file").value_or("");
  o.log_records = values.given("log-records");
  o.accept_changes = values.given("accept-changes");
  o.keep = values.whole<int>("keep", 1).value_or(o.keep);
  o.checkpoint_steps = values.whole<std::int64_t>("checkpoint-steps", 1);
  o.micro_batch = values.whole<std::int64_t>("micro-batch", 1);
  o.device = device_of(values.one("device").value_or("auto"));
  o.threads = values.whole<int>("threads", 1).value_or(0);
  o.data_threads = values.whole<int>("data-threads", 1).value_or(o.data_threads);
  if (const auto text = values.one("deadline")) {
    const auto deadline = parse_duration(*text);
    if (!deadline) throw std::invalid_argument("--deadline: " + deadline.error());
    o.rendezvous_deadline = *deadline;
  }
  o.identity = identity_of(values);
  return o;
}

}  // namespace

Options parse_options(std::span<const std::string> arguments) {
  po::positional_options_description positional;
  positional.add("plan", -1);
  po::variables_map map;
  const std::vector<std::string> words(arguments.begin(), arguments.end());
  try {
    namespace style = po::command_line_style;
    constexpr int kStyle = style::default_style & ~style::allow_guessing;
    const auto described = description();
    po::store(po::command_line_parser(words)
                  .options(described)
                  .positional(positional)
                  .style(kStyle)
                  .run(),
              map);
  } catch (const po::unknown_option& e) {
    throw std::invalid_argument(unknown(e.get_option_name()));
  } catch (const po::error& e) {
    throw std::invalid_argument(e.what());
  }
  Options about;  // the program, not a job
  about.help = map.count("help") > 0;
  about.version = map.count("version") > 0;
  about.libraries = map.count("libraries") > 0;
  if (about.help || about.version || about.libraries) return about;
  return interpret(Values(map));
}

std::string help_text() {
  std::string text =
      "reckon-worker: one process of a training job, on a GPU or on CPUs.\n\n"
      "Usage: reckon-worker PLAN [options]\n\n"
      "Alone it trains the whole job. Several find each other by TF_CONFIG, by RANK, WORLD_SIZE,\n"
      "MASTER_ADDR and MASTER_PORT, or by the options below, which win. `reckon run PLAN` starts\n"
      "and watches all processes of a job on this machine. Several need a secret, which\n"
      "`reckon run` makes: by hand (umask 077 && openssl rand -hex 32 > job.secret)\n\n"
      "What a run has trained is exported and served:\n"
      "  reckon-worker export RUN MODEL   the next version of a model directory\n"
      "  reckon-worker serve MODEL        its newest version over HTTP\n\nOptions:\n";
  for (const Row& row : kRows)
    text += fmt::format("  {:<28} {}\n", fmt::format("--{} {}", row.name, row.value), row.help);
  text +=
      "  --libraries                  print the shared libraries that training on a GPU loads when "
      "it needs them\n"
      "\nExit codes: 0 trained; 1 the run failed (its loss is not a number); 2 the input is "
      "wrong;\n"
      "3 the environment failed; 75 stopped on request behind a checkpoint; 76 a peer is lost.\n\n"
      "Example: reckon-worker plan.yaml --steps 100 --out runs/try\n";
  return text;
}

}  // namespace reckon::worker
