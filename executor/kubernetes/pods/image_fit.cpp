#include "executor/kubernetes/pods/image_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>

#include "executor/kubernetes/pods/cloud_names.h"
#include "sim/base/unit_text.h"

namespace reckon::kubernetes {
namespace {

/// A host, and not the first part of a path: it has a dot or a port, or is this machine.
bool is_host(const std::string& part) {
  return part == "localhost" || part.find_first_of(".:") != std::string::npos;
}

std::string label(const Json& node, const std::string& key) {
  const Json labels = node.value(Json::json_pointer("/metadata/labels"), Json::object());
  const auto at = labels.find(key);
  return at != labels.end() && at->is_string() ? at->get<std::string>() : "";
}

/// The newest major version of CUDA that the node's driver has.
std::optional<int> driver_cuda(const Json& node) {
  for (const char* key : {"nvidia.com/cuda.runtime-version.major", "nvidia.com/cuda.runtime.major"})
    if (const auto number = parse_integer(label(node, key))) return int(*number);
  return std::nullopt;
}

std::string driver_problem(const std::optional<CudaVersion>& wanted, const Json& node) {
  if (label(node, std::string(kDriverLabel)) == kNoDriver && !driver_cuda(node))
    return fmt::format("no driver is installed (label {}={})",
                       kDriverLabel.substr(kDriverLabel.find('/') + 1), kNoDriver);
  const auto there = driver_cuda(node);
  if (!wanted || !there || *there >= wanted->major) return "";
  return fmt::format("the driver has CUDA {} and the image needs {}", *there, wanted->major);
}

}  // namespace

std::string image_name_mistake(const std::string& name) {
  std::string rest = name;
  if (const std::size_t at = rest.find('@'); at != std::string::npos) {
    if (!std::regex_match(rest.substr(at + 1), std::regex("[A-Za-z0-9+._-]+:[0-9a-fA-F]{32,}")))
      return "behind '@' comes no digest";
    rest.resize(at);
  }
  const std::size_t slash = rest.find('/');
  if (slash != std::string::npos && is_host(rest.substr(0, slash))) {
    if (!std::regex_match(rest.substr(0, slash), std::regex("[A-Za-z0-9.-]+(:[0-9]+)?")))
      return fmt::format("'{}' is no host", rest.substr(0, slash));
    rest.erase(0, slash + 1);
  }
  if (const std::size_t colon = rest.rfind(':'); colon != std::string::npos) {
    if (!std::regex_match(rest.substr(colon + 1), std::regex("[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")))
      return fmt::format("'{}' is no tag", rest.substr(colon + 1));
    rest.resize(colon);
  }
  if (std::ranges::any_of(rest, [](char c) { return c >= 'A' && c <= 'Z'; }))
    return fmt::format("'{}' has capital letters", rest);
  const std::string part = "[a-z0-9]+((\\.|_|__|-+)[a-z0-9]+)*";
  if (!std::regex_match(rest, std::regex(part + "(/" + part + ")*")))
    return fmt::format("'{}' is no path", rest);
  return "";
}

std::optional<CudaVersion> cuda_of(const std::string& image) {
  std::smatch found;
  // "cuda12.4", "cuda-12", "cuda:12.4.1"; else wheels' "cu124", "cu118": the last digit is the
  // minor.
  if (std::regex_search(image, found, std::regex("cuda[-_:]?v?([0-9]{1,2})(\\.([0-9]{1,2}))?"))) {
    CudaVersion version{std::stoi(found[1]), std::nullopt};
    if (found[3].matched) version.minor = std::stoi(found[3]);
    return version;
  }
  if (std::regex_search(image, found, std::regex("(^|[^a-z0-9])cu([0-9]{2})([0-9])([^0-9]|$)")))
    return CudaVersion{std::stoi(found[2]), std::stoi(found[3])};
  return std::nullopt;
}

std::set<std::string> images_of(const std::vector<Json>& manifests) {
  std::set<std::string> images;
  const Json::json_pointer containers("/spec/template/spec/containers");
  for (const Json& manifest : manifests)
    for (const Json& container : manifest.value(containers, Json::array()))
      if (const std::string image = container.value("image", ""); !image.empty())
        images.insert(image);
  return images;
}

DriverMisfits driver_misfits(const std::string& image, const std::vector<std::string>& names,
                             const Json& nodes) {
  const auto wanted = cuda_of(image);
  std::map<std::string, int> counts;
  DriverMisfits misfits;
  for (const Json& node : nodes.value("items", Json::array())) {
    const std::string name = node.value(Json::json_pointer("/metadata/name"), std::string());
    if (std::ranges::find(names, name) == names.end()) continue;
    const std::string why = driver_problem(wanted, node);
    if (why.empty()) continue;
    ++counts[why];
    ++misfits.nodes;
  }
  for (const auto& [why, count] : counts)
    misfits.problems.push_back(
        fmt::format("image {} cannot run on {} of {} nodes: {}", image, count, names.size(), why));
  return misfits;
}

}  // namespace reckon::kubernetes
