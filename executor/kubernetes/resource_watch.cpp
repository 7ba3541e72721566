#include "executor/kubernetes/resource_watch.h"

#include <fmt/format.h>

#include <cctype>

namespace reckon::kubernetes {
namespace {

constexpr std::size_t kLongestEvent = std::size_t{1} << 26;
constexpr Seconds kListLimit{30};

std::string uid_of(const Json& object) {
  return object.value(Json::json_pointer("/metadata/uid"), std::string());
}
std::string version_of(const Json& object) {
  return object.value(Json::json_pointer("/metadata/resourceVersion"), std::string());
}

}  // namespace

std::string percent_encoded(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' ||
                       c == '.' || c == '~';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

ResourceWatch::ResourceWatch(const Kubectl& kubectl, std::string path, const std::string& selector,
                             Events events, Seconds life)
    : kubectl_(kubectl),
      path_(std::move(path)),
      selector_(selector.empty() ? "" : "&labelSelector=" + percent_encoded(selector)),
      events_(std::move(events)),
      life_(life),
      lines_(kLongestEvent) {}

void ResourceWatch::poll() {
  if (!process_) {
    if (Clock::now() >= next_list_) list();
    return;
  }
  const bool open =
      lines_.read_from(process_->output(), [this](std::string_view line) { on_line(line); });
  // Its own time is the server's to keep; a connection that died without a word is ours to notice.
  const bool overdue = open && Clock::now() - started_ > life_ + Seconds{15};
  if (overdue) tell_trouble("its connection is silent");
  if (expired_ || overdue || !open) end_watch();
}

void ResourceWatch::tell_trouble(const std::string& what) {
  if (!std::exchange(in_trouble_, true) && events_.trouble) events_.trouble(what);
}

void ResourceWatch::list() {
  try {
    const Json all = kubectl_.raw(fmt::format("{}?limit=0{}", path_, selector_), kListLimit);
    std::map<std::string, Json> gone = std::move(known_);
    known_.clear();
    for (const Json& object : all.value("items", Json::array())) {
      const auto before = gone.find(uid_of(object));
      const bool same = before != gone.end() && version_of(before->second) == version_of(object);
      if (before != gone.end()) gone.erase(before);
      known_[uid_of(object)] = object;
      if (!same && events_.changed) events_.changed(object);
    }
    for (const auto& [uid, object] : gone)
      if (events_.deleted) events_.deleted(object);
    listed_ = true;
    backoff_.reset();
    if (std::exchange(in_trouble_, false) && events_.trouble) events_.trouble("");
    start_watch(version_of(all));
  } catch (const KubectlError& error) {
    if (!passes(error.failure())) throw;
    on_failure(error);
  }
}

void ResourceWatch::start_watch(const std::string& version) {
  lines_ = LineReader(kLongestEvent);
  expired_ = false;
  started_ = Clock::now();
  process_ = kubectl_.start_raw(fmt::format("{}?watch=1&resourceVersion={}&timeoutSeconds={}{}",
                                            path_, version, int(life_.count()), selector_));
}

void ResourceWatch::on_line(std::string_view line) {
  const Json event = Json::parse(line.begin(), line.end(), nullptr, false);
  if (event.is_discarded() || !event.contains("object")) return;  // cut off with its connection
  const std::string type = event.value("type", "");
  const Json& object = event.at("object");
  if (type == "ERROR") {  // 410: too old a version
    expired_ = true;
    return;
  }
  if (type == "BOOKMARK") return;
  if (type == "DELETED") {
    known_.erase(uid_of(object));
    if (events_.deleted) events_.deleted(object);
    return;
  }
  known_[uid_of(object)] = object;
  if (events_.changed) events_.changed(object);
}

void ResourceWatch::on_failure(const KubectlError& error) {
  const Seconds pause = backoff_.next();
  next_list_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(pause);
  tell_trouble(error.what());
}

void ResourceWatch::end_watch() {
  process_.reset();
  // A server that ends every watch at once must not be asked without end.
  constexpr std::chrono::milliseconds kBetweenLists{500};
  next_list_ = started_ + kBetweenLists;
}

}  // namespace reckon::kubernetes
