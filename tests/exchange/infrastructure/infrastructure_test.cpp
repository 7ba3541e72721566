#include "exchange/infrastructure/infrastructure.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <regex>
#include <set>
#include <sstream>

#include "exchange/model_files.h"
#include "field_names.h"
#include "support/flat_json.h"
#include "support/golden.h"
#include "support/scenario_text.h"

using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

struct Written {
  std::string text, errors;
  std::vector<std::string> left;
};

Written written(Infrastructure tool, const ScenarioFile& file) {
  const auto plan = make_plan(file, shipped_catalog());
  if (!plan) FAIL(format(plan.error()));
  const auto made =
      infrastructure_text(tool, cloud_cluster_of(*plan, shipped_catalog()), file.places);
  if (!made) return {"", format(made.error()), {}};
  return {made->text, "", made->left_to_user};
}

Written written(Infrastructure tool, const std::string& scenario,
                const std::vector<std::string>& changes = {}) {
  const auto path = std::filesystem::path(RECKON_SOURCE_DIR) / "scenarios" / (scenario + ".yaml");
  const auto file = read_scenario(path, changes);
  if (!file) FAIL(format(file.error()));
  return written(tool, *file);
}

/// Each argument of each resource is one of the provider's.
void check_resources(const Json& file) {
  for (const auto& [type, resources] : file.at("resource").items()) {
    const auto known = kTerraform.find(type);
    INFO(type);
    CHECK(known != kTerraform.end());
    if (known == kTerraform.end()) continue;
    for (const auto& [name, arguments] : resources.items()) {
      CHECK(std::regex_match(name, std::regex("[A-Za-z_][A-Za-z0-9_-]*")));
      Values values;
      flatten(arguments, "", values);
      for (const auto& [argument, value] : values) {
        const std::string head = argument.substr(0, argument.find('.'));
        const bool map = known->second.contains(head + ".*");  // of the user's own keys
        INFO(argument);
        CHECK((map || known->second.contains(argument)));
      }
    }
  }
}

/// Each expression names a variable or a resource that is there, and each variable is used.
void check_expressions(const Json& file, const std::string& text) {
  static const std::regex kExpression(R"(\$\{([a-z_]+)\.([A-Za-z0-9_-]+)[^}]*\})");
  std::set<std::string> used;
  for (std::sregex_iterator at(text.begin(), text.end(), kExpression), end; at != end; ++at) {
    const std::string type = (*at)[1], name = (*at)[2];
    INFO(type << '.' << name);
    if (type == "var") {
      used.insert(name);
      CHECK(file.at("variable").contains(name));
    } else {
      REQUIRE(file.at("resource").contains(type));
      CHECK(file.at("resource").at(type).contains(name));
    }
  }
  for (const auto& [name, ignored] : file.at("variable").items()) {
    INFO(name);
    CHECK((used.contains(name) || name == "resource_group_name"));
  }
}

void check_yaml(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> documents{""};
  for (std::string line; std::getline(in, line);)
    if (line != "---")
      documents.back() += line + '\n';
    else if (!documents.back().empty())
      documents.emplace_back();
  for (const std::string& document : documents) {
    const auto parsed = parse_yaml(document, "file.yaml");
    REQUIRE(parsed);
    const Json file = json_of(*parsed);
    const std::string kind = file.at("kind");
    INFO(kind);
    const auto& known = kYaml.at(kind);
    Values values;
    // Of a list the fields of its items.
    const std::function<void(const Json&, const std::string&)> visit = [&](const Json& v,
                                                                           const std::string& n) {
      if (v.is_object() && !known.contains(n + ".*"))
        for (const auto& [key, inner] : v.items()) visit(inner, n.empty() ? key : n + '.' + key);
      else if (v.is_array() && !v.empty() && v.front().is_object())
        for (const Json& one : v) visit(one, n);
      else
        values[n] = v;
    };
    visit(file, "");
    for (const auto& [name, value] : values) {
      INFO(name);
      CHECK((known.contains(name) || known.contains(name + ".*")));
    }
  }
}

void check_text(Infrastructure tool, const std::string& text) {
  switch (tool) {
    case Infrastructure::terraform: {
      const Json file = Json::parse(text);
      check_resources(file);
      check_expressions(file, text);
      break;
    }
    case Infrastructure::eksctl:
    case Infrastructure::karpenter:
      check_yaml(text);
      break;
    case Infrastructure::aks: {
      static const std::regex kOption("--([a-z-]+)");
      for (std::sregex_iterator at(text.begin(), text.end(), kOption), end; at != end; ++at) {
        INFO((*at)[1]);
        CHECK(kAz.contains((*at)[1].str()));
      }
      break;
    }
  }
}

}  // namespace

TEST_CASE("each shipped scenario's nodes are written for each tool, or refused by name") {
  int texts = 0;
  for (const auto& entry : std::filesystem::directory_iterator(RECKON_SOURCE_DIR "/scenarios")) {
    if (entry.path().extension() != ".yaml") continue;
    INFO(entry.path());
    auto file = read_scenario(entry.path(), {});
    REQUIRE(file);
    if (!file->scenario.workload && file->scenario.jobs.empty()) continue;
    REQUIRE(resolve_model_files(*file).empty());
    for (const auto& word : words_of(Infrastructure{})) {
      INFO(word.text);
      const Written w = written(word.value, *file);
      if (w.text.empty()) {
        CHECK_THAT(w.errors,
                   Contains("export " + std::string(word.text) + " has no counterpart of "));
        continue;
      }
      ++texts;
      check_text(word.value, w.text);
    }
  }
  CHECK(texts > 10);
}

TEST_CASE("the texts of the five tools are these") {
  const auto golden = [](Infrastructure tool, const char* scenario, const char* name,
                         const std::vector<std::string>& changes = {}) {
    const Written w = written(tool, scenario, changes);
    INFO(w.errors);
    REQUIRE_FALSE(w.text.empty());
    check_text(tool, w.text);
    check_golden(std::string("exchange/infrastructure/golden/") + name, w.text);
  };
  golden(Infrastructure::terraform, "gke-p100-autoscaling", "gke.tf.json");
  golden(Infrastructure::terraform, "aws-p4d-spot", "eks.tf.json");
  golden(Infrastructure::terraform, "azure-nd-a100", "aks.tf.json",
         {"cluster.pools.nd.pricing=spot"});
  golden(Infrastructure::eksctl, "aws-p4d-spot", "eksctl.yaml");
  golden(Infrastructure::karpenter, "aws-p4d-spot", "karpenter.yaml");
  golden(Infrastructure::aks, "azure-nd-a100", "aks.sh");
}

TEST_CASE("a pool of the whole gang is placed closely, with its driver, its bounds and its price") {
  const Json gke = Json::parse(written(Infrastructure::terraform, "gke-p100-autoscaling").text);
  const Json& pool = gke.at("resource").at("google_container_node_pool").at("p100");
  CHECK(pool.at("autoscaling").at("total_max_node_count") == 5);
  CHECK(pool.at("initial_node_count") == 3);
  CHECK_FALSE(pool.contains("placement_policy"));  // N1 takes none
  const Json& gpus = pool.at("node_config").at("guest_accelerator");
  CHECK(gpus.at("type") == "nvidia-tesla-p100");
  CHECK(gpus.at("gpu_driver_installation_config").at("gpu_driver_version") == "LATEST");
  const Json a3 = Json::parse(written(Infrastructure::terraform, "llama3-8b-zero3").text);
  CHECK(a3.at("resource")
            .at("google_container_node_pool")
            .at("h100")
            .at("placement_policy")
            .at("type") == "COMPACT");
  const Json eks = Json::parse(written(Infrastructure::terraform, "aws-p4d-spot").text);
  const Json& group = eks.at("resource").at("aws_eks_node_group").at("p4d");
  CHECK(group.at("capacity_type") == "SPOT");
  CHECK(group.at("ami_type") == "AL2023_x86_64_NVIDIA");
  CHECK(group.at("taint").front().at("key") == "nvidia.com/gpu");
  CHECK(eks.at("resource").at("aws_placement_group").at("p4d").at("strategy") == "cluster");
}

TEST_CASE(
    "a reservation is a variable where it is of the whole pool, and open where it is of a part") {
  const auto reserved = [](int count) {
    return std::vector<std::string>{"cluster.pools.p4d.pricing=on_demand",
                                    "prices={reserved: [{machine: p4d.24xlarge, count: " +
                                        std::to_string(count) + ", price: 10 USD/h}]}"};
  };
  const Written whole = written(Infrastructure::terraform, "aws-p4d-spot", reserved(2));
  CHECK_THAT(whole.text, Contains("${var.reservation_p4d}"));
  check_text(Infrastructure::terraform, whole.text);
  const Written part = written(Infrastructure::terraform, "aws-p4d-spot", reserved(1));
  CHECK_THAT(part.text, Contains("\"capacity_reservation_preference\": \"open\""));
  const Written eksctl = written(Infrastructure::eksctl, "aws-p4d-spot", reserved(2));
  CHECK_THAT(eksctl.errors, Contains("no counterpart of a reservation of the whole pool"));
  CHECK_THAT(written(Infrastructure::karpenter, "aws-p4d-spot", reserved(2)).text,
             Contains("- reserved\n") && !Contains("- on-demand\n"));
}

TEST_CASE("services and names that a tool does not have are refused where they stand") {
  CHECK_THAT(written(Infrastructure::eksctl, "azure-nd-a100").errors,
             Contains("azure-nd-a100.yaml:") &&
                 Contains("export eksctl has no counterpart of AKS") && Contains("of eks"));
  CHECK_THAT(written(Infrastructure::terraform, "on-premises").errors,
             Contains("of gke, eks, aks"));
  CHECK_THAT(written(Infrastructure::terraform, "tpu-v2-8").errors,
             Contains("no counterpart of TPU-v2") || Contains("no counterpart of "));
  CHECK_THAT(written(Infrastructure::karpenter, "aws-p4d-spot",
                     {"cluster.pools.p4d.autoscaling=true",
                      "cluster.pools.p4d.nodes={initial: 2, min: 1, max: 4}"})
                 .errors,
             Contains("1 nodes that stay without pods"));
}

TEST_CASE("a machine of dimensions of its own is none that a tool could order") {
  const Written w = written(Infrastructure::eksctl, "small-mlp-cpu",
                            {"cluster={provider: aws, service: eks, region: us-east-1, pools: "
                             "[{name: here, machine: {vcpu: 1, memory: 2GiB, network: 10Gbps}, "
                             "nodes: 2}]}"});
  CHECK_THAT(w.errors, Contains("no counterpart of a machine of dimensions of its own") &&
                           Contains("reckon catalog list machines aws"));
}

TEST_CASE("taints are read and written in both forms") {
  CHECK(to_text(parse_taint("sku=gpu:NoSchedule")) == "sku=gpu:NoSchedule");
  CHECK(parse_taint("sku=gpu:NoSchedule").value == "gpu");
  CHECK(to_text(parse_taint("nvidia.com/gpu:NoExecute")) == "nvidia.com/gpu:NoExecute");
  CHECK(parse_taint("nvidia.com/gpu:NoExecute").effect == "NoExecute");
}

TEST_CASE("a scenario under Karpenter is exported as its own NodePools, and by no other tool") {
  const std::string scenario = "karpenter-or-cluster-autoscaler";
  const std::string pool = "cluster.karpenter.nodePools.training";
  const Written made = written(Infrastructure::karpenter, scenario,
                               {pool + ".weight=10", pool + ".terminationGracePeriod=90min",
                                pool + ".expireAfter=720h", "start=2026-12-04T18:00:00Z",
                                pool + ".disruption.budgets=[{nodes: 20%, reasons: [Empty]}, "
                                       "{nodes: 0, schedule: \"0 9 * * mon-fri\", duration: 8h}]"});
  CHECK(made.errors == "");
  for (const char* line :
       {"name: training", "weight: 10", "terminationGracePeriod: \"90m\"", "expireAfter: \"720h\"",
        "consolidationPolicy: WhenEmptyOrUnderutilized", "consolidateAfter: \"1m\"",
        "nvidia.com/gpu: 32", "operator: Gt", "schedule: \"0 9 * * mon-fri\"", "duration: \"8h\""})
    CHECK_THAT(made.text, Contains(line));
  // One NodePool, whatever the number of machines and capacity types that it may make.
  const std::string kind = "kind: NodePool";
  const auto first = made.text.find(kind);
  CHECK(first != std::string::npos);
  CHECK(made.text.find(kind, first + 1) == std::string::npos);
  CHECK_THAT(written(Infrastructure::eksctl, scenario).errors,
             Contains("nodes that Karpenter makes") && Contains("reckon export karpenter"));
}

TEST_CASE(
    "flex-start in Terraform has the arguments of GKE's page, and none where it is not meant") {
  const std::string scenario = "flex-start-or-spot";
  const Written queued = written(Infrastructure::terraform, scenario);
  CHECK(queued.errors == "");
  const Json file = Json::parse(queued.text);
  check_resources(file);
  const Json& pool = file.at("resource").at("google_container_node_pool").at("h100");
  CHECK(pool.at("queued_provisioning").at("enabled") == true);
  CHECK(pool.at("management").at("auto_repair") == false);
  CHECK(pool.at("node_config").at("flex_start") == true);
  CHECK(pool.at("node_config").at("max_run_duration") == "604800s");
  CHECK(pool.at("node_config").at("reservation_affinity").at("consume_reservation_type") ==
        "NO_RESERVATION");
  const Json standard = Json::parse(
      written(Infrastructure::terraform, scenario, {"cluster.pools.h100.provisioning=standard"})
          .text);
  const Json& plain = standard.at("resource").at("google_container_node_pool").at("h100");
  CHECK_FALSE(plain.contains("queued_provisioning"));
  CHECK_FALSE(plain.at("node_config").contains("flex_start"));
  // The first release of the provider that has flex_start.
  const auto provider = [](const Json& of) {
    return of.at("terraform").at("required_providers").at("google").at("version");
  };
  CHECK(provider(file) == ">= 6.39");
  CHECK(provider(standard) != ">= 6.39");
}
