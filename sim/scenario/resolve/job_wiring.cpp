#include "sim/scenario/resolve/job_wiring.h"

#include <fmt/format.h>

#include <algorithm>

namespace reckon {
namespace {

std::pair<std::string, std::string> parted(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  return {address.substr(0, colon), address.substr(colon + 1)};
}

}  // namespace

std::string tf_config(const JobWiring& job, const std::string& type, const std::string& index) {
  std::string cluster;
  const auto add = [&](const char* role, int from, int to) {
    if (from >= to) return;
    std::string hosts;
    for (int k = from; k < to; ++k)
      hosts += fmt::format("{}\"{}\"", k == from ? "" : ",", job.addresses[std::size_t(k)]);
    cluster += fmt::format("{}\"{}\":[{}]", cluster.empty() ? "" : ",", role, hosts);
  };
  const int chiefs = job.chief ? 1 : 0;
  add("chief", 0, chiefs);
  add("worker", chiefs, job.workers);
  add("ps", job.workers, job.workers + job.servers);
  return fmt::format(R"({{"cluster": {{{}}}, "task": {{"type": "{}", "index": {}}}}})", cluster,
                     type, index);
}

Variables rank_variables(const JobWiring& job, const std::string& rank) {
  const auto [host, port] = parted(job.addresses.front());
  return {{"RANK", rank},
          {"WORLD_SIZE", std::to_string(job.workers)},
          {"MASTER_ADDR", host},
          {"MASTER_PORT", port}};
}

Variables launcher_variables(const JobWiring& job, const std::string& rank) {
  const auto [host, port] = parted(job.addresses.front());
  const std::string size = std::to_string(job.workers);
  return {{"PET_NNODES", size},
          {"PET_NODE_RANK", rank},
          {"PET_NPROC_PER_NODE", std::to_string(std::max(1, job.devices))},
          {"PET_MASTER_ADDR", host},
          {"PET_MASTER_PORT", port},
          {"JAX_COORDINATOR_ADDRESS", job.addresses.front()},
          {"JAX_NUM_PROCESSES", size},
          {"JAX_PROCESS_ID", rank}};
}

std::vector<std::string> program_words(const ContainerSpec& container) {
  std::vector<std::string> words;
  for (std::size_t k = 0; k < container.command.size(); ++k) {
    const bool last = k + 1 == container.command.size();
    words.push_back(container.command[k]);
    if (words.back() == "--job-dir" && (last || container.command[k + 1].starts_with('-')))
      words.emplace_back("$(RECKON_JOB_DIR)");
  }
  return words;
}

std::string with_variables(const std::string& text, const Variables& variables) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find(')', at);
    const bool named = text.compare(at, 2, "$(") == 0 && end != std::string::npos;
    if (text.compare(at, 3, "$$(") == 0) {
      result += "$(";
      at += 3;
    } else if (named) {
      const std::string name = text.substr(at + 2, end - at - 2);
      const auto found = std::ranges::find(variables, name, &Variables::value_type::first);
      result += found != variables.end() ? found->second : text.substr(at, end + 1 - at);
      at = end + 1;
    } else {
      result += text[at++];
    }
  }
  return result;
}

}  // namespace reckon
