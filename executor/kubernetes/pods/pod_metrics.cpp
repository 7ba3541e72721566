#include "executor/kubernetes/pods/pod_metrics.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

namespace reckon::kubernetes {
namespace {

constexpr std::size_t kLargestPage = std::size_t{16} << 20;

void read_into(std::string& text, int descriptor) {
  std::array<char, 16384> part{};
  for (ssize_t n; (n = ::read(descriptor, part.data(), part.size())) > 0;)
    if (text.size() < kLargestPage) text.append(part.data(), std::size_t(n));
}

}  // namespace

PodMetrics::PodMetrics(const Kubectl& kubectl, const std::string& pod, int port,
                       const std::string& path, OnPage on_page)
    : kubectl_(kubectl),
      path_(fmt::format("/api/v1/namespaces/{}/pods/{}:{}/proxy{}", kubectl.name_space(), pod, port,
                        path)),
      on_page_(std::move(on_page)) {}

void PodMetrics::poll(Seconds every) {
  if (!process_) {
    if (Clock::now() - asked_ < every) return;
    asked_ = Clock::now();
    page_.clear();
    errors_.clear();
    process_ = kubectl_.start_raw(path_);
    return;
  }
  const auto end = process_->poll_end();  // before the last read: nothing comes behind it
  read_into(page_, process_->output());
  read_into(errors_, process_->errors());
  if (end) on_end(*end);
}

void PodMetrics::on_end(const ProcessEnd& end) {
  process_.reset();
  trouble_ = end.good() ? "" : errors_.substr(0, errors_.find('\n'));
  if (!end.good()) return;
  answered_ = Clock::now();
  on_page_(page_);
}

}  // namespace reckon::kubernetes
