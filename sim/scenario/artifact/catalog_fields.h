#pragma once
#include "sim/catalog/catalog.h"
#include "sim/scenario/artifact/model_fields.h"

// Fields of the catalog's entries that a plan holds (sim/catalog/catalog.h).
namespace reckon {

RECKON_WORDS(Precision, fp32, tf32, fp16, bf16, fp8, mxfp8, nvfp4)
RECKON_WORDS(Scales, nothing, pools_of_cpus, all_pools)
RECKON_WORDS(CapacityType, on_demand, spot, reserved)
RECKON_WORDS(AcceleratorKind, gpu, tpu)

RECKON_FIELDS(Provider, name)
RECKON_FIELDS(Service, name)
RECKON_FIELDS(ServiceRules, id, called, kubernetes, scales, karpenter_labels, flex_start,
              compute_classes, price_expander, slurm, nodes_of_job, one_zone, spot_machines,
              spot_slices, prices_of, cluster_tool, name_server, bucket_driver, bucket_annotation)
RECKON_FIELDS(Source, id, reference, retrieved)
RECKON_FIELDS(Accelerator, name, aliases, kind, vendor, architecture, year, peak, memory,
              usable_memory, memory_bandwidth, peer_bandwidth, peer_link, host_bandwidth,
              cores_per_device, torus_dimensions, power_watts, notes)
RECKON_FIELDS(TpuSlice, name, accelerator, chips, torus, wraps, hosts, machine)
RECKON_FIELDS(Machine, name, provider, vcpus, memory, network, accelerator, accelerator_count,
              peer_fabric, network_link, minimum_rental, services, notes)
RECKON_FIELDS(Dataset, name, aliases, samples, validation_samples, bytes_per_sample,
              decode_cpu_seconds, unit)
RECKON_FIELDS(Storage, name, aliases, provider, is_default, read_per_node, write_per_node, latency)
RECKON_FIELDS(Efficiency, accelerator, precision, stack, convolution, winograd, matmul, attention,
              memory, half_size, launch, host, step_spread)
RECKON_FIELDS(LinkClass, name, efficiency, latency, call, pieces, reduction, flow)
RECKON_FIELDS(ClusterNames::Name, text, source)
RECKON_FIELDS(ClusterNames, name, names)
RECKON_FIELDS(Convergence, accuracy, starts_from, sequence_length, fewest, critical_batch,
              smallest_batch, largest_batch, spread, source)

}  // namespace reckon
