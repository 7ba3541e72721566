#pragma once
#include <array>
#include <string>
#include <string_view>

#include "sim/catalog/catalog.h"

// Every key of OperationalDefaults that code asks for. A test holds the shipped catalog to this
// list; a key that code needs is added here first and to catalogs/operations.yaml with its source.
namespace reckon::keys {

inline constexpr std::string_view kScanInterval = "cluster_autoscaler.scan_interval_s";
inline constexpr std::string_view kScaleDownUnneededTime =
    "cluster_autoscaler.scale_down_unneeded_time_s";
inline constexpr std::string_view kScaleDownDelayAfterAdd =
    "cluster_autoscaler.scale_down_delay_after_add_s";
inline constexpr std::string_view kNodeProvisionTimeMax =
    "cluster_autoscaler.max_node_provision_time_s";
inline constexpr std::string_view kBackoffInitial =
    "cluster_autoscaler.initial_node_group_backoff_s";
inline constexpr std::string_view kBackoffMax = "cluster_autoscaler.max_node_group_backoff_s";
inline constexpr std::string_view kBackoffReset =
    "cluster_autoscaler.node_group_backoff_reset_timeout_s";
inline constexpr std::string_view kUtilizationThreshold =
    "cluster_autoscaler.scale_down_utilization_threshold_fraction";
inline constexpr std::string_view kNodesPerScaleUpMax =
    "cluster_autoscaler.max_nodes_per_scaleup_count";

inline constexpr std::string_view kCapacityWait = "flex_start.capacity_wait_s";
inline constexpr std::string_view kFlexStartPrice = "flex_start.price_fraction";
inline constexpr std::string_view kFlexStartRun = "flex_start.max_run_duration_s";
inline constexpr std::string_view kPoolCreation = "node_auto_provisioning.pool_creation_s";

inline constexpr std::string_view kJobBackoffLimit = "kubernetes.job_backoff_limit_count";
inline constexpr std::string_view kJobRetryBase = "kubernetes.job_retry_base_s";
inline constexpr std::string_view kJobRetryCap = "kubernetes.job_retry_cap_s";

inline constexpr std::string_view kImagePull = "job_start.image_pull_s";
inline constexpr std::string_view kFrameworkStart = "job_start.framework_start_s";
inline constexpr std::string_view kWorkerStart = "job_start.worker_start_s";
inline constexpr std::string_view kCompileGpu = "job_start.compile_gpu_s";
inline constexpr std::string_view kCompileTpu = "job_start.compile_tpu_s";

inline constexpr std::string_view kReclaimMean = "spot.reclaim_mean_s";
inline constexpr std::string_view kShortageEvery = "spot.shortage_every_s";
inline constexpr std::string_view kShortageLasts = "spot.shortage_lasts_s";

inline constexpr std::string_view kMaintenanceDuration = "maintenance.duration_s";

inline constexpr std::string_view kMtbfPerAccelerator = "failures.mtbf_per_accelerator_s";
inline constexpr std::string_view kRepair = "failures.repair_s";
inline constexpr std::string_view kMtbfRented = "failures.mtbf_rented_per_accelerator_s";
inline constexpr std::string_view kHangShare = "failures.hang_share_fraction";
inline constexpr std::string_view kHangDetection = "failures.hang_detection_s";
inline constexpr std::string_view kStragglerShare = "failures.straggler_share_fraction";
inline constexpr std::string_view kRegroup = "restart.regroup_s";

inline constexpr std::string_view kSaveOverhead = "checkpoint.save_overhead_s";
inline constexpr std::string_view kWorkerSave = "checkpoint.worker_save_s";
inline constexpr std::string_view kRestoreOverhead = "checkpoint.restore_overhead_s";
inline constexpr std::string_view kNoticeReaction = "checkpoint.notice_reaction_s";
inline constexpr std::string_view kLargeSave = "checkpoint.large_run_save_s";
inline constexpr std::string_view kWriterSpread = "checkpoint.writer_spread_fraction";
inline constexpr std::string_view kLocalDisk = "checkpoint.local_disk_bytes_per_s_per_node";

inline constexpr std::string_view kCpuFlopsPerVcpu = "host.cpu_flop_per_s_per_vcpu";
inline constexpr std::string_view kCpuMemoryPerVcpu = "host.cpu_memory_bytes_per_s_per_vcpu";

inline constexpr std::string_view kCpuLaunch = "host.cpu_launch_s";
inline constexpr std::string_view kCpuStep = "host.cpu_step_s";
inline constexpr std::string_view kCollectiveCall = "host.collective_call_s";

inline constexpr std::string_view kFrameworkReserve = "framework.reserve_bytes";
inline constexpr std::string_view kCommunicator = "framework.communicator_bytes";
inline constexpr std::string_view kFragmentation = "framework.fragmentation_fraction";
inline constexpr std::string_view kMemorySpread = "framework.memory_spread_fraction";
inline constexpr std::string_view kStepJitter = "framework.step_jitter_fraction";
inline constexpr std::string_view kOverlapSlowdown = "framework.overlap_slowdown_fraction";
inline constexpr std::string_view kExpertImbalance = "framework.expert_imbalance_fraction";
inline constexpr std::string_view kZipfExponent = "framework.zipf_exponent_fraction";

inline constexpr std::string_view kSpotFall = "prices.spot_fall_in_year_fraction";
inline constexpr std::string_view kSpotRise = "prices.spot_rise_in_year_fraction";
inline constexpr std::string_view kListFall = "prices.list_fall_in_year_fraction";
inline constexpr std::string_view kListRise = "prices.list_rise_in_year_fraction";
inline constexpr std::string_view kLeastPriceAge = "prices.age_least_s";

inline constexpr std::string_view kBusyShare = "power.busy_share_fraction";
inline constexpr std::string_view kIdleShare = "power.idle_share_fraction";
inline constexpr std::string_view kPue = "power.pue_fraction";  // where the provider says none
inline constexpr std::string_view kWattsPerVcpu = "power.w_per_vcpu";
inline constexpr std::string_view kWattsPerGb = "power.w_per_gb";

inline constexpr std::array kAll{kScanInterval,
                                 kScaleDownUnneededTime,
                                 kScaleDownDelayAfterAdd,
                                 kNodeProvisionTimeMax,
                                 kBackoffInitial,
                                 kBackoffMax,
                                 kCapacityWait,
                                 kFlexStartPrice,
                                 kFlexStartRun,
                                 kPoolCreation,
                                 kBackoffReset,
                                 kUtilizationThreshold,
                                 kNodesPerScaleUpMax,
                                 kJobBackoffLimit,
                                 kJobRetryBase,
                                 kJobRetryCap,
                                 kImagePull,
                                 kFrameworkStart,
                                 kWorkerStart,
                                 kCompileGpu,
                                 kCompileTpu,
                                 kReclaimMean,
                                 kShortageEvery,
                                 kShortageLasts,
                                 kMaintenanceDuration,
                                 kMtbfPerAccelerator,
                                 kRepair,
                                 kMtbfRented,
                                 kHangShare,
                                 kHangDetection,
                                 kStragglerShare,
                                 kRegroup,
                                 kSaveOverhead,
                                 kWorkerSave,
                                 kRestoreOverhead,
                                 kNoticeReaction,
                                 kLargeSave,
                                 kWriterSpread,
                                 kLocalDisk,
                                 kCpuFlopsPerVcpu,
                                 kCpuMemoryPerVcpu,
                                 kCpuLaunch,
                                 kCpuStep,
                                 kCollectiveCall,
                                 kFrameworkReserve,
                                 kCommunicator,
                                 kFragmentation,
                                 kMemorySpread,
                                 kStepJitter,
                                 kZipfExponent,
                                 kOverlapSlowdown,
                                 kExpertImbalance,
                                 kSpotFall,
                                 kSpotRise,
                                 kListFall,
                                 kListRise,
                                 kLeastPriceAge,
                                 kBusyShare,
                                 kIdleShare,
                                 kPue,
                                 kWattsPerVcpu,
                                 kWattsPerGb};

/// What a node is, as far as the time to get one goes.
enum class NodeKind { cpu, gpu, tpu };

// Keys by provider or service: catalogs/providers.yaml and services.yaml give all of them for every
// one, but where it says otherwise.
/// "provisioning.gcp_gpu_s"; not of TPUs where the provider has none.
std::string provisioning(const Provider& provider, NodeKind kind);
std::string spot_notice(const Provider& provider);         // "spot.gcp_notice_s"
std::string maintenance_every(const Provider& provider);   // "maintenance.gcp_every_s"
std::string maintenance_notice(const Provider& provider);  // "maintenance.gcp_notice_s"
/// "maintenance.gcp_reserved_together_fraction": above 0 where the nodes of a reservation are
/// maintained at the same time.
std::string maintenance_together(const Provider& provider);
std::string billing_granularity(const Provider& provider);  // "billing.gcp_granularity_s"
std::string billing_minimum(const Provider& provider);      // "billing.gcp_minimum_s"
/// "spot.gcp_free_if_reclaimed_within_s"
std::string free_if_reclaimed_within(const Provider& provider);
/// "power.gcp_pue_fraction"
std::string pue(const Provider& provider);
/// Of a GB that leaves a region or a zone: "egress.gcp_between_regions_usd_per_gb"
std::string egress_between_regions(const Provider& provider);
std::string egress_between_zones(const Provider& provider);
/// Of blocks of machines that are bought for days: "block.aws_ends_before_s". Lengths are whole
/// steps, from `long_from` on whole long steps, up to `longest`.
std::string block_ends_before(const Provider& provider);
std::string block_step(const Provider& provider);
std::string block_long_step(const Provider& provider);
std::string block_long_from(const Provider& provider);
std::string block_longest(const Provider& provider);
std::string block_most(const Provider& provider);
std::string management_fee(const Service& service);  // "billing.gke_management_usd_per_hour"
/// "spot.gke_pod_notice_s": only where pods get less than the whole notice.
std::string pod_notice(const Service& service);

}  // namespace reckon::keys
