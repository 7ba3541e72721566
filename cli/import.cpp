#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "cli/command.h"
#include "cli/init/init_scenario.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"
#include "exchange/foreign/ai_platform.h"
#include "exchange/foreign/cluster_view.h"
#include "exchange/foreign/exported_plan.h"
#include "exchange/foreign/gke_node_pools.h"
#include "exchange/foreign/imported.h"
#include "exchange/foreign/kubernetes_jobs.h"
#include "exchange/foreign/tf_config.h"
#include "executor/kubernetes/snapshot.h"
#include "sim/base/printable.h"
#include "sim/base/unit_text.h"
#include "sim/model/zoo/zoo.h"

namespace reckon::cli {
namespace {

constexpr std::array<std::string_view, 18> kImportNames{
    "model",       "dataset", "epochs",    "tokens", "precision", "batch",
    "accelerator", "count",   "machine",   "pool",   "servers",   "provider",
    "region",      "context", "namespace", "out",    "catalog",   "help"};
constexpr std::array<std::string_view, 5> kKinds{"ai-platform", "gke", "kubernetes", "tf-config",
                                                 "cluster"};

/// The command line, split: `gcloud`'s words of an AI Platform job are not ours to judge.
struct ImportWords {
  std::vector<std::string> ours, gcloud;
  std::string config;  // --config FILE, or the file behind `ai-platform`
};

bool is_ours(const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  return name != "--region" && name.starts_with("--") &&
         std::ranges::find(kImportNames, std::string_view(name).substr(2)) != kImportNames.end();
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

std::string only_file(const Options& options) {
  if (options.files.size() != 2)
    throw UsageError(fmt::format("import {} takes one file", options.files.front()));
  return options.files[1];
}

std::optional<Provider> provider_answer(const Options& options, const Catalog& catalog) {
  const std::string given = options.answer("provider");
  if (given.empty()) return std::nullopt;
  if (const ProviderRules* found = catalog.find_provider(given)) return found->id;
  std::vector<std::string> names;
  for (const ProviderRules& p : catalog.providers) names.push_back(p.id.name);
  throw UsageError(fmt::format("--provider {} is none: {}", given, fmt::join(names, ", ")));
}

/// The file, or the variable of the same name in this environment.
Expected<Imported> tf_config(const Options& options, const Catalog& catalog) {
  AssumedMachines machines;
  machines.provider = provider_answer(options, catalog).value_or(catalog.providers.front().id);
  const ProviderRules& usual = catalog.rules_of(machines.provider);
  const std::string region = options.answer("region");
  machines.region = region.empty() ? usual.region : region;
  machines.accelerator = options.answer("accelerator");
  if (const int count = count_answer(options, "count"); count > 0) machines.per_node = count;
  machines.workers = options.answer("machine");
  machines.servers = options.answer("servers");
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
Expected<Imported> cluster(const Options& options, const Catalog& catalog) {
  ClusterChoice choice;
  choice.pool = options.answer("pool");
  choice.servers = options.answer("servers");
  choice.name_space = options.answer("namespace");
  choice.hints = {options.answer("accelerator"), "", provider_answer(options, catalog),
                  options.answer("region")};
  if (options.files.size() > 1) {
    const std::string file = only_file(options);
    return import_cluster(read_text(file), file, choice, catalog);
  }
  const auto kubectl = kubernetes::Kubectl::of_user(options.answer("context"), "");
  const kubernetes::Snapshot snapshot = kubernetes::snapshot_of(kubectl, choice.name_space);
  for (const std::string& what : snapshot.not_seen) print_error("reckon: " + what + '\n');
  const std::string context = options.answer("context");
  return import_cluster(snapshot.list, context.empty() ? "kubectl's current context" : context,
                        choice, catalog);
}

Expected<Imported> imported(const ImportWords& words, const Options& options,
                            const Catalog& catalog) {
  const std::string& kind = options.files.front();
  if (kind == "ai-platform") return ai_platform(words, catalog);
  if (kind == "tf-config") return tf_config(options, catalog);
  if (kind == "cluster") return cluster(options, catalog);
  const std::string file = only_file(options);
  if (kind == "gke")
    return import_gke_node_pools(read_text(file), file,
                                 {options.answer("pool"), options.answer("servers")}, catalog);
  const ClusterHints hints{options.answer("accelerator"), options.answer("machine"),
                           provider_answer(options, catalog), options.answer("region")};
  return import_kubernetes_job(read_text(file), file, hints, catalog);
}

/// Options that one kind reads and another does not.
void refuse_what_is_not_read(const Options& options) {
  struct Row {
    const char* option;
    std::vector<std::string_view> kinds;
  };
  static const std::array<Row, 8> kRead{Row{"pool", {"gke", "cluster"}},
                                        Row{"servers", {"gke", "tf-config", "cluster"}},
                                        Row{"accelerator", {"kubernetes", "tf-config", "cluster"}},
                                        Row{"machine", {"kubernetes", "tf-config"}},
                                        Row{"provider", {"kubernetes", "tf-config", "cluster"}},
                                        Row{"count", {"tf-config"}},
                                        Row{"context", {"cluster"}},
                                        Row{"namespace", {"cluster"}}};
  const std::string& kind = options.files.front();
  for (const Row& row : kRead)
    if (!options.answer(row.option).empty() &&
        std::ranges::find(row.kinds, kind) == row.kinds.end())
      throw UsageError(fmt::format("import {} does not read --{}; {} does", kind, row.option,
                                   fmt::join(row.kinds, " and ")));
  if (!options.answer("count").empty() && options.answer("accelerator").empty())
    throw UsageError("--count is of --accelerator, which is not given");
  if (!options.answer("tokens").empty() && !options.answer("epochs").empty())
    throw UsageError("--tokens and --epochs are two lengths: give one of them");
}

/// What is trained, by the options; what they do not say is assumed, and said to be.
Expected<ImportedWork> work_of(const Options& options, const Catalog& catalog) {
  Diagnostics problems;
  for (const char* option : {"model", "dataset", "epochs", "tokens"})
    if (const std::string given = options.answer(option); !given.empty())
      if (auto problem = judge_answer(option, given, catalog))
        problems.push_back(std::move(*problem));
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  ImportedWork work;
  const auto said_or = [&](const char* option, const std::string& otherwise) {
    if (const std::string given = options.answer(option); !given.empty()) return given;
    work.assumed.push_back(fmt::format("{}: {}; --{} says another", option, otherwise, option));
    return otherwise;
  };
  work.model = said_or("model", "resnet50");
  work.dataset = said_or("dataset", default_dataset(work.model, catalog));
  const bool tokens = zoo_takes_sequence_length(work.model);
  if (!tokens && !options.answer("tokens").empty())
    throw UsageError(fmt::format("model {} reads no tokens; --epochs 90", work.model));
  const char* unit = tokens && options.answer("epochs").empty() ? "tokens" : "epochs";
  work.length = fmt::format("{}: {}", unit, said_or(unit, tokens ? "10B" : "90"));
  work.precision = options.answer("precision");
  if (const int batch = count_answer(options, "batch"); batch > 0) work.batch = batch;
  return work;
}

/// Neither what is trained nor on what: manifests of our own may say both.
bool nothing_is_said(const Options& options) {
  return std::ranges::all_of(kImportNames, [&](std::string_view name) {
    return name == "out" || name == "catalog" || name == "help" ||
           options.answer(std::string(name)).empty();
  });
}

void write_answer(const std::string& out, const std::string& text) {
  write_file(out, text);
  if (out != "-") print_error(fmt::format("{} is written\n", printable_file(out)));
}

}  // namespace

std::vector<OptionText> import_options() { return describe_options(kImportNames); }

int run_import(const Command& self, std::span<const std::string> arguments) {
  const ImportWords words = split(arguments);
  const Options options = parse_options(self, kImportNames, words.ours);
  if (options.help) {
    print(help_text(self));
    return kDone;
  }
  if (options.files.empty()) throw UsageError(fmt::format("say what to import: {}", self.usage));
  const std::string& kind = options.files.front();
  if (std::ranges::find(kKinds, kind) == kKinds.end())
    throw UsageError(
        fmt::format("import takes {}, not '{}'{}", fmt::join(kKinds, ", "), kind,
                    did_you_mean(kind, std::vector<std::string>(kKinds.begin(), kKinds.end()))));
  refuse_what_is_not_read(options);
  const std::string out = options.answer("out").empty() ? "-" : options.answer("out");
  if (out != "-" && std::filesystem::exists(out))
    throw UsageError(fmt::format("'{}' exists; import overwrites nothing", out));
  const auto catalog = checked(load_catalogs(options));
  if (kind == "kubernetes" && nothing_is_said(options)) {
    const std::string file = only_file(options);
    const auto exported = exported_plan_of(read_text(file), file, catalog);
    if (exported && *exported) {  // mistakes of the manifests are named below
      write_answer(out, **exported);
      return kDone;
    }
  }
  const auto work = checked(work_of(options, catalog));
  auto found = checked(imported(words, options, catalog));
  if (const std::string region = options.answer("region"); !region.empty()) {
    if (found.region != region) found.zone.clear();
    found.region = region;
  }
  write_answer(out, checked(scenario_of(found, work, catalog)));
  return kDone;
}

}  // namespace reckon::cli
