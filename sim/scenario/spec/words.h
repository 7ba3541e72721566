#pragma once
#include "sim/base/words.h"
#include "sim/scenario/spec/strategies.h"

// The enums of the grammar, each with its words: what the reader takes, what is printed, what the
// schema lists.
namespace reckon {

/// in_network: switches between nodes add up (FabricSpec::in_network_reduction).
enum class AllReduceKind { automatic, ring, tree, hierarchical, in_network };
constexpr auto words_of(AllReduceKind) {
  return std::array{Word<AllReduceKind>{"auto", AllReduceKind::automatic},
                    Word<AllReduceKind>{"ring", AllReduceKind::ring},
                    Word<AllReduceKind>{"tree", AllReduceKind::tree},
                    Word<AllReduceKind>{"hierarchical", AllReduceKind::hierarchical},
                    Word<AllReduceKind>{"in_network", AllReduceKind::in_network}};
}

/// Which of the variables a parameter server holds: an equal part of each; or whole variables, each
/// placed in its turn, or with the server that has the fewest bytes so far [TensorFlow,
/// tf.train.replica_device_setter and tf.contrib.training.GreedyLoadBalancingStrategy].
enum class ServerShards { even, round_robin, balanced };
constexpr auto words_of(ServerShards) {
  return std::array{Word<ServerShards>{"even", ServerShards::even},
                    Word<ServerShards>{"round_robin", ServerShards::round_robin},
                    Word<ServerShards>{"balanced", ServerShards::balanced}};
}

/// Which rows of an embedding table go together where servers share it: rows that are equal modulo
/// the number of parts, or neighbours [TensorFlow, tf.nn.embedding_lookup, partition_strategy].
enum class RowPartition { mod, div };
constexpr auto words_of(RowPartition) {
  return std::array{Word<RowPartition>{"mod", RowPartition::mod},
                    Word<RowPartition>{"div", RowPartition::div}};
}

enum class Recompute { none, selective, full };
constexpr auto words_of(Recompute) {
  return std::array{Word<Recompute>{"none", Recompute::none},
                    Word<Recompute>{"selective", Recompute::selective},
                    Word<Recompute>{"full", Recompute::full}};
}

/// Order of the passes in a pipeline's stages: all forward, then all backward [Huang et al. 2019,
/// "GPipe"]; one forward, one backward; the same with several parts of the network a stage
/// [Narayanan et al. 2021, Sec. 2.2].
enum class PipelineSchedule { gpipe, one_forward_one_backward, interleaved };
constexpr auto words_of(PipelineSchedule) {
  return std::array{Word<PipelineSchedule>{"gpipe", PipelineSchedule::gpipe},
                    Word<PipelineSchedule>{"1f1b", PipelineSchedule::one_forward_one_backward},
                    Word<PipelineSchedule>{"interleaved", PipelineSchedule::interleaved}};
}

/// What a program does when it is told that its node will go: saves a checkpoint, or nothing.
enum class OnNotice { save, none };
constexpr auto words_of(OnNotice) {
  return std::array{Word<OnNotice>{"save", OnNotice::save}, Word<OnNotice>{"none", OnNotice::none}};
}

/// Training stands still until a checkpoint is written, or only until it is copied to the host's
/// memory, from where it is written while training goes on.
enum class SaveMode { blocking, async };
constexpr auto words_of(SaveMode) {
  return std::array{Word<SaveMode>{"blocking", SaveMode::blocking},
                    Word<SaveMode>{"async", SaveMode::async}};
}

/// How a job goes on when a part of it is lost. full: all processes start again. in_place: the
/// healthy ones stay, the lost one's place is taken by a new node. warm_spare: the same, by a node
/// that stands by with its processes started. elastic: those that are left go on without it.
enum class RestartKind { full, in_place, warm_spare, elastic };
constexpr auto words_of(RestartKind) {
  return std::array{Word<RestartKind>{"full", RestartKind::full},
                    Word<RestartKind>{"in_place", RestartKind::in_place},
                    Word<RestartKind>{"warm_spare", RestartKind::warm_spare},
                    Word<RestartKind>{"elastic", RestartKind::elastic}};
}

/// The samples of a step while an elastic job is smaller: as many, by accumulation, or as many
/// fewer as there are fewer workers.
enum class ElasticBatch { fixed, scaled };
constexpr auto words_of(ElasticBatch) {
  return std::array{Word<ElasticBatch>{"fixed", ElasticBatch::fixed},
                    Word<ElasticBatch>{"scaled", ElasticBatch::scaled}};
}

/// Where a job's frequent checkpoints are kept, in front of the remote storage.
enum class LocalTier { peer_memory, local_disk };
constexpr auto words_of(LocalTier) {
  return std::array{Word<LocalTier>{"peer_memory", LocalTier::peer_memory},
                    Word<LocalTier>{"local_disk", LocalTier::local_disk}};
}

enum class LearningRateSchedule { constant, step, cosine };
constexpr auto words_of(LearningRateSchedule) {
  return std::array{Word<LearningRateSchedule>{"constant", LearningRateSchedule::constant},
                    Word<LearningRateSchedule>{"step", LearningRateSchedule::step},
                    Word<LearningRateSchedule>{"cosine", LearningRateSchedule::cosine}};
}

enum class DataFormat {
  synthetic,
  cifar10,
  mnist,
  tokens,
  text,
  characters,
  images,
  clicks,
  image_folder,
  webdataset,
  tfrecord,
  megatron,
  numpy
};
constexpr auto words_of(DataFormat) {
  return std::array{Word<DataFormat>{"synthetic", DataFormat::synthetic},
                    Word<DataFormat>{"cifar10", DataFormat::cifar10},
                    Word<DataFormat>{"mnist", DataFormat::mnist},
                    Word<DataFormat>{"tokens", DataFormat::tokens},
                    Word<DataFormat>{"text", DataFormat::text},
                    Word<DataFormat>{"characters", DataFormat::characters},
                    Word<DataFormat>{"images", DataFormat::images},
                    Word<DataFormat>{"clicks", DataFormat::clicks},
                    Word<DataFormat>{"image_folder", DataFormat::image_folder},
                    Word<DataFormat>{"webdataset", DataFormat::webdataset},
                    Word<DataFormat>{"tfrecord", DataFormat::tfrecord},
                    Word<DataFormat>{"megatron", DataFormat::megatron},
                    Word<DataFormat>{"numpy", DataFormat::numpy}};
}
/// Nothing is read: samples are functions of their number.
constexpr bool is_made_up(DataFormat format) {
  return format == DataFormat::synthetic || format == DataFormat::clicks;
}
/// With its test set beside what is trained on.
constexpr bool has_test_set(DataFormat format) {
  return format == DataFormat::cifar10 || format == DataFormat::mnist;
}
/// Of encoded images, which are decoded, cut and scaled.
constexpr bool holds_images(DataFormat format) {
  return format == DataFormat::image_folder || format == DataFormat::webdataset ||
         format == DataFormat::tfrecord;
}
/// May lie in a store as well as in files.
constexpr bool reads_from_stores(DataFormat format) {
  return holds_images(format) || format == DataFormat::megatron || format == DataFormat::numpy ||
         format == DataFormat::tokens;
}

/// Which part of an image becomes a sample.
enum class ImageCrop { random, center, none };
constexpr auto words_of(ImageCrop) {
  return std::array{Word<ImageCrop>{"random", ImageCrop::random},
                    Word<ImageCrop>{"center", ImageCrop::center},
                    Word<ImageCrop>{"none", ImageCrop::none}};
}

/// What becomes of a sample that cannot be decoded.
enum class DamagedSample { fail, skip };
constexpr auto words_of(DamagedSample) {
  return std::array{Word<DamagedSample>{"fail", DamagedSample::fail},
                    Word<DamagedSample>{"skip", DamagedSample::skip}};
}

enum class Role { worker, chief, parameter_server, evaluator, inference };
constexpr auto words_of(Role) {
  return std::array{Word<Role>{"worker", Role::worker}, Word<Role>{"chief", Role::chief},
                    Word<Role>{"parameter_server", Role::parameter_server},
                    Word<Role>{"evaluator", Role::evaluator},
                    Word<Role>{"inference", Role::inference}};
}
/// Of a process: a chief is a worker too. Which pools compute: computes(cluster, pool), plan.h.
constexpr bool computes(Role role) { return role == Role::worker || role == Role::chief; }

enum class Metric {
  time,
  cost,
  goodput,
  samples_per_second,
  tokens_per_second,
  tokens_per_second_per_accelerator,
  memory,
  step_seconds,
  step_mfu,
  step_share,
  interruptions,
  feasible,
  energy,
  co2,
  // of `serving:`
  latency,
  serving_cost,
  serving_replicas,
  serving_utilization,
  serving_requests_per_second,
  serving_rejected,
  // of `trace:` and `arrivals:`
  wait,
  jct,
  slowdown,
  fairness,
  preemptions,
  makespan,
  utilization,
  allocation,
  fragmentation
};
constexpr auto words_of(Metric) {
  return std::array{
      Word<Metric>{"time", Metric::time},
      Word<Metric>{"cost", Metric::cost},
      Word<Metric>{"goodput", Metric::goodput},
      Word<Metric>{"samples_per_second", Metric::samples_per_second},
      Word<Metric>{"tokens_per_second", Metric::tokens_per_second},
      Word<Metric>{"tokens_per_second_per_accelerator", Metric::tokens_per_second_per_accelerator},
      Word<Metric>{"memory", Metric::memory},
      Word<Metric>{"step.seconds", Metric::step_seconds},
      Word<Metric>{"step.mfu", Metric::step_mfu},
      Word<Metric>{"step.share", Metric::step_share},
      Word<Metric>{"interruptions", Metric::interruptions},
      Word<Metric>{"feasible", Metric::feasible},
      Word<Metric>{"energy", Metric::energy},
      Word<Metric>{"co2", Metric::co2},
      Word<Metric>{"latency", Metric::latency},
      Word<Metric>{"serving.cost", Metric::serving_cost},
      Word<Metric>{"serving.replicas", Metric::serving_replicas},
      Word<Metric>{"serving.utilization", Metric::serving_utilization},
      Word<Metric>{"serving.requests_per_second", Metric::serving_requests_per_second},
      Word<Metric>{"serving.rejected", Metric::serving_rejected},
      Word<Metric>{"wait", Metric::wait},
      Word<Metric>{"jct", Metric::jct},
      Word<Metric>{"slowdown", Metric::slowdown},
      Word<Metric>{"fairness", Metric::fairness},
      Word<Metric>{"preemptions", Metric::preemptions},
      Word<Metric>{"makespan", Metric::makespan},
      Word<Metric>{"utilization", Metric::utilization},
      Word<Metric>{"allocation", Metric::allocation},
      Word<Metric>{"fragmentation", Metric::fragmentation}};
}

enum class Statistic { none, mean, p5, p50, p95, p99 };
constexpr auto words_of(Statistic) {
  return std::array{Word<Statistic>{"mean", Statistic::mean}, Word<Statistic>{"p5", Statistic::p5},
                    Word<Statistic>{"p50", Statistic::p50}, Word<Statistic>{"p95", Statistic::p95},
                    Word<Statistic>{"p99", Statistic::p99}};
}

enum class Comparison { le, ge, lt, gt, eq, ne };
// Two-character operators first: "<=" starts with "<".
constexpr auto words_of(Comparison) {
  return std::array{Word<Comparison>{"<=", Comparison::le}, Word<Comparison>{">=", Comparison::ge},
                    Word<Comparison>{"==", Comparison::eq}, Word<Comparison>{"!=", Comparison::ne},
                    Word<Comparison>{"<", Comparison::lt},  Word<Comparison>{">", Comparison::gt}};
}

enum class StepShare { communication, compute, input, bubble };
constexpr auto words_of(StepShare) {
  return std::array{Word<StepShare>{"communication", StepShare::communication},
                    Word<StepShare>{"compute", StepShare::compute},
                    Word<StepShare>{"input", StepShare::input},
                    Word<StepShare>{"bubble", StepShare::bubble}};
}

/// To which ready replica a request goes.
///  random: as kube-proxy's iptables rules choose; round_robin: in turn, as ipvs does;
///  least_requests: the one of two random replicas with fewer requests [Mitzenmacher 2001, "The
///  power of two choices in randomized load balancing"; Envoy's LEAST_REQUEST]; shared_queue:
///  replicas take requests from one queue.
enum class Routing { random, round_robin, least_requests, shared_queue };
constexpr auto words_of(Routing) {
  return std::array{Word<Routing>{"random", Routing::random},
                    Word<Routing>{"round_robin", Routing::round_robin},
                    Word<Routing>{"least_requests", Routing::least_requests},
                    Word<Routing>{"shared_queue", Routing::shared_queue}};
}

/// poisson: independent requests; regular: as far from each other as the rate says.
enum class Arrivals { poisson, regular };
constexpr auto words_of(Arrivals) {
  return std::array{Word<Arrivals>{"poisson", Arrivals::poisson},
                    Word<Arrivals>{"regular", Arrivals::regular}};
}

/// What the best plan is best in: means, or the 95th percentile where it says so.
enum class Objective {
  cost,
  time,
  cost_time,
  throughput_per_dollar,
  cost_under_deadline,
  p95_cost,
  p95_time
};
constexpr auto words_of(Objective) {
  return std::array{Word<Objective>{"cost", Objective::cost},
                    Word<Objective>{"time", Objective::time},
                    Word<Objective>{"cost_time", Objective::cost_time},
                    Word<Objective>{"throughput_per_dollar", Objective::throughput_per_dollar},
                    Word<Objective>{"cost_under_deadline", Objective::cost_under_deadline},
                    Word<Objective>{"p95_cost", Objective::p95_cost},
                    Word<Objective>{"p95_time", Objective::p95_time}};
}

}  // namespace reckon
