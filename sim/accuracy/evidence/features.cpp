#include "sim/accuracy/evidence/features.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "sim/accuracy/run/plan.h"

namespace reckon {
namespace {

struct DomainOfNames {
  std::string_view start;  // of the network's name
  Domain domain;
};
/// The first that fits. `small` are networks of so little work that hosts and loaders set the pace.
constexpr std::array kDomainsOfNames{DomainOfNames{"bert", Domain::transformer},
                                     DomainOfNames{"electra", Domain::transformer},
                                     DomainOfNames{"bart", Domain::transformer},
                                     DomainOfNames{"transformer_multi30k", Domain::small},
                                     DomainOfNames{"transformer", Domain::transformer},
                                     DomainOfNames{"gnmt", Domain::transformer},
                                     DomainOfNames{"vit_", Domain::transformer},
                                     DomainOfNames{"swin", Domain::transformer},
                                     DomainOfNames{"beit", Domain::transformer},
                                     DomainOfNames{"mixer", Domain::transformer},
                                     DomainOfNames{"ncf", Domain::recommendation},
                                     DomainOfNames{"dlrm", Domain::recommendation},
                                     DomainOfNames{"wide_and_deep", Domain::recommendation},
                                     DomainOfNames{"vae_cf", Domain::recommendation},
                                     DomainOfNames{"tft", Domain::recommendation},
                                     DomainOfNames{"rnnt", Domain::speech},
                                     DomainOfNames{"jasper", Domain::speech},
                                     DomainOfNames{"quartznet", Domain::speech},
                                     DomainOfNames{"deepspeech2", Domain::speech},
                                     DomainOfNames{"resnet18_cifar10", Domain::small},
                                     DomainOfNames{"lstm_lm", Domain::small},
                                     DomainOfNames{"mlp_", Domain::small},
                                     DomainOfNames{"stable_diffusion", Domain::other},
                                     DomainOfNames{"moflow", Domain::other},
                                     DomainOfNames{"se3_transformer", Domain::other},
                                     DomainOfNames{"rgat", Domain::other}};

/// nvlink3, nvswitch: nvlink; pcie4, pcie-host: pcie.
WordId link_id(std::string_view link) {
  if (link.starts_with("nv")) return word_id("nvlink");
  if (link.starts_with("pcie")) return word_id("pcie");
  return link == "none" ? 0 : word_id(link);
}

void set_stack(EvidenceFeatures& f, std::string_view stack) {
  f.stack = word_id(stack);
  f.stack_family = f.stack == 0 ? 0 : word_id(stack_family_of(stack));
}

void set_accelerator(EvidenceFeatures& f, const Accelerator& accelerator) {
  f.accelerator = word_id(accelerator.name);
  f.architecture = word_id(accelerator.architecture);
  f.year = accelerator.year;
}

// Networks of language models: all dense ones are the same, as their sizes differ without end.
constexpr std::string_view kDense = "dense language model", kExperts = "mixture of experts",
                           kLora = "language model, LoRA";

constexpr double kUsualParameters = 7e9;  // where none are printed

}  // namespace

void set_size(EvidenceFeatures& f, int accelerators, double samples) {
  f.accelerators = accelerators;
  f.log_count = std::log(std::max(1, accelerators));
  f.log_batch = samples > 0 ? std::log(samples / std::max(1, accelerators)) : 0;
}

EvidenceFeatures features_of(const Accelerator& accelerator, std::string_view stack,
                             std::string_view link) {
  EvidenceFeatures f;
  set_accelerator(f, accelerator);
  set_stack(f, stack);
  f.link = link.empty() ? 0 : link_id(link);
  return f;
}

std::string network_of(const ModelGraph& model) {
  if (domain_of(model.name(), model.sample_unit()) != Domain::language)
    return std::string(model.name());
  return std::string(model.trainable_parameters() < model.parameters() ? kLora
                     : model.active_parameters() < model.parameters()  ? kExperts
                                                                       : kDense);
}

WordId word_id(std::string_view word) {
  if (word.empty() || word == "unknown" || word.front() == '*') return 0;
  const WordId hash = XXH3_64bits(word.data(), word.size());
  return hash == 0 ? 1 : hash;
}

std::string_view to_text(Domain domain) {
  constexpr std::array<std::string_view, kDomains> kNames{
      "language", "transformer", "vision", "recommendation", "speech", "small", "other"};
  return kNames[static_cast<std::size_t>(domain)];
}

Domain domain_of(std::string_view network, SampleUnit unit) {
  for (const DomainOfNames& d : kDomainsOfNames)
    if (network.starts_with(d.start)) return d.domain;
  if (unit == SampleUnit::sequence) return Domain::language;
  return unit == SampleUnit::image ? Domain::vision : Domain::recommendation;
}

std::string_view publisher_of(std::string_view source) {
  const bool round = source.size() == 5 && source.starts_with("mlp");
  return round ? "mlperf" : source;
}

std::string_view stack_family_of(std::string_view stack) {
  if (stack.ends_with("mlperf") || stack == "mlperf-other") return "mlperf";
  if (stack.ends_with("-ngc")) return "ngc";
  if (stack.starts_with("tf")) return "tensorflow";
  if (stack.starts_with("megatron") || stack.starts_with("nemo") || stack == "deepspeed" ||
      stack == "colossalai")
    return "megatron";
  if (stack.starts_with("pytorch") || stack.starts_with("llm-foundry") || stack == "torchtitan" ||
      stack == "internevo")
    return "pytorch";
  return stack;
}

std::pair<WordId, Domain> FeatureReader::network_of(const RunConfiguration& run) {
  const auto language = [](std::string_view kind) {
    return std::pair{word_id(kind), Domain::language};
  };
  if (run.model == "gpt") return language(kDense);
  if (run.model == "gpt_lora") return language(kLora);
  if (run.model.starts_with("moe")) return language(kExperts);
  // model_of_run() builds the network, which takes longer than all else here. Which one it is may
  // depend on the framework of these two alone, and on the sequence length of the next two.
  const bool by_framework = run.model.starts_with("transformer_xl_");
  const bool by_length = run.model == "electra_base" || run.model == "bart_large";
  const Printed key{run.model, run.stack, by_framework ? run.framework : "",
                    by_length ? run.sequence_length : 0};
  const auto known = networks_.find(key);
  if (known != networks_.end()) return known->second;
  std::string name(run.model);
  if (const auto model = model_of_run(run))
    if (const auto* zoo = std::get_if<ModelByName>(&model->spec)) name = zoo->name;
  return networks_[key] = {word_id(name), domain_of(name, SampleUnit::image)};
}

std::optional<EvidenceFeatures> FeatureReader::operator()(const PublishedRun& run) {
  const RunConfiguration& r = run.run;
  const auto [known, is_new] = accelerators_.try_emplace(r.accelerator, nullptr);
  if (is_new) known->second = catalog_.find_accelerator(r.accelerator);
  const Accelerator* accelerator = known->second;
  if (accelerator == nullptr) return std::nullopt;
  const auto precision = precision_of_run(r, *accelerator);
  if (!precision) return std::nullopt;
  EvidenceFeatures f;
  set_accelerator(f, *accelerator);
  f.precision = *precision;
  std::tie(f.network, f.domain) = network_of(r);
  f.log_parameters = std::log(r.parameters > 0 ? r.parameters : kUsualParameters);
  set_stack(f, r.stack);
  f.source = word_id(run.source);
  f.publisher = word_id(publisher_of(run.source));
  f.trust = run.trust;
  f.link = r.accelerators > 1 ? link_id(r.intra_node_link) : 0;
  f.many_nodes = r.nodes > 1;
  const double samples = r.global_batch > 0 ? double(r.global_batch)
                                            : r.batch_per_accelerator * double(r.accelerators);
  set_size(f, r.accelerators, samples);
  return f;
}

EvidenceFeatures features_of(const Plan& plan, const PlannedWorkload& job) {
  EvidenceFeatures f;
  const PlannedPool* pool = plan.pool_with(Role::worker);
  if (pool != nullptr && pool->accelerator) {
    set_accelerator(f, *pool->accelerator);
    f.link = job.strategy.accelerators() > 1 ? link_id(pool->peer_link.name) : 0;
    f.many_nodes = job.strategy.accelerators() > std::max(1, pool->accelerators_per_node);
  }
  set_stack(f, job.stack);
  f.precision = job.precision;
  const ModelGraph& model = job.model;
  f.domain = domain_of(model.name(), model.sample_unit());
  f.network = word_id(network_of(model));
  f.log_parameters = std::log(std::max(1.0, double(model.parameters())));
  set_size(f, job.strategy.accelerators(), double(job.global_batch));
  return f;
}

}  // namespace reckon
