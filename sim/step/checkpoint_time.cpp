#include <algorithm>

#include "sim/step/element_sizes.h"
#include "sim/step/step.h"

// Saving and loading the job's state (docs/MODELS.md, "Checkpoints").
namespace reckon {
namespace {

/// Who writes, and how many side by side: every parameter server its shard
/// (tf.train.Saver(sharded=True), the default of a TensorFlow training session); where the model
/// or its state is cut, every node what its accelerators hold [torch.distributed.checkpoint]; else
/// the first worker alone.
struct Writers {
  const PlannedPool* pool;
  int count;
};

Writers writers_of(const Plan& plan, const PlannedWorkload& job) {
  const auto* servers = plan.pool_with(Role::parameter_server);
  if (servers && job.strategy.server_count() > 0) return {servers, job.strategy.server_count()};
  const PlannedPool* first = computing_pools(plan).front();
  if (job.strategy.servers && job.strategy.servers->colocated)
    return {first, job.strategy.servers->count};
  if (!cuts_the_model(job.strategy)) return {first, 1};
  const PlannedStrategy& s = job.strategy;
  const int per_node =
      std::max(1, first->accelerators_per_node / std::max(1, s.accelerators_per_worker));
  return {first, (s.workers + per_node - 1) / per_node};
}

BytesPerSecond through_nic(const PlannedPool& pool, BytesPerSecond storage) {
  const BytesPerSecond nic = pool.machine.network.value;
  return nic.v > 0 ? std::min(nic, storage) : storage;
}

/// Frozen weights are no part of a checkpoint, but who starts again loads them too.
Bytes frozen_bytes(const PlannedWorkload& job) {
  const std::int64_t frozen = job.model.parameters() - job.model.trainable_parameters();
  return double(frozen) * element_sizes(job).weight;
}

}  // namespace

Bytes checkpoint_bytes(const PlannedWorkload& job) {
  // fp32 weights and the optimizer's fp32 state, of what is trained (peft saves adapters alone);
  // working copies in 16 bits are made again on loading.
  const Bytes per_parameter = Bytes{4} + optimizer_cost(job.model, job.optimizer).state;
  return double(job.model.trainable_parameters()) * per_parameter;
}

Seconds checkpoint_save_time(const Plan& plan, const PlannedWorkload& job) {
  const Writers w = writers_of(plan, job);
  const Storage& storage = job.checkpoint.storage;
  const BytesPerSecond rate = through_nic(*w.pool, storage.write_per_node.value);
  Seconds t = job.checkpoint.save_overhead.value + storage.latency.value;
  if (rate.v > 0) t += checkpoint_bytes(job) / double(w.count) / rate;
  return t;
}

int checkpoint_writers(const Plan& plan, const PlannedWorkload& job) {
  return writers_of(plan, job).count;
}

namespace {

/// State to the host's memory: what holds it is copied by all its accelerators at once; by the
/// processors where there are none.
Seconds copy_time(const PlannedWorkload& job, const Writers& w) {
  const PlannedPool& pool = *w.pool;
  BytesPerSecond rate =
      double(pool.machine.vcpus) * pool.cpu_memory_bandwidth_per_vcpu.value / 2.0;  // read, written
  if (pool.accelerator && pool.role != Role::parameter_server) {
    const int copies = cuts_the_model(job.strategy) ? std::max(1, pool.accelerators_per_node) : 1;
    rate = double(copies) * pool.accelerator->host_bandwidth.value;
  }
  return rate.v > 0 ? checkpoint_bytes(job) / double(w.count) / rate : Seconds{0};
}

bool spans_nodes(const PlannedPool& pool, const PlannedStrategy& strategy) {
  return strategy.server_count() > 0 ||
         strategy.accelerators() > std::max(1, pool.accelerators_per_node);
}

}  // namespace

namespace {

/// A write beside training: how long it goes on, and how much longer the steps beside it take.
struct Beside {
  Seconds write{}, slower{};
};
/// `rate`: of the other end. The NIC is the write's own while a step does not use it, and half of
/// it while it does.
Beside beside_training(const Writers& w, const PlannedWorkload& job, const StepEstimate& step,
                       Bytes bytes, BytesPerSecond rate) {
  Beside out;
  const bool network = spans_nodes(*w.pool, job.strategy) && step.step.count() > 0;
  const double busy = network ? std::min(1.0, step.communication / step.step) : 0.0;
  const BytesPerSecond nic = w.pool->machine.network.value;
  if (nic.v > 0) rate = rate.v > 0 ? std::min(rate, nic * (1 - busy / 2)) : nic * (1 - busy / 2);
  if (rate.v > 0) out.write = bytes / rate;
  if (step.step.count() > 0 && nic.v > 0) {
    const double taken = std::min(rate / nic, 0.5);
    const Seconds on_nic = (network ? step.communication : Seconds{0}) + step.exposed_input;
    const double slower = taken / (1 - taken) * (on_nic / step.step);
    out.slower = out.write * (slower / (1 + slower));
  }
  return out;
}

}  // namespace

LocalSaveTimes local_save_times(const Plan& plan, const PlannedWorkload& job,
                                const StepEstimate& step) {
  if (!job.checkpoint.local) return {};
  const PlannedLocalCheckpoint& local = *job.checkpoint.local;
  const Writers w = writers_of(plan, job);
  const Bytes part = checkpoint_bytes(job) / double(w.count);
  const Seconds copy = copy_time(job, w);
  LocalSaveTimes times{.stall = copy, .write = {}, .restore = copy};
  const BytesPerSecond disk = local.disk.value;
  if (local.replicas > 1) {
    const Beside sent = beside_training(w, job, step, double(local.replicas - 1) * part, disk);
    times.stall += sent.slower;
    times.write = sent.write;
    const BytesPerSecond nic = w.pool->machine.network.value;
    if (nic.v > 0) times.restore += part / nic;
  }
  if (local.to == LocalTier::local_disk && disk.v > 0) {
    times.write = std::max(times.write, double(local.replicas) * part / disk);
    times.restore += part / disk;
  }
  return times;
}

Bytes local_tier_memory(const Plan& plan, const PlannedWorkload& job) {
  const auto& local = job.checkpoint.local;
  if (!local || local->to != LocalTier::peer_memory) return {};
  constexpr double kCopies = 2;  // complete, and being made
  return kCopies * double(local->replicas) * checkpoint_bytes(job) /
         double(writers_of(plan, job).count);
}

Seconds peer_restore_time(const Plan& plan, const PlannedWorkload& job) {
  const PlannedPool& pool = *computing_pools(plan).front();
  const double of_a_copy = std::min(
      1.0, std::max(1, pool.accelerators_per_node) / double(job.strategy.layout.replica()));
  const BytesPerSecond nic = pool.machine.network.value;
  return nic.v > 0 ? of_a_copy * (checkpoint_bytes(job) + frozen_bytes(job)) / nic : Seconds{0};
}

SaveTimes save_times(const Plan& plan, const PlannedWorkload& job, const StepEstimate& step) {
  if (job.checkpoint.save_mode == SaveMode::blocking) return {checkpoint_save_time(plan, job), {}};
  const Writers w = writers_of(plan, job);
  const Storage& storage = job.checkpoint.storage;
  const bool network = spans_nodes(*w.pool, job.strategy) && step.step.count() > 0;
  const double busy = network ? std::min(1.0, step.communication / step.step) : 0.0;
  const BytesPerSecond nic = w.pool->machine.network.value;
  BytesPerSecond rate = storage.write_per_node.value;
  if (nic.v > 0) rate = std::min(rate, nic * (1 - busy / 2));
  SaveTimes times;
  times.write = job.checkpoint.save_overhead.value + storage.latency.value;
  if (rate.v > 0) times.write += checkpoint_bytes(job) / double(w.count) / rate;
  times.stall = copy_time(job, w);
  if (step.step.count() > 0 && nic.v > 0) {
    const double taken = std::min(rate / nic, 0.5);
    const Seconds on_nic = (network ? step.communication : Seconds{0}) + step.exposed_input;
    const double slower = taken / (1 - taken) * (on_nic / step.step);
    times.stall += times.write * (slower / (1 + slower));
  }
  return times;
}

Seconds checkpoint_restore_time(const Plan& plan, const PlannedWorkload& job) {
  // Every node that holds state reads all of its part at the same time, each at its own rate.
  const Writers w = writers_of(plan, job);
  const Storage& storage = job.checkpoint.storage;
  const BytesPerSecond rate = through_nic(*w.pool, storage.read_per_node.value);
  Seconds t = storage.latency.value;
  if (rate.v > 0) t += (checkpoint_bytes(job) + frozen_bytes(job)) / double(w.count) / rate;
  return t;
}

}  // namespace reckon
