#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "cli/command.h"
#include "cli/import/bill.h"
#include "cli/init/init_scenario.h"
#include "cli/load/load.h"
#include "cli/options/shared.h"
#include "cli/options/values.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "exchange/foreign/ai_platform/ai_platform.h"
#include "exchange/foreign/cluster/view.h"
#include "exchange/foreign/exported_plan.h"
#include "exchange/foreign/gke_node_pools.h"
#include "exchange/foreign/imported.h"
#include "exchange/foreign/kubernetes_jobs.h"
#include "exchange/foreign/terraform_plan.h"
#include "exchange/foreign/tf_config.h"
#include "executor/kubernetes/snapshot.h"
#include "sim/base/text/printable.h"
#include "sim/base/unit_text.h"
#include "sim/model/zoo/zoo.h"

namespace reckon::cli {
namespace {

/// What the command line says of what is imported; "", 0: not said.
struct ImportSaid {
  std::string model, dataset, epochs, tokens, precision;
  std::string accelerator, machine, pool, servers, provider, region;
  int batch = 0, count = 0;
  std::string context, name_space;
  friend bool operator==(const ImportSaid&, const ImportSaid&) = default;
};

struct ImportOptions : Files, OutPath, AnswerFormat, CatalogChoice {
  ImportSaid said;
  BillOptions bill;

  std::vector<Option> declared();
};

std::vector<Option> ImportOptions::declared() {
  constexpr int kMost = 1'000'000;
  KubectlChoice kubectl;  // for its texts
  return {
      {model_text(), text(said.model)},
      {dataset_text(), text(said.dataset)},
      {epochs_text(), text(said.epochs)},
      {tokens_text(), text(said.tokens)},
      {precision_text(), text(said.precision)},
      {batch_text(), whole(said.batch, 1, kMost)},
      {accelerator_text(), text(said.accelerator)},
      {count_text(), whole(said.count, 1, kMost)},
      {machine_text(), text(said.machine)},
      {{"pool", "NAME",
        "gke, terraform, cluster: node pool of the workers (the one with the most accelerators)"},
       text(said.pool)},
      {{"servers", "NAME",
        "gke, terraform: node pool of the parameter servers; tf-config: their machine type"},
       text(said.servers)},
      {provider_text(), text(said.provider)},
      {region_text(), text(said.region)},
      {kubectl.context_option().text, text(said.context)},
      {kubectl.namespace_option().text, text(said.name_space)},
      {{"scenario", "FILE", "bill: scenario or run directory that was billed"},
       file_name(bill.scenario)},
      {{"tag", "KEY=VALUE", "bill: rows to count, by tag or label (all rows)"}, text(bill.tag)},
      format_option(),
      out_option(),
      catalog_option()};
}

constexpr std::string_view kBill = "bill";
constexpr std::array<std::string_view, 7> kKinds{
    "ai-platform", "gke", "terraform", "kubernetes", "tf-config", "cluster", kBill};

/// The command line, split: `gcloud`'s words of an AI Platform job are not ours to judge.
struct ImportWords {
  std::vector<std::string> ours, gcloud;
  std::string config;  // --config FILE, or the file behind `ai-platform`
};

bool is_ours(const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  if (name == "--help") return true;
  ImportOptions options;
  const auto all = options.declared();
  return name != "--region" && std::ranges::any_of(all, [&](const Option& option) {
           return name == "--" + option.text.name;
         });
}

/// "my_job --region us-central1 ...": what stands before flags of gcloud and is no file.
bool is_job_name(std::span<const std::string> words) {
  const auto flag = [](const std::string& word) {
    return word.starts_with("--") && word != "--" && !is_ours(word);
  };
  return !std::filesystem::exists(words.front()) && std::ranges::any_of(words, flag);
}

ImportWords split(std::span<const std::string> arguments) {
  ImportWords words;
  if (arguments.empty() || arguments.front() != "ai-platform") {
    words.ours.assign(arguments.begin(), arguments.end());
    return words;
  }
  words.ours.push_back(arguments.front());
  for (std::size_t k = 1; k < arguments.size(); ++k) {
    const std::string& argument = arguments[k];
    const bool has_next = k + 1 < arguments.size();
    if (argument == "--") {
      words.gcloud.insert(words.gcloud.end(), arguments.begin() + std::ptrdiff_t(k),
                          arguments.end());
      break;
    }
    if (is_ours(argument)) {
      words.ours.push_back(argument);
      if (argument != "--help" && argument.find('=') == std::string::npos && has_next)
        words.ours.push_back(arguments[++k]);
    } else if (argument == "--config" && has_next) {
      words.config = arguments[++k];
    } else if (argument.starts_with("--config=")) {
      words.config = argument.substr(argument.find('=') + 1);
    } else if (words.config.empty() && words.gcloud.empty() && argument != "gcloud" &&
               !argument.starts_with("--") && !is_job_name(arguments.subspan(k))) {
      words.config = argument;  // in front of gcloud's own words
    } else {
      words.gcloud.push_back(argument);
    }
  }
  return words;
}

std::string only_file(const ImportOptions& options) {
  if (options.files.size() != 2)
    throw UsageError(fmt::format("import {} takes one file", options.files.front()));
  return options.files[1];
}

std::optional<Provider> provider_answer(const ImportOptions& options, const Catalog& catalog) {
  const std::string& given = options.said.provider;
  if (given.empty()) return std::nullopt;
  if (const ProviderRules* found = catalog.find_provider(given)) return found->id;
  std::vector<std::string> names;
  for (const ProviderRules& p : catalog.providers) names.push_back(p.id.name);
  throw UsageError(fmt::format("--provider {} is none: {}", given, fmt::join(names, ", ")));
}

/// The file, or the variable of the same name in this environment.
Expected<Imported> tf_config(const ImportOptions& options, const Catalog& catalog) {
  AssumedMachines machines;
  machines.provider = provider_answer(options, catalog).value_or(catalog.providers.front().id);
  const ProviderRules& usual = catalog.rules_of(machines.provider);
  const ImportSaid& said = options.said;
  machines.region = said.region.empty() ? usual.region : said.region;
  machines.accelerator = said.accelerator;
  if (said.count > 0) machines.per_node = said.count;
  machines.workers = said.machine;
  machines.servers = said.servers;
  if (machines.workers.empty()) machines.workers = usual.worker_machine;
  if (machines.servers.empty())
    machines.servers = usual.server_machine.empty() ? machines.workers : usual.server_machine;
  if (machines.workers.empty() || machines.region.empty())
    throw UsageError(fmt::format("on {}, tf-config needs --machine NAME and --region NAME",
                                 to_text(machines.provider)));
  const char* variable = std::getenv("TF_CONFIG");
  if (options.files.size() == 1 && variable != nullptr)
    return import_tf_config(variable, "TF_CONFIG", machines);
  const std::string file = only_file(options);
  return import_tf_config(read_text(file), file, machines);
}

Expected<Imported> ai_platform(const ImportWords& words, const Catalog& catalog) {
  if (words.config.empty() && words.gcloud.empty())
    throw UsageError("import ai-platform takes a config.yaml, gcloud's flags, or both");
  const std::string file = words.config.empty() ? "gcloud's flags" : words.config;
  auto job =
      ai_platform_job(words.config.empty() ? "" : read_text(words.config), file, words.gcloud);
  if (!job) return tl::unexpected(std::move(job.error()));
  return import_ai_platform(std::move(*job), file, catalog);
}

/// A recorded cluster, or the one that kubectl talks to.
Expected<Imported> cluster(const ImportOptions& options, const Catalog& catalog) {
  ClusterChoice choice;
  const ImportSaid& said = options.said;
  choice.pool = said.pool;
  choice.servers = said.servers;
  choice.name_space = said.name_space;
  choice.hints = {said.accelerator, "", provider_answer(options, catalog), said.region};
  if (options.files.size() > 1) {
    const std::string file = only_file(options);
    return import_cluster(read_text(file), file, choice, catalog);
  }
  const auto kubectl = kubernetes::Kubectl::of_user(said.context, "");
  const kubernetes::Snapshot snapshot = kubernetes::snapshot_of(kubectl, choice.name_space);
  for (const std::string& what : snapshot.not_seen) print_error("reckon: " + what + '\n');
  return import_cluster(snapshot.list,
                        said.context.empty() ? "kubectl's current context" : said.context, choice,
                        catalog);
}

Expected<Imported> imported(const ImportWords& words, const ImportOptions& options,
                            const Catalog& catalog) {
  const std::string& kind = options.files.front();
  if (kind == "ai-platform") return ai_platform(words, catalog);
  if (kind == "tf-config") return tf_config(options, catalog);
  if (kind == "cluster") return cluster(options, catalog);
  const std::string file = only_file(options);
  if (kind == "gke")
    return import_gke_node_pools(read_text(file), file, {options.said.pool, options.said.servers},
                                 catalog);
  if (kind == "terraform")
    return import_terraform_plan(read_text(file), file, {options.said.pool, options.said.servers},
                                 options.said.region, catalog);
  const ClusterHints hints{options.said.accelerator, options.said.machine,
                           provider_answer(options, catalog), options.said.region};
  return import_kubernetes_job(read_text(file), file, hints, catalog);
}

/// Options that one kind reads and another does not.
void refuse_what_is_not_read(const ImportOptions& options) {
  struct Row {
    const char* option;
    bool given;
    std::vector<std::string_view> kinds;
  };
  const ImportSaid& said = options.said;
  const std::array<Row, 8> read{
      Row{"pool", !said.pool.empty(), {"gke", "terraform", "cluster"}},
      Row{"servers", !said.servers.empty(), {"gke", "terraform", "tf-config", "cluster"}},
      Row{"accelerator", !said.accelerator.empty(), {"kubernetes", "tf-config", "cluster"}},
      Row{"machine", !said.machine.empty(), {"kubernetes", "tf-config"}},
      Row{"provider", !said.provider.empty(), {"kubernetes", "tf-config", "cluster"}},
      Row{"count", said.count > 0, {"tf-config"}},
      Row{"context", !said.context.empty(), {"cluster"}},
      Row{"namespace", !said.name_space.empty(), {"cluster"}}};
  const std::string& kind = options.files.front();
  for (const Row& row : read)
    if (row.given && std::ranges::find(row.kinds, kind) == row.kinds.end())
      throw UsageError(fmt::format("import {} does not read --{}; {} does", kind, row.option,
                                   fmt::join(row.kinds, " and ")));
  if (kind == kBill && !(said == ImportSaid{}))
    throw UsageError(
        "import bill says nothing of what is trained: it reads --scenario, --tag, --format, --out "
        "and --catalog");
  if (kind != kBill && (!(options.bill == BillOptions{}) || options.format != OutputFormat::table))
    throw UsageError("--scenario, --tag and --format are of import bill");
  if (said.count > 0 && said.accelerator.empty())
    throw UsageError("--count is of --accelerator, which is not given");
  if (!said.tokens.empty() && !said.epochs.empty())
    throw UsageError("--tokens and --epochs are two lengths: give one of them");
}

/// What is trained, by the options; what they do not say is assumed, and said to be.
Expected<ImportedWork> work_of(const ImportOptions& options, const Catalog& catalog) {
  const ImportSaid& said = options.said;
  Diagnostics problems;
  for (const auto& [option, given] : {std::pair("model", said.model),
                                      {"dataset", said.dataset},
                                      {"epochs", said.epochs},
                                      {"tokens", said.tokens}})
    if (!given.empty())
      if (auto problem = judge_answer(option, given, catalog))
        problems.push_back(std::move(*problem));
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  ImportedWork work;
  const auto said_or = [&](const char* option, const std::string& given,
                           const std::string& otherwise) {
    if (!given.empty()) return given;
    work.assumed.push_back(fmt::format("{}: {}; --{} says another", option, otherwise, option));
    return otherwise;
  };
  work.model = said_or("model", said.model, "resnet50");
  work.dataset = said_or("dataset", said.dataset, default_dataset(work.model, catalog));
  const bool tokens = zoo_takes_sequence_length(work.model);
  if (!tokens && !said.tokens.empty())
    throw UsageError(fmt::format("model {} reads no tokens; --epochs 90", work.model));
  const bool by_tokens = tokens && said.epochs.empty();
  const char* unit = by_tokens ? "tokens" : "epochs";
  work.length = fmt::format(
      "{}: {}", unit, said_or(unit, by_tokens ? said.tokens : said.epochs, tokens ? "10B" : "90"));
  work.precision = said.precision;
  if (said.batch > 0) work.batch = said.batch;
  return work;
}

void write_answer(const std::string& out, const std::string& text) {
  write_file(out, text);
  if (out != "-") print_error(fmt::format("{} is written\n", printable_file(out)));
}

}  // namespace

std::vector<OptionText> import_options() { return shown_options<ImportOptions>(); }

int run_import(const Command& self, std::span<const std::string> arguments) {
  const ImportWords words = split(arguments);
  const auto options = parse<ImportOptions>(self, words.ours);
  if (!options) return kDone;
  if (options->files.empty()) throw UsageError(fmt::format("say what to import: {}", self.usage));
  const std::string& kind = options->files.front();
  if (std::ranges::find(kKinds, kind) == kKinds.end())
    throw UsageError(
        fmt::format("import takes {}, not '{}'{}", fmt::join(kKinds, ", "), kind,
                    did_you_mean(kind, std::vector<std::string>(kKinds.begin(), kKinds.end()))));
  refuse_what_is_not_read(*options);
  if (kind == kBill)
    return import_bill({options->files.begin() + 1, options->files.end()}, options->bill, *options,
                       options->format, options->out);
  const std::string out = options->out.empty() ? "-" : options->out;
  if (out != "-" && std::filesystem::exists(out))
    throw UsageError(fmt::format("'{}' exists; import overwrites nothing", out));
  const auto catalog = checked(load_catalogs(*options));
  // Neither what is trained nor on what: manifests of our own may say both.
  if (kind == "kubernetes" && options->said == ImportSaid{}) {
    const std::string file = only_file(*options);
    const auto exported = exported_plan_of(read_text(file), file, catalog);
    if (exported && *exported) {  // mistakes of the manifests are named below
      write_answer(out, **exported);
      return kDone;
    }
  }
  const auto work = checked(work_of(*options, catalog));
  auto found = checked(imported(words, *options, catalog));
  if (const std::string& region = options->said.region; !region.empty()) {
    if (found.region != region) found.zone.clear();
    found.region = region;
  }
  write_answer(out, checked(scenario_of(found, work, catalog)));
  return kDone;
}

}  // namespace reckon::cli
