#include "exchange/foreign/kubernetes_replicas.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <set>

namespace reckon {
namespace {

constexpr std::int64_t kMostPods = 100'000;

struct ReplicaRole {
  std::string_view word;
  Role role;
};
/// Of the operators' replica specs and of names that people give (JobSet, StatefulSet).
constexpr std::array kReplicaRoles{ReplicaRole{"chief", Role::chief},
                                   ReplicaRole{"master", Role::chief},
                                   ReplicaRole{"launcher", Role::chief},
                                   ReplicaRole{"ps", Role::parameter_server},
                                   ReplicaRole{"server", Role::parameter_server},
                                   ReplicaRole{"servers", Role::parameter_server},
                                   ReplicaRole{"parameter-server", Role::parameter_server},
                                   ReplicaRole{"evaluator", Role::evaluator}};

/// By the whole name, or what stands behind its last hyphen ("train-ps"), or in front of a number
/// there ("train-ps-0").
Role role_of(std::string name) {
  for (char& c : name) c = char(std::tolower(static_cast<unsigned char>(c)));
  if (const std::size_t end = name.find_last_not_of("0123456789");
      end != std::string::npos && end + 1 < name.size() && name[end] == '-')
    name.resize(end);
  for (const ReplicaRole& known : kReplicaRoles)
    if (name == known.word || name.ends_with(fmt::format("-{}", known.word))) return known.role;
  return Role::worker;
}

class ManifestReader {
 public:
  explicit ManifestReader(const Catalog& catalog) : catalog_(catalog) {}

  Expected<ReplicasOfJob> read(std::vector<YamlNode> documents, const std::string& from) {
    for (YamlNode& document : documents) read_document(std::move(document));
    if (out_.replicas.empty() && mistakes_.empty())
      mistakes_.push_back(
          {Severity::error,
           {from, 0, 0},
           "no Job, JobSet, TFJob, PyTorchJob, TrainingRuntime or Pod is in it",
           out_.others.empty() ? "" : fmt::format("it has: {}", fmt::join(out_.others, ", "))});
    if (!mistakes_.empty()) return tl::unexpected(std::move(mistakes_));
    return std::move(out_);
  }

 private:
  void read_document(YamlNode document) {
    ForeignFile file(std::move(document));
    const YamlNode* root = file.root();
    const std::string kind = file.text(root, "kind").value_or("");
    const YamlNode* metadata = file.map(root, "metadata");
    const std::string name = file.text(metadata, "name").value_or("");
    const YamlNode* spec = file.map(root, "spec");
    const std::size_t before = out_.replicas.size();
    if (kind == "Job") {
      read_job(file, spec, name, role_of(name), 1);
    } else if (kind == "Pod") {
      add(file, name.empty() ? "pod" : name, role_of(name), 1, root);
    } else if (kind == "JobSet") {
      read_job_set(file, spec);
    } else if (kind == "TrainingRuntime") {
      read_job_set(file, file.map(file.map(spec, "template"), "spec"));
    } else if (kind == "TFJob") {
      read_operator(file, file.map(spec, "tfReplicaSpecs"));
    } else if (kind == "PyTorchJob") {
      read_operator(file, file.map(spec, "pytorchReplicaSpecs"));
    } else if (kind == "StatefulSet" && role_of(name) == Role::parameter_server) {
      add(file, name, Role::parameter_server,
          int(file.whole(spec, "replicas", 0, kMostPods).value_or(1)), file.map(spec, "template"));
    } else {
      out_.others.push_back(
          fmt::format("{} {}", kind.empty() ? "a document without kind" : kind, name));
      return;
    }
    if (out_.replicas.size() == before && file.mistakes().empty())
      file.mistake(root->at, fmt::format("{} {} has no replicas", kind, name));
    if (kind != "StatefulSet" && out_.replicas.size() > before)
      refuse_second_job(file, instance_of(file, metadata, name), before);
    file.ignore(root, "apiVersion");
    const std::string shown = name.empty() ? kind : fmt::format("{} {}", kind, of_all_ranks(name));
    for (const std::string& path : file.left_over())
      if (std::string line = fmt::format("{}: {}", shown, setting_of(path));
          seen_.insert(line).second)
        out_.left_out.push_back(std::move(line));
    mistakes_.insert(mistakes_.end(), file.mistakes().begin(), file.mistakes().end());
  }

  /// "train-worker-3" is one of "train-worker-*": what is said of one is said of all.
  static std::string of_all_ranks(std::string name) {
    const std::size_t end = name.find_last_not_of("0123456789");
    const bool numbered = end != std::string::npos && end + 1 < name.size() && name[end] == '-';
    if (numbered) name.replace(end + 1, std::string::npos, "*");
    return name;
  }

  /// What all objects of one installation are labelled with, else the object's own name.
  static std::string instance_of(ForeignFile& file, const YamlNode* metadata,
                                 const std::string& name) {
    const YamlNode* labels = file.map(metadata, "labels");
    const auto* found = labels == nullptr ? nullptr : labels->find("app.kubernetes.io/instance");
    return found == nullptr || found->value.text.empty() ? name : found->value.text;
  }

  /// What a person would call it: of the pods "containers.volumeMounts" or
  /// "nodeSelector.team", else the first two keys.
  static std::string setting_of(std::string path) {
    constexpr std::string_view kPod = "template.spec.";
    constexpr std::string_view kAlone = "spec.containers.", kLabels = "template.metadata.";
    const bool alone = path.starts_with(kAlone);  // a Pod's own
    const std::size_t pod = alone ? 0 : path.rfind(kPod);
    if (alone)
      path = path.substr(std::string_view("spec.").size());
    else if (pod != std::string::npos)
      path = path.substr(pod + kPod.size());
    else if (const std::size_t at = path.rfind(kLabels); at != std::string::npos)
      return path.substr(at, path.find('.', at + kLabels.size()) - at);
    constexpr std::string_view kContainers = "containers.";
    if (path.starts_with("nodeSelector.")) return path;
    constexpr std::string_view kOfOperators = "ReplicaSpecs.";
    if (const std::size_t at = path.find(kOfOperators);
        pod == std::string::npos && at < path.size())
      path = path.substr(at + kOfOperators.size());  // "Master.restartPolicy"
    if (path.starts_with(kContainers)) {
      const std::string below = path.substr(path.find('.', kContainers.size()) + 1);
      return std::string(kContainers) + below.substr(0, below.find('.'));
    }
    const std::size_t first = path.find('.');
    if (pod != std::string::npos || first == std::string::npos) return path.substr(0, first);
    return path.substr(0, path.find('.', first + 1));
  }

  void read_job(ForeignFile& file, const YamlNode* spec, const std::string& name, Role role,
                int times) {
    const auto parallel = file.whole(spec, "parallelism", 0, kMostPods);
    const auto completions = file.whole(spec, "completions", 0, kMostPods);
    file.text(spec, "completionMode");
    const std::int64_t pods = parallel.value_or(completions.value_or(1)) * times;
    if (pods > kMostPods)
      file.mistake(spec->at,
                   fmt::format("{} has {} pods; at most {} are read", name, pods, kMostPods));
    else
      add(file, name, role, int(pods), file.map(spec, "template"));
  }

  void read_job_set(ForeignFile& file, const YamlNode* spec) {
    for (const YamlNode* item : file.list(spec, "replicatedJobs")) {
      const std::string name = file.text(item, "name").value_or("workers");
      const int times = int(file.whole(item, "replicas", 0, kMostPods).value_or(1));
      read_job(file, file.map(file.map(item, "template"), "spec"), name, role_of(name), times);
    }
  }

  void read_operator(ForeignFile& file, const YamlNode* specs) {
    if (specs == nullptr) return;
    for (const YamlNode::Entry& entry : specs->entries) {
      const YamlNode* spec = file.map(specs, entry.key);
      add(file, entry.key, role_of(entry.key),
          int(file.whole(spec, "replicas", 0, kMostPods).value_or(1)), file.map(spec, "template"));
    }
  }

  void add(ForeignFile& file, const std::string& name, Role role, int pods,
           const YamlNode* pod_template) {
    if (pods == 0) return;
    Replicas replicas{name, role, pods, read_pod_template(file, pod_template, catalog_)};
    if (!replicas.pod.unknown_accelerator.empty())
      file.mistake(replicas.pod.at,
                   fmt::format("the accelerator '{}' is not in the catalog",
                               replicas.pod.unknown_accelerator),
                   "say what it is with --accelerator, or describe it in a catalog of your own");
    out_.replicas.push_back(std::move(replicas));
  }

  /// Several Jobs are one where they are its ranks: the same image.
  void refuse_second_job(ForeignFile& file, const std::string& name, std::size_t before) {
    if (out_.name.empty()) {
      out_.name = name;
      job_image_ = out_.replicas[before].pod.container.image;
    } else if (out_.replicas[before].pod.container.image != job_image_) {
      file.mistake(file.root()->at,
                   fmt::format("{} and {} are two jobs, with images of their own", out_.name, name),
                   "import a file with the documents of one");
    }
  }

  const Catalog& catalog_;
  std::string job_image_;
  std::set<std::string> seen_;  // of left_out
  Diagnostics mistakes_;
  ReplicasOfJob out_;
};

/// What `kubectl get -o yaml` prints of several: {kind: List, items: [...]}.
std::vector<YamlNode> unwrapped(std::vector<YamlNode> documents) {
  std::vector<YamlNode> out;
  for (YamlNode& document : documents) {
    const auto* kind = document.find("kind");
    const auto* items = document.find("items");
    if (kind == nullptr || items == nullptr || !kind->value.text.ends_with("List"))
      out.push_back(std::move(document));
    else
      for (const YamlNode::Entry& item : items->value.entries) out.push_back(item.value);
  }
  return out;
}

}  // namespace

Expected<ReplicasOfJob> replicas_of_manifests(std::string_view text, const std::string& file,
                                              const Catalog& catalog) {
  auto documents = parse_documents(text, file);
  if (!documents) return tl::unexpected(std::move(documents.error()));
  return ManifestReader(catalog).read(unwrapped(std::move(*documents)), file);
}

}  // namespace reckon
