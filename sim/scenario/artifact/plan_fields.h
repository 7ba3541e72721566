#pragma once
#include "sim/scenario/artifact/artifact.h"
#include "sim/scenario/artifact/catalog_fields.h"

// Fields of a Plan (sim/scenario/plan.h) and of what hangs on it.
namespace reckon {

RECKON_WORDS(StrategyKind, single, mirrored, multi_worker_mirrored, parameter_server, tpu, sharded,
             model_parallel)
RECKON_WORDS(Recompute, none, selective, full)
RECKON_WORDS(AllReduceKind, automatic, ring, tree, hierarchical, in_network)
RECKON_WORDS(PipelineSchedule, gpipe, one_forward_one_backward, interleaved)
RECKON_WORDS(ServerShards, even, round_robin, balanced)
RECKON_WORDS(RowPartition, mod, div)
RECKON_WORDS(Optimizer, sgd_momentum, adamw, adamw_8bit, lion, adafactor, muon)
RECKON_WORDS(LearningRateSchedule, constant, step, cosine)
RECKON_WORDS(OnNotice, save, none)
RECKON_WORDS(SaveMode, blocking, async)
RECKON_WORDS(RestartKind, full, in_place, warm_spare, elastic)
RECKON_WORDS(ElasticBatch, fixed, scaled)
RECKON_WORDS(LocalTier, peer_memory, local_disk)
RECKON_WORDS(CheckpointSpec::Mode, none, interval, optimal)
RECKON_WORDS(DataFormat, synthetic, cifar10, mnist, tokens, text, characters, images, clicks,
             image_folder, webdataset, tfrecord, megatron, numpy)
RECKON_WORDS(ImageCrop, random, center, none)
RECKON_WORDS(DamagedSample, fail, skip)
RECKON_WORDS(Role, worker, chief, parameter_server, evaluator, inference)
RECKON_WORDS(Metric, time, cost, goodput, samples_per_second, tokens_per_second,
             tokens_per_second_per_accelerator, memory, step_seconds, step_mfu, step_share,
             interruptions, feasible, energy, co2, latency, serving_cost, serving_replicas,
             serving_utilization, serving_requests_per_second, serving_rejected, wait, jct,
             slowdown, fairness, preemptions, makespan, utilization, allocation, fragmentation)
RECKON_WORDS(StepShare, communication, compute, input, bubble)
RECKON_WORDS(Statistic, none, mean, p5, p50, p95, p99)
RECKON_WORDS(Comparison, le, ge, lt, gt, eq, ne)

RECKON_FIELDS(Layout, data, micro_batches, tensor, pipeline, context, expert, zero_stage,
              micro_batch, sequence_parallel, schedule, interleave, offload_optimizer, overlap,
              recompute, stops_recomputing)
RECKON_FIELDS(ParameterServers, count, synchronous, backup_workers, staleness, colocated, shards,
              partition, sparse_embeddings, rows)
RECKON_FIELDS(PlannedStrategy, kind, workers, accelerators_per_worker, all_reduce, layout, servers)
RECKON_FIELDS(PlannedOptimizer, learning_rate, momentum, beta1, beta2, epsilon, weight_decay,
              clip_norm, schedule, warmup_steps, decay_every, decay_factor, final_fraction)
RECKON_FIELDS(PlannedNotice, policy, stated, own_program, reaction, writer_spread, between_steps)
RECKON_FIELDS(PlannedLocalCheckpoint, to, every, replicas, disk)
RECKON_FIELDS(PlannedCheckpoint, mode, interval, save_mode, notice, save_overhead, storage, local)
RECKON_FIELDS(PlannedRestart, kind, spares, min_workers, batch, regroup)
RECKON_FIELDS(DataSpec, format, path, endpoint, validation, crop, resize, flip, damaged, threads)
RECKON_FIELDS(JobResidual, step_spread, memory_mean, memory_deviation)
RECKON_FIELDS(PlannedWorkload, name, path, same_as, submit, model, dataset, precision, stack,
              fp32_gradients, stage_blocks, stage_pools, optimizer, optimizer_settings, data,
              global_batch, total_samples, epochs, convergence, samples_factor, steps,
              evaluate_every_epochs, evaluations, strategy, checkpoint, restart, zipf_exponent,
              residual)

RECKON_FIELDS(ProductTimes, extents, times)
RECKON_FIELDS(StreamTimes::Pass, bytes, time)
RECKON_FIELDS(StreamTimes, passes)
RECKON_FIELDS(WorkerRates, threads, network, products, each, streams)
RECKON_FIELDS(PriceSpread, market, low, high, source)
RECKON_FIELDS(NodePrice, known, machine, accelerators, as_of, source, spread)
RECKON_WORDS(ReservationKind, machines, owned, block, commitment)
RECKON_FIELDS(PlannedReservation, nodes, price, until, from, whole, kind, ends_before, term, list)
RECKON_FIELDS(EgressRules, between_regions, between_zones, checkpoints, data, zones)
RECKON_WORDS(ProvisioningModel, standard, flex_start, flex_start_queued, best_effort_atomic,
             check_capacity)
RECKON_FIELDS(PlannedPool, id, name, role, machine, accelerator, accelerators_per_node, slice,
              nodes_initial, nodes_min, nodes_max, autoscaling, pricing, fallback_for, node_pool,
              rank, provisioning_model, capacity_wait, max_run_duration, pool_creation, patience,
              price, reservation, minimum_rental, provisioning, efficiency, host_step, peer_link,
              network_link, cpu_flops_per_vcpu, cpu_memory_bandwidth_per_vcpu, measured_rates)

RECKON_WORDS(RequirementOperator, In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte)
RECKON_WORDS(ConsolidationPolicy, WhenEmpty, WhenEmptyOrUnderutilized)
RECKON_WORDS(DisruptionReason, Empty, Underutilized, Drifted)
RECKON_FIELDS(NodeRequirement, key, op, values, min_values)
RECKON_FIELDS(DisruptionBudget, share, nodes, schedule, duration, reasons)
RECKON_FIELDS(NodePoolLimits, cpu, nodes, gpus, memory)
RECKON_FIELDS(NodePoolSpec, name, weight, requirements, limits, consolidation_policy,
              consolidate_after, budgets, expire_after, termination_grace_period)
RECKON_FIELDS(KarpenterSpec, batch_idle, batch_max, spot_to_spot_consolidation, interruption_queue,
              do_not_disrupt, node_pools)
RECKON_WORDS(Expander, random, most_pods, least_waste, least_nodes, price, priority)
RECKON_FIELDS(ExpanderPriority, priority, groups)
RECKON_FIELDS(ClusterAutoscalerSpec, expander, priorities, balance_similar_node_groups)
RECKON_WORDS(WhenUnsatisfiable, DoNotScaleUp, ScaleUpAnyway)
RECKON_FIELDS(ResourceLimit, resource_type, maximum)
RECKON_FIELDS(ComputeClassRule, machine_family, machine_type, spot, flex_start, min_cores,
              min_memory_gb, max_run_duration)
RECKON_FIELDS(ComputeClassSpec, priorities, when_unsatisfiable, optimize_rule_priority,
              consolidation_delay)
RECKON_FIELDS(NodeAutoProvisioningSpec, resource_limits, locations, compute_class, safe_to_evict)
RECKON_FIELDS(SlurmExcludedNodes, pool, count)
RECKON_FIELDS(SlurmPowerSpec, suspend_time, suspend_timeout, resume_timeout, resume_rate,
              suspend_rate, suspend_exc_nodes, idle_on_node_suspend, power_save_interval)
RECKON_FIELDS(AutoscalerRules, scan_interval, scale_down_unneeded_time, scale_down_delay_after_add,
              max_node_provision_time, node_group_backoff_initial, node_group_backoff_max,
              node_group_backoff_reset, scale_down_utilization_threshold, max_nodes_per_scale_up)
RECKON_FIELDS(RetryRules, backoff_limit, base, cap, counts_disruptions)
RECKON_FIELDS(BillingRules, granularity, minimum, free_if_reclaimed_within, management)
RECKON_FIELDS(JobStartRules, image_pull, framework_start, compile)
RECKON_FIELDS(FrameworkRules, reserve, communicator, fragmentation, buffers_per_parameter,
              keeps_scores, memory_spread, memory_mean, memory_deviation, step_jitter,
              overlap_slowdown, expert_imbalance)
RECKON_FIELDS(PlannedFabric, nics, rails, nodes_per_leaf, oversubscription, in_network_reduction)
RECKON_NO_FIELDS(NoReclaim)
RECKON_FIELDS(ExponentialReclaim, mean)
RECKON_FIELDS(WeibullReclaim, shape, scale)
RECKON_FIELDS(BathtubReclaim, a, tau1, tau2, b, limit)
RECKON_FIELDS(TraceReclaim::Generate, mean, duration, nodes, seed)
RECKON_FIELDS(TraceReclaim, file, gap, generate)
RECKON_FIELDS(ReclaimRules, law, assumed_mean, notice, trace, trace_length)
RECKON_FIELDS(ShortageRules, on, every, lasts)
RECKON_FIELDS(MaintenanceRules, on, every, notice, duration, grouped)
RECKON_FIELDS(PowerRules, busy_share, idle_share, watts_per_vcpu, watts_per_gb, pue, grams_per_kwh)
RECKON_FIELDS(FailureRules, on, mtbf_per_accelerator, repair, hang_share, hang_detection,
              process_share, straggler_share)

RECKON_FIELDS(Expectation, text, metric, share, statistic, comparison, value, currency, date)
RECKON_FIELDS(ComparableRun, id, source, accelerator, network, stack, accelerators, each, same_job,
              correlation, residual)
RECKON_FIELDS(TrialOffer, steps, accelerators, half_width, time, cost)
RECKON_FIELDS(StepEvidence, median, low, high, half_width, runs, of_this_job, trial)

RECKON_FIELDS(Currency, code, usd_rate)
RECKON_FIELDS(PlanOrigin, name, start, seed, catalog_digest, calibrations, prices_as_of, currency,
              warnings, sources)
RECKON_FIELDS(PlannedCluster, provider, service, region, zone, pools, autoscaler,
              cluster_autoscaler, karpenter, node_auto_provisioning, slurm, begins, retry, billing,
              job_start, framework, fabric, reclaim, shortage, maintenance, failures, power,
              storage_per_gb, egress)
RECKON_FIELDS(PlannedTraining, jobs, replications, expect, evidence)
RECKON_FIELDS_OF_BASES(Plan, PlanOrigin, PlannedCluster, PlannedTraining)

RECKON_FIELDS(ContainerSpec, image, command, env, metrics, profile)
RECKON_FIELDS(Rebinding, target, from)
RECKON_FIELDS(RunArtifact, plan, container, scenario, file, rebound, names, owned)

}  // namespace reckon
