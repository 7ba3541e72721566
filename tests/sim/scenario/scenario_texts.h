#pragma once
#include <string_view>

// Scenarios that read without an error: together they hold every key of the grammar.
namespace reckon::testing {

inline constexpr std::string_view kSmall = R"(name: small
workload:
  model: resnet50_v1_5
  dataset: imagenet
  train: {epochs: 90}
  batch_per_accelerator: 64
cluster:
  provider: gcp
  region: us-central1
  pools:
    - {name: p100, machine: n1-standard-16, accelerator: {type: P100-PCIE-16, count: 2}, nodes: 3}
)";

inline constexpr std::string_view kServers =
    R"(# Question: do spot P100 nodes finish ResNet-50 by Monday, and for how much?
name: resnet50-spot-p100
start: 2026-12-04T18:00:00Z
workload:
  model: resnet50_v1_5
  dataset: {samples: 1281167, bytes_per_sample: 110kB}
  train: {epochs: 90}
  precision: fp32
  optimizer: sgd
  batch_per_accelerator: 64
  evaluation: {every_epochs: 4}
  stack: tf1
  strategy:
    kind: parameter_server
    workers: 4
    accelerators_per_worker: 1
    parameter_servers: 2
    mode: synchronous
    backup_workers: 1
    recompute: none
  checkpoint: {interval: 10min, storage: gcs-standard}
cluster:
  provider: gcp
  service: gke
  region: us-central1
  zone: us-central1-c
  pools:
    - name: p100
      role: worker
      machine: n1-standard-16
      accelerator: {type: P100-PCIE-16, count: 2}
      nodes: {initial: 3, min: 0, max: 5}
      autoscaling: true
      pricing: spot
    - {name: servers, role: parameter_server, machine: n1-highmem-8, nodes: 2}
prices:
  currency: EUR
  usd_rate: 0.92
  discount: 30%
  rates: {a3-highgpu-8g: 61.20 USD/h, n1-highmem-8: 0.40 EUR/h}
  reserved: [{machine: a3-highgpu-8g, count: 4, until: 2027-06-30, price: 44 USD/h}]
disruptions:
  preemption: !exponential {mean: 8h}
  maintenance: {every: 30d, notice: 60min}
  failures: {mtbf_per_accelerator: 50000h}
forecast: {replications: 1000, seed: 1}
expect:
  - p95(time) <= 48h
  - cost < 500 USD
plan:
  vary: {provider: [gcp, aws], accelerator: [A100-SXM4-80, H100-SXM5-80], nodes: 1..64,
         pricing: [spot, on_demand], parameter_servers: 0..16, recompute: any, layout: any}
  deadline: 72h@95%
  budget: 20000 USD@90%
  quota: {gcp/us-central1/H100-SXM5-80: 128}
  objective: cost
planned:
  schema_version: 1
  reckon_version: 0.1.0
  catalog_digest: 93ce1f0a5b7d2468
  prices_as_of: 2026-08-20
  calibrations: [lab]
  seed: 7
  forecast: {time_seconds: {p50: 120000}, warnings: []}
)";

inline constexpr std::string_view kJobs = R"(jobs:
  - name: a
    submit: 0h
    workload:
      model: {transformer: {layers: 32, hidden: 4096, heads: 32, kv_heads: 8, head_width: 128,
                            feed_forward: 11008, vocabulary: 32000, sequence_length: 4096,
                            positions: 0, token_types: 0, gated_feed_forward: true, rms_norm: true,
                            bias: false, tied_output: false, causal: true, post_norm: false,
                            activation: silu}}
      finetune: {method: lora, rank: 16}
      train: {tokens: 10B, sequence_length: 2048}
      precision: bf16
      optimizer: adamw
      global_batch: 512
      strategy: {kind: model_parallel, data: 2, tensor: 8, pipeline: 4, context: 1, expert: 1,
                 micro_batch: 1, zero_stage: 1, recompute: selective, all_reduce: tree}
      checkpoint: {interval: optimal, local: {to: peer_memory, every: 1min, replicas: 2}}
      restart: {kind: elastic, min: 2, batch: fixed}
  - name: b
    submit: 2h
    workload:
      model: {huggingface: llama/config.json}
      sequence_length: 1024
      train: {steps: 1e5}
      batch_per_accelerator: 08
      strategy: {kind: sharded, zero_stage: 3}
      checkpoint: {interval: none}
  - name: c
    workload:
      container:
        image: registry.example.com/train:1.4
        command: [python, train.py]
        env: {NCCL_DEBUG: WARN}
        metrics: {log: 'step (?<step>\d+)'}
        profile: {step: 210ms}
  - name: d
    workload:
      model: {layers: [{linear: 128}, {activation: relu}]}
      train: {samples: 300M}
      global_batch: 32
      finetune: {method: last_layers, layers: 1}
      strategy: {kind: parameter_server, mode: asynchronous, staleness: 4, colocated: true,
                 shards: balanced, partition: 64MB}
cluster:
  provider: on_premises
  fabric: {nics: 8, rails: true, nodes_per_leaf: 32, oversubscription: 2,
           in_network_reduction: true}
  pools:
    - name: own
      machine: {vcpu: 64, memory: 512GiB, network: 100Gbps, network_link: infiniband,
                peer_link: nvswitch, price: 4.10 USD/h}
      accelerator: {type: H100-SXM5-80}
      nodes: 4
disruptions:
  preemption: none
  maintenance: none
  failures: none
)";

inline constexpr std::string_view kTrace = R"(trace: {file: jobs.csv, format: philly}
cluster:
  provider: gcp
  service: ai_platform
  region: us-central1
  pools: [{name: slice, tpu: {type: TPU-v2, slice: v2-8}}]
  scheduler: {policy: fifo}
)";

}  // namespace reckon::testing
