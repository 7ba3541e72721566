#include "sim/queue/lists/openb_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/queue/lists/trace_csv.h"

namespace reckon {
namespace {

constexpr std::int64_t kMostCpu = 100'000'000, kMostMemory = 1'000'000'000'000;

Diagnostic of_file(const std::string& file, std::string what) {
  return {Severity::error, {file, 0, 0}, std::move(what), ""};
}

}  // namespace

Expected<std::vector<GpuNode>> read_openb_nodes(const std::string& file, std::string_view bytes) {
  enum { sn, cpu, memory, gpu, model };
  constexpr std::array<std::string_view, 5> kColumns{"sn", "cpu_milli", "memory_mib", "gpu",
                                                     "model"};
  Diagnostics problems;
  TraceCsv rows(file, bytes, kColumns, {}, problems);
  std::vector<GpuNode> nodes;
  GpuModels models;
  std::int64_t gpus = 0;
  while (rows.next()) {
    const auto cpus = rows.whole(cpu, 0, kMostCpu), mib = rows.whole(memory, 0, kMostMemory),
               count = rows.whole(gpu, 0, kMostGpusOfNode);
    if (!cpus || !mib || !count) continue;
    nodes.push_back({std::string(rows.text(sn)), *cpus, *mib, static_cast<int>(*count),
                     std::string(rows.text(model))});
    gpus += *count;
    if (models.add(nodes.back().model) < 0)
      rows.error(model, fmt::format("more than {} models of GPUs", kMostGpuModels));
  }
  if (problems.empty() && gpus == 0) problems.push_back(of_file(file, "no node has a GPU"));
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return nodes;
}

Expected<std::vector<PodRequest>> read_openb_pods(const std::string& file, std::string_view bytes) {
  enum { name, cpu, memory, num_gpu, gpu_milli, gpu_spec };
  constexpr std::array<std::string_view, 5> kColumns{"name", "cpu_milli", "memory_mib", "num_gpu",
                                                     "gpu_milli"};
  constexpr std::array<std::string_view, 1> kOptional{"gpu_spec"};
  constexpr std::int64_t kMostMilli = 1'000'000;
  Diagnostics problems;
  TraceCsv rows(file, bytes, kColumns, kOptional, problems);
  std::vector<std::pair<std::string, PodRequest>> pods;
  while (rows.next()) {
    const auto cpus = rows.whole(cpu, 0, kMostCpu), mib = rows.whole(memory, 0, kMostMemory),
               gpus = rows.whole(num_gpu, 0, kMostGpusOfNode);
    if (!cpus || !mib || !gpus) continue;
    PodRequest pod{*cpus, *mib, static_cast<int>(*gpus), 0, ""};
    if (pod.gpus > 0) {
      const auto milli = rows.whole(gpu_milli, 1, kMostMilli);
      if (!milli) continue;
      pod.gpu_milli = static_cast<std::int32_t>(std::min<std::int64_t>(*milli, kWholeGpu));
      pod.models = rows.text(gpu_spec);
      if (pod.gpus > 1 && pod.gpu_milli < kWholeGpu) {
        rows.error(gpu_milli, fmt::format("{} GPUs of {} thousandths each", pod.gpus, *milli),
                   "a share is of one GPU; with several, gpu_milli is 1000");
        continue;
      }
    }
    pods.emplace_back(rows.text(name), std::move(pod));
  }
  if (problems.empty() && pods.empty()) problems.push_back(of_file(file, "the list has no pod"));
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  std::stable_sort(pods.begin(), pods.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<PodRequest> requests;
  requests.reserve(pods.size());
  for (auto& [unused, pod] : pods) requests.push_back(std::move(pod));
  return requests;
}

}  // namespace reckon
