#pragma once
#include <type_traits>

#include "sim/measurement/measurements.h"

// The keys of each record, once for writing and for reading. Units come last in a key, as
// everywhere.
namespace reckon {

template <class R, class F>
requires std::is_same_v<std::remove_const_t<R>, RunRecord>
void for_each_field(R& r, F&& f) {
  f("schema_version", r.schema_version);
  f("scenario", r.scenario);
  f("attempt", r.attempt);
  f("started", r.started);
  f("at_seconds", r.at);
  f("first_step", r.first_step);
  f("steps", r.steps);
  f("model", r.model);
  f("precision", r.precision);
  f("optimizer", r.optimizer);
  f("strategy", r.strategy);
  f("stack", r.stack);
  f("workers", r.workers);
  f("parameter_servers", r.parameter_servers);
  f("accelerators", r.accelerators);
  f("accelerator", r.accelerator);
  f("machine", r.machine);
  f("batch_per_accelerator", r.batch_per_accelerator);
  f("global_batch", r.global_batch);
  f("seed", r.seed);
  f("catalog_digest", r.catalog_digest);
  f("plan_digest", r.plan_digest);
  f("planned_digest", r.planned_digest);
  f("data", r.data);
}

template <class R, class F>
requires std::is_same_v<std::remove_const_t<R>, StepRecord>
void for_each_field(R& r, F&& f) {
  f("attempt", r.attempt);
  f("rank", r.rank);
  f("step", r.step);
  f("at_seconds", r.at);
  f("seconds", r.seconds);
  f("compute_seconds", r.compute);
  f("communication_seconds", r.communication);
  f("exposed_communication_seconds", r.exposed_communication);
  f("input_seconds", r.input);
  f("update_seconds", r.update);
  f("other_seconds", r.other);
  f("gradients_seconds", r.waits.gradients);
  f("parameters_seconds", r.waits.parameters);
  f("tensor_seconds", r.waits.tensor);
  f("context_seconds", r.waits.context);
  f("expert_seconds", r.waits.expert);
  f("pipeline_seconds", r.waits.pipeline);
  f("bubble_seconds", r.waits.bubble);
  f("push_seconds", r.push);
  f("pull_seconds", r.pull);
  f("wait_seconds", r.wait);
  f("apply_seconds", r.apply);
  f("sent_bytes", r.sent);
  f("samples", r.samples);
  f("loss", r.loss);
  f("delay_updates", r.delay);
  f("read_samples", r.read_samples);
  f("skipped_samples", r.skipped_samples);
  f("read_bytes", r.read_bytes);
  f("read_seconds", r.read);
  f("request_seconds", r.requests);
  f("decode_cpu_seconds", r.decode_cpu);
}

template <class R, class F>
requires std::is_same_v<std::remove_const_t<R>, Span>
void for_each_field(R& r, F&& f) {
  f("name", r.name);
  f("category", r.category);
  f("pool", r.pool);
  f("node", r.node);
  f("begin_seconds", r.begin);
  f("end_seconds", r.end);
}

template <class R, class F>
requires std::is_same_v<std::remove_const_t<R>, Mark>
void for_each_field(R& r, F&& f) {
  f("name", r.name);
  f("pool", r.pool);
  f("node", r.node);
  f("at_seconds", r.at);
}

template <class R, class F>
requires std::is_same_v<std::remove_const_t<R>, InterruptionRecord>
void for_each_field(R& r, F&& f) {
  f("attempt", r.attempt);
  f("cause", r.cause);
  f("rank", r.rank);
  f("at_seconds", r.at);
  f("notice_seconds", r.notice);
  f("lost_steps", r.lost_steps);
  f("lost_work_seconds", r.lost_work);
  f("detail", r.detail);
}

template <class R, class F>
requires std::is_same_v<std::remove_const_t<R>, CheckpointRecord>
void for_each_field(R& r, F&& f) {
  f("attempt", r.attempt);
  f("action", r.action);
  f("emergency", r.emergency);
  f("step", r.step);
  f("at_seconds", r.at);
  f("seconds", r.seconds);
  f("blocked_seconds", r.blocked);
  f("size_bytes", r.size);
}

template <class R, class F>
requires std::is_same_v<std::remove_const_t<R>, ProvisioningRecord>
void for_each_field(R& r, F&& f) {
  f("pool", r.pool);
  f("node", r.node);
  f("machine", r.machine);
  f("at_seconds", r.at);
  f("seconds", r.seconds);
  f("ready", r.ready);
}

template <class R, class F>
requires std::is_same_v<std::remove_const_t<R>, EndRecord>
void for_each_field(R& r, F&& f) {
  f("attempt", r.attempt);
  f("finished", r.finished);
  f("at_seconds", r.at);
  f("steps_done", r.steps_done);
  f("detail", r.detail);
  f("spent_usd", r.spent);
}

template <class R, class F>
requires std::is_same_v<std::remove_const_t<R>, ChangeRecord>
void for_each_field(R& r, F&& f) {
  f("attempt", r.attempt);
  f("step", r.step);
  f("at_seconds", r.at);
  f("name", r.name);
  f("recorded", r.recorded);
  f("value", r.value);
}

template <class R, class F>
requires std::is_same_v<std::remove_const_t<R>, DecisionRecord>
void for_each_field(R& r, F&& f) {
  f("attempt", r.attempt);
  f("step", r.step);
  f("at_seconds", r.at);
  f("applied", r.applied);
  f("planned_digest", r.planned_digest);
  f("what", r.what);
  f("changes", r.changes);
  f("kept_miss_probability", r.kept_miss);
  f("kept_p5_seconds", r.kept_p5);
  f("kept_p50_seconds", r.kept_p50);
  f("kept_p95_seconds", r.kept_p95);
  f("kept_cost_usd", r.kept_cost);
  f("miss_probability", r.miss);
  f("p5_seconds", r.p5);
  f("p50_seconds", r.p50);
  f("p95_seconds", r.p95);
  f("cost_usd", r.cost);
}

template <class R, class F>
requires std::is_same_v<std::remove_const_t<R>, EvaluationRecord>
void for_each_field(R& r, F&& f) {
  f("attempt", r.attempt);
  f("rank", r.rank);
  f("step", r.step);
  f("at_seconds", r.at);
  f("seconds", r.seconds);
  f("samples", r.samples);
  f("loss", r.loss);
}

template <class R, class F>
requires std::is_same_v<std::remove_const_t<R>, MachineRecord>
void for_each_field(R& r, F&& f) {
  f("schema_version", r.schema_version);
  f("started", r.started);
  f("host", r.host);
  f("processor", r.processor);
  f("stack", r.stack);
  f("cores", r.cores);
  f("threads", r.threads);
  f("sockets", r.sockets);
  f("numa_nodes", r.numa_nodes);
  f("memory_bytes", r.memory);
  f("cpu_quota", r.cpu_quota);
  f("before_hertz", r.hertz_before);
  f("after_hertz", r.hertz_after);
  f("throttled_seconds", r.throttled);
  f("drift", r.drift);
  f("device_drift", r.device_drift);
  f("seconds", r.seconds);
}

template <class R, class F>
requires std::is_same_v<std::remove_const_t<R>, AcceleratorRecord>
void for_each_field(R& r, F&& f) {
  f("index", r.index);
  f("name", r.name);
  f("driver", r.driver);
  f("memory_bytes", r.memory);
  f("now_hertz", r.hertz);
  f("max_hertz", r.hertz_max);
  f("pcie_generation", r.pcie_generation);
  f("pcie_lanes", r.pcie_lanes);
  f("nvlinks", r.nvlinks);
  f("celsius", r.celsius);
  f("throttle_reasons", r.throttle_reasons);
}

template <class R, class F>
requires std::is_same_v<std::remove_const_t<R>, ProbeRecord>
void for_each_field(R& r, F&& f) {
  f("kind", r.kind);
  f("item", r.item);
  f("device", r.device);
  f("precision", r.precision);
  f("threads", r.threads);
  f("processes", r.processes);
  f("m", r.m);
  f("n", r.n);
  f("k", r.k);
  f("flops", r.flops);
  f("size_bytes", r.bytes);
  f("samples", r.samples);
  f("median_seconds", r.median);
  f("min_seconds", r.min);
  f("p99_seconds", r.p99);
  f("variation", r.variation);
  f("repetitions", r.repetitions);
  f("warmup", r.warmup);
  f("bus_bytes_per_second", r.bus_bandwidth);
}

}  // namespace reckon
