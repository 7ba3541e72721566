#include <catch2/catch.hpp>

#include "support/scenario_text.h"

// Each rule of make_plan by the message that a user reads.
using namespace reckon;
using Catch::Matchers::Contains;
using test::errors_of;

namespace {

const std::string kRulesBase = R"(
name: base
workload:
  model: resnet50
  dataset: imagenet
  train: {epochs: 90}
  precision: fp32
  batch_per_accelerator: 64
  strategy: {kind: multi_worker_mirrored}
cluster:
  provider: gcp
  service: gke
  region: us-central1
  zone: us-central1-c
  pools:
    - name: p100
      machine: n1-standard-16
      accelerator: {type: P100-PCIE-16, count: 2}
      nodes: 3
)";

std::string rules_with(const std::string& override) { return errors_of(kRulesBase, {override}); }

}  // namespace

TEST_CASE("the base scenario of these tests has a plan") { CHECK(errors_of(kRulesBase) == ""); }

TEST_CASE("an error stands at its place in the file") {
  std::string text = kRulesBase;
  text.replace(text.find("count: 2"), 8, "count: 3");
  // Line 1 is empty; "accelerator: {type: P100-PCIE-16, count: 3}" is line 18, the value of count
  // at column 48.
  CHECK_THAT(errors_of(text),
             Contains("s.yaml:18:48: error: 3 x P100-PCIE-16 is not a valid count"));
}

TEST_CASE("all errors of a plan come at once") {
  const std::string errors =
      errors_of(kRulesBase, {"workload.model=resnet51", "workload.dataset=imagnet",
                             "cluster.pools.p100.machine=n1-standard-17"});
  CHECK_THAT(errors, Contains("unknown model 'resnet51'; did you mean 'resnet50'?"));
  CHECK_THAT(errors, Contains("unknown dataset 'imagnet'; did you mean 'imagenet'?"));
  CHECK_THAT(errors, Contains("unknown machine 'n1-standard-17'; did you mean 'n1-standard-1"));
}

TEST_CASE("unknown names are answered with the nearest one and the list") {
  CHECK_THAT(rules_with("cluster.pools.p100.accelerator.type=P100-PCIE-17"),
             Contains("unknown accelerator 'P100-PCIE-17'; did you mean 'P100-PCIE-16'?") &&
                 Contains("like it: P100-PCIE-16, V100-PCIE-16") &&
                 Contains("54 more, listed by `reckon catalog list accelerators`"));
  CHECK_THAT(rules_with("cluster.region=us-centrall"),
             Contains("unknown region 'us-centrall'; did you mean 'us-central1'?") &&
                 Contains("like it: us-central1, us-central2, ") &&
                 Contains("`reckon catalog list locations gcp`"));
  CHECK_THAT(
      rules_with("cluster.zone=us-central1-q"),
      Contains("region us-central1 has no zone 'us-central1-q'") && Contains("us-central1-f"));
  CHECK_THAT(rules_with("workload.checkpoint={storage: gcs-standart}"),
             Contains("unknown storage 'gcs-standart' of gcp; did you mean 'gcs-standard'?"));
}

TEST_CASE("an invalid GPU count is answered with the valid ones and the machines that carry it") {
  CHECK_THAT(
      rules_with("cluster.pools.p100.accelerator.count=3"),
      Contains("3 x P100-PCIE-16 is not a valid count on machine n1-standard-16 under gke") &&
          Contains("valid counts of P100-PCIE-16 on n1-standard-16: 1, 2 or 4"));
}

TEST_CASE("a machine that may not carry the GPU at all says which may") {
  // Machines of the e2 family take no GPUs.
  CHECK_THAT(rules_with("cluster.pools.p100.machine=e2-standard-16"),
             Contains("machine e2-standard-16 cannot carry P100-PCIE-16 under gke") &&
                 Contains("e2-standard-16 carries no GPUs") &&
                 Contains("machines that may carry 2 x P100-PCIE-16: n1-highcpu-2, n1-highcpu-4"));
  // 96 vCPUs are more than two P100 may have: four of them are needed.
  CHECK_THAT(rules_with("cluster.pools.p100.machine=n1-standard-96"),
             Contains("valid counts of P100-PCIE-16 on n1-standard-96: 4"));
}

TEST_CASE("AI Platform's table differs from Compute Engine's") {
  // One T4 with 32 vCPUs: Compute Engine allows up to 48 vCPUs, AI Platform's table wants two.
  const std::vector<std::string> t4{"cluster.pools.p100.machine=n1-standard-32",
                                    "cluster.pools.p100.accelerator={type: T4, count: 1}"};
  CHECK(errors_of(kRulesBase, t4) == "");
  auto ai_platform = t4;
  ai_platform.push_back("cluster.service=ai_platform");
  CHECK_THAT(errors_of(kRulesBase, ai_platform),
             Contains("1 x T4 is not a valid count on machine n1-standard-32 under ai_platform") &&
                 Contains("valid counts of T4 on n1-standard-32: 2 or 4"));
}

TEST_CASE("a GPU that the region or the zone lacks says where it is") {
  CHECK_THAT(errors_of(kRulesBase, {"cluster.region=us-east4", "cluster.zone=us-east4-a"}),
             Contains("P100-PCIE-16 is not offered in region us-east4") &&
                 Contains("us-central1 (us-central1-c, us-central1-f)"));
  CHECK_THAT(rules_with("cluster.zone=us-central1-a"),
             Contains("P100-PCIE-16 is not offered in zone us-central1-a") &&
                 Contains("us-central1 (us-central1-c, us-central1-f)"));
}

TEST_CASE("all accelerator types of an AI Platform job must be in one zone") {
  const auto job = [](const std::string& region, const std::string& second) {
    return errors_of(kRulesBase,
                     {"workload.strategy={kind: parameter_server, accelerators_per_worker: 2}",
                      "cluster={provider: gcp, service: ai_platform, region: " + region +
                          ", pools: [{name: a, machine: n1-standard-16, accelerator: {type: P100, "
                          "count: 2}, nodes: 1}, {name: b, "
                          "role: parameter_server, machine: n1-standard-16, accelerator: {type: " +
                          second + ", count: 2}, nodes: 1}]}"});
  };
  // us-central1: P100 in -c and -f, T4 in -a, -b, -c and -f. australia-southeast1: P100 in -b, T4
  // in -a and -c.
  CHECK(job("us-central1", "T4") == "");
  CHECK_THAT(job("australia-southeast1", "T4"),
             Contains("no zone of australia-southeast1 has P100-PCIE-16 and T4; all accelerators "
                      "of one AI Platform "
                      "job must be in one zone") &&
                 Contains("P100-PCIE-16 is in australia-southeast1-b"));
}

TEST_CASE("different accelerators wait for each other, or are refused where the model is cut") {
  const std::string pools =
      "cluster.pools=[{name: a, role: worker, machine: n1-standard-16, accelerator: {type: P100, "
      "count: 2}, nodes: "
      "1}, {name: b, role: worker, machine: n1-standard-16, accelerator: {type: V100, count: 2}, "
      "nodes: 1}]";
  CHECK(errors_of(kRulesBase, {pools}) == "");
  CHECK_THAT(errors_of(kRulesBase, {pools, "workload.strategy={kind: sharded, zero_stage: 1}"}),
             Contains("one job on different accelerators ('a' and 'b') is not simulated yet"));
  // fp16 is what V100 has and K80 has not.
  std::string old = pools;
  old.replace(old.find("P100"), 4, "K80");
  CHECK_THAT(errors_of(kRulesBase, {old, "workload.precision=fp16"}), Contains("K80 has no fp16"));
}

namespace {

const std::string kOwn =
    "cluster={provider: on_premises, pools: [{name: own, machine: {vcpu: 64, memory: 512GiB, "
    "network: 200Gbps}, accelerator: {type: A100-SXM4-80, count: 8}, nodes: 4}]}";

std::string own(std::initializer_list<std::string> overrides) {
  std::vector<std::string> all{kOwn};
  all.insert(all.end(), overrides);
  return errors_of(kRulesBase, all);
}

}  // namespace

TEST_CASE("the wires between nodes are checked where they are written") {
  CHECK(own({"cluster.fabric={rails: true, nodes_per_leaf: 2, oversubscription: 4}"}) == "");
  CHECK_THAT(own({"cluster.fabric={oversubscription: 4}"}),
             Contains("oversubscription needs nodes_per_leaf"));
  CHECK_THAT(own({"cluster.fabric={rails: true, nics: 3}"}),
             Contains("3 network cards on rails do not divide the 8 accelerators of a node"));
  CHECK_THAT(own({"workload.strategy.all_reduce=in_network"}),
             Contains("the cluster's switches do not add up"));
  CHECK(own({"workload.strategy.all_reduce=in_network",
             "cluster.fabric={in_network_reduction: true}"}) == "");
}

TEST_CASE("a machine of one's own names its links, and one that it cannot have is refused") {
  CHECK(own({"cluster.pools.own.machine.network_link=infiniband"}) == "");
  CHECK_THAT(own({"cluster.pools.own.machine.network_link=infinibant"}),
             Contains("unknown link 'infinibant'; did you mean 'infiniband'?"));
  CHECK_THAT(
      own({"cluster.pools.own.machine.peer_link=nvlink", "cluster.pools.own.accelerator.type=T4"}),
      Contains("T4 has no links of its own, only PCIe"));
}

TEST_CASE("parameter servers beside the workers need no pool, and no more nodes than there are") {
  const std::string beside = "workload.strategy={kind: parameter_server, colocated: true";
  CHECK(own({beside + "}"}) == "");
  CHECK(own({beside + ", parameter_servers: 4, shards: balanced, partition: 64MB}"}) == "");
  CHECK_THAT(own({beside + ", parameter_servers: 5}"}),
             Contains("5 colocated parameter servers, one a node, on the 4 nodes of 'own'") &&
                 Contains("between 1 and 4"));
  CHECK_THAT(own({beside + ", partition: 64MB}"}),
             Contains("partition needs shards: round_robin or balanced"));
}

TEST_CASE("the last layers that are trained are some of the network's") {
  CHECK(rules_with("workload.finetune={method: last_layers, layers: 1}") == "");
  CHECK_THAT(rules_with("workload.finetune={method: last_layers, layers: 1000}"),
             Contains("the last 1000 layers with weights are to be trained, network resnet50 has"));
  CHECK_THAT(rules_with("workload.finetune={method: last_layers}"), Contains("needs 'layers'"));
  CHECK_THAT(rules_with("workload.finetune={method: last_layers, layers: 1, rank: 4}"),
             Contains("'rank' does not belong to method last_layers"));
  CHECK_THAT(rules_with("workload.finetune={method: lora}"), Contains("needs 'rank'"));
}

TEST_CASE("a machine with GPUs built in takes no other ones") {
  CHECK_THAT(
      errors_of(kRulesBase, {"cluster.pools.p100.machine=a2-highgpu-2g"}),
      Contains("machine a2-highgpu-2g has 2 x A100-SXM4-40 built in and takes no P100-PCIE-16"));
  CHECK_THAT(errors_of(kRulesBase, {"cluster.pools.p100.machine=a2-highgpu-2g",
                                    "cluster.pools.p100.accelerator={type: A100, count: 4}"}),
             Contains("machine a2-highgpu-2g has 2 x A100-SXM4-40 built in, not 4"));
}

TEST_CASE("a TPU slice is known by its shape, brings its host and needs its strategy") {
  const auto slice = [](const std::string& pool, const std::string& kind = "tpu") {
    return errors_of(kRulesBase,
                     {"cluster.zone=us-central1-b", "workload.precision=bf16",
                      "workload.strategy={kind: " + kind + "}", "cluster.pools=[" + pool + "]"});
  };
  CHECK(slice("{name: t, tpu: {type: TPU-v2, slice: v2-8}, nodes: 1}") == "");
  CHECK_THAT(slice("{name: t, tpu: {type: TPU-v2, slice: v2-16}, nodes: 1}"),
             Contains("unknown slice 'v2-16'") && Contains("slices of TPU-v2: v2-8, v2-32"));
  CHECK_THAT(slice("{name: t, tpu: {type: TPU-v3, slice: v2-8}, nodes: 1}"),
             Contains("slice v2-8 is made of TPU-v2, not of TPU-v3"));
  CHECK_THAT(slice("{name: t, tpu: {type: TPU-v2, slice: v2-8}, nodes: 1}", "mirrored"),
             Contains("strategy mirrored does not run on the TPU slice of pool 't'") &&
                 Contains("{kind: sharded}"));
  CHECK_THAT(slice("{name: t, tpu: {type: TPU-v2, slice: v2-8}, nodes: 1}",
                   "sharded, accelerators_per_worker: 2"),
             Contains("strategy sharded uses all 4 chips of the slice"));
  CHECK(slice("{name: t, tpu: {type: TPU-v2, slice: v2-8}, nodes: 1}", "sharded") == "");
  CHECK_THAT(slice("{name: t, tpu: {type: TPU-v2, slice: v2-8}, nodes: 1}",
                   "model_parallel, tensor: 1, data: 4"),
             !Contains("TPU slice") && Contains("global_batch: "));  // only the batch is missing
  CHECK_THAT(slice("{name: t, tpu: {type: TPU-v2, slice: v2-256}, nodes: 1}"),
             Contains("v2-256 is not offered in zone us-central1-b") &&
                 Contains("us-central1 (us-central1-a)"));
  CHECK_THAT(rules_with("workload.strategy={kind: tpu}"),
             Contains("strategy tpu needs a TPU slice, pool 'p100' has none"));
}

TEST_CASE("a precision that the accelerator lacks says which it has") {
  CHECK_THAT(rules_with("workload.precision=bf16"),
             Contains("P100-PCIE-16 has no bf16") && Contains("it has fp32, fp16"));
  // The only four-bit format that accelerators of the catalog train in.
  CHECK_THAT(rules_with("workload.precision=fp4"), Contains("P100-PCIE-16 has no nvfp4"));
}

TEST_CASE("a global batch that the accelerators cannot share says which they can") {
  // 3 nodes x 2 = 6 accelerators; 1000 = 166 * 6 + 4.
  std::string text = kRulesBase;
  text.replace(text.find("batch_per_accelerator: 64"), 25, "global_batch: 1000");
  CHECK_THAT(errors_of(text), Contains("global_batch 1000 is not divisible by 6 accelerators") &&
                                  Contains("996 and 1002 are"));
}

TEST_CASE("a role is needed only where more than one is possible") {
  const std::string two =
      "cluster.pools=[{name: a, machine: n1-standard-16, nodes: 1}, {name: b, machine: "
      "n1-standard-16, nodes: 1}]";
  CHECK_THAT(errors_of(kRulesBase, {"workload.strategy={kind: parameter_server}", two}),
             Contains("pool 'a' needs a role: more than one is possible") &&
                 Contains("pool 'b' needs a role"));
  CHECK_THAT(rules_with("cluster.pools.p100.role=parameter_server"),
             Contains("pool 'p100' holds parameter servers, which strategy multi_worker_mirrored "
                      "does not use") &&
                 Contains("no pool has role worker"));
}

TEST_CASE("a strategy that does not fit into the pools says what they hold") {
  CHECK_THAT(
      rules_with("workload.strategy.workers=4"),
      Contains(
          "4 workers with 2 accelerators each do not fit into the pools, which hold at most 3") &&
          Contains("3 nodes x 2 accelerators in 'p100'"));
  CHECK_THAT(rules_with("workload.strategy.accelerators_per_worker=4"),
             Contains("accelerators_per_worker is 4, a node has 2"));
  CHECK_THAT(
      rules_with("workload.strategy={kind: parameter_server, parameter_servers: 2}"),
      Contains(
          "2 parameter servers need as many nodes, the pools with role parameter_server hold 0") &&
          Contains("add a pool"));
}

TEST_CASE("autoscaling needs a service that has it") {
  CHECK_THAT(errors_of(kRulesBase, {"cluster.service=gce",
                                    "cluster.pools.p100.nodes={initial: 3, min: 0, max: 5}",
                                    "cluster.pools.p100.autoscaling=true"}),
             Contains("service gce does not autoscale node pools"));
  const std::string selectel =
      "cluster={provider: selectel, region: ru-7, pools: [{name: gpu, machine: {vcpu: 8, memory: "
      "32GiB, network: "
      "1Gbps}, accelerator: {type: T4, count: 1}, nodes: {initial: 1, min: 0, max: 4}, "
      "autoscaling: true}]}";
  CHECK_THAT(errors_of(kRulesBase, {selectel}),
             Contains("service mks does not autoscale node pools with accelerators"));
}

TEST_CASE("AI Platform has no spot machines") {
  CHECK_THAT(
      errors_of(kRulesBase, {"cluster.service=ai_platform", "cluster.pools.p100.pricing=spot"}),
      Contains("AI Platform has no spot machines"));
}

TEST_CASE("what is not simulated yet is refused by name") {
  CHECK_THAT(rules_with("workload.model={onnx: net.onnx}"),
             Contains("the file of the network's graph has not been read"));
  CHECK_THAT(rules_with("workload.model={huggingface: config.json}"),
             Contains("the Hugging Face config has not been read"));
  CHECK_THAT(rules_with("cluster.pools.p100.pricing=reserved"),
             Contains("no reservation covers pool 'p100'"));
  CHECK_THAT(rules_with("cluster.pools.p100.role=evaluator"), Contains("no pool has role worker"));
}

TEST_CASE("LoRA of a network without attention is an error at its key") {
  CHECK_THAT(rules_with("workload.finetune={method: lora, rank: 16}"),
             Contains("network resnet50 has no layer that LoRA could adapt"));
}

TEST_CASE("a model given by its layers is planned, and its mistakes have a place") {
  const std::string good =
      "workload.model={layers: [{input: 3x224x224}, {conv2d: 8, kernel: 3, stride: 2}, "
      "{global_average_pool: true}, {linear: 1000}, {softmax_cross_entropy: true}]}";
  CHECK(rules_with(good) == "");
  const std::string bad =
      "workload.model={layers: [{input: 3x224x224}, {conv2d: 8, kernel: big}, "
      "{global_average_pool: true, name: pool}, {liner: 1000}, {softmax_cross_entropy: true}]}";
  CHECK_THAT(rules_with(bad),
             Contains("'big' is no size such as 3 or 1x7") &&
                 Contains("no kind of layer among its keys; did you mean 'linear'?"));
}

TEST_CASE("a dataset must hold what the model reads") {
  CHECK_THAT(errors_of(kRulesBase, {"workload.dataset=openwebtext"}),
             Contains("dataset openwebtext holds sequences, model resnet50 reads images"));
  CHECK_THAT(rules_with("workload.sequence_length=512"),
             Contains("model resnet50 has no sequence length"));
}
