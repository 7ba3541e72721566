#include "sim/measurement/profiles/profile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

namespace reckon {
namespace {

constexpr std::size_t kPlaces = kKernelKinds + 1;  // and that of no kernel at all

/// The time between one change of what runs and the next goes to one place.
class Sweep {
 public:
  explicit Sweep(std::span<const ProfiledWindow> windows) : windows_(windows) {}

  /// Kernels of one device.
  void add(std::span<const ProfiledKernel> kernels) {
    struct Change {
      std::int64_t at;
      std::size_t kind;
      int by;
    };
    std::vector<Change> changes;
    changes.reserve(2 * kernels.size());
    for (const ProfiledKernel& k : kernels) {
      changes.push_back({k.begin, std::size_t(k.kind), 1});
      changes.push_back({k.end, std::size_t(k.kind), -1});
    }
    std::ranges::sort(changes, {}, &Change::at);
    std::array<int, kKernelKinds> running{};
    std::size_t window = 0;
    std::int64_t from = windows_.front().begin;
    for (const Change& c : changes) {
      take(from, c.at, running, window);
      from = std::max(from, c.at);
      running[c.kind] += c.by;
    }
    take(from, windows_.back().end, running, window);
  }

  std::array<double, kPlaces> nanoseconds{};
  double communication = 0;

 private:
  /// What of the stretch lies in windows.
  void take(std::int64_t from, std::int64_t to, const std::array<int, kKernelKinds>& running,
            std::size_t& window) {
    for (; window < windows_.size() && from < to; ++window) {
      const ProfiledWindow& w = windows_[window];
      const std::int64_t begin = std::max(from, w.begin), end = std::min(to, w.end);
      if (begin < end) {
        nanoseconds[place(running)] += double(end - begin);
        if (running[std::size_t(KernelKind::communication)] > 0)
          communication += double(end - begin);
      }
      if (w.end > to) return;  // the next stretch is in it too
    }
  }

  static std::size_t place(const std::array<int, kKernelKinds>& running) {
    for (const KernelKind kind : {KernelKind::product, KernelKind::attention, KernelKind::memory,
                                  KernelKind::communication})
      if (running[std::size_t(kind)] > 0) return std::size_t(kind);
    return kKernelKinds;
  }

  std::span<const ProfiledWindow> windows_;
};

}  // namespace

std::vector<ProfiledWindow> joined_windows(std::vector<ProfiledWindow> windows) {
  std::ranges::sort(windows, {}, &ProfiledWindow::begin);
  std::vector<ProfiledWindow> apart;
  constexpr std::int64_t kRounding = 1000;  // ns: a tool writes begin and length, each rounded
  for (ProfiledWindow w : windows) {
    if (!apart.empty() && w.begin + kRounding >= apart.back().end)
      w.begin = std::max(w.begin, apart.back().end);
    if (w.end > w.begin && (apart.empty() || w.begin >= apart.back().end)) apart.push_back(w);
  }
  for (std::size_t k = 0; k + 1 < apart.size(); ++k) {
    const std::int64_t gap = apart[k + 1].begin - apart[k].end;
    if (2 * gap <= apart[k].end - apart[k].begin) apart[k].end = apart[k + 1].begin;
  }
  return apart;
}

std::vector<ProfiledWindow> windows_between_launches(
    const std::map<std::string, std::vector<std::int64_t>, std::less<>>& begins,
    std::int64_t steps) {
  std::vector<std::int64_t> marks;
  for (const auto& [name, launches] : begins) {
    if (launches.empty() || std::int64_t(launches.size()) != steps) continue;
    if (marks.empty() || std::ranges::min(launches) < std::ranges::min(marks)) marks = launches;
  }
  std::ranges::sort(marks);
  std::vector<ProfiledWindow> windows;
  for (std::size_t k = 0; k + 1 < marks.size(); ++k)
    if (marks[k] < marks[k + 1]) windows.push_back({marks[k], marks[k + 1]});
  return windows;
}

void set_steps(Profile& profile, std::vector<ProfiledKernel> kernels,
               std::span<const ProfiledWindow> windows) {
  std::erase_if(kernels, [](const ProfiledKernel& k) { return k.end <= k.begin; });
  for (const ProfiledWindow& w : windows) profile.steps.push_back(1e-9 * double(w.end - w.begin));
  std::ranges::stable_sort(kernels, {}, &ProfiledKernel::device);
  ProfiledWindow whole;
  if (windows.empty() && !kernels.empty()) {
    whole.begin = std::ranges::min(kernels, {}, &ProfiledKernel::begin).begin;
    whole.end = std::ranges::max(kernels, {}, &ProfiledKernel::end).end;
    windows = {&whole, 1};
  }
  if (windows.empty()) return;
  Sweep sweep(windows);
  profile.devices = 0;
  for (auto first = kernels.begin(); first != kernels.end();) {
    const auto last = std::find_if(
        first, kernels.end(), [&](const ProfiledKernel& k) { return k.device != first->device; });
    sweep.add({first, last});
    ++profile.devices;
    first = last;
  }
  if (profile.devices == 0) sweep.add({});
  const double over = 1e9 * double(windows.size()) * std::max(1, profile.devices);
  const auto part = [&](std::size_t place) { return Seconds{sweep.nanoseconds[place] / over}; };
  ProfiledParts& p = profile.parts;
  p.product = part(std::size_t(KernelKind::product));
  p.attention = part(std::size_t(KernelKind::attention));
  p.memory = part(std::size_t(KernelKind::memory));
  p.exposed_communication = part(std::size_t(KernelKind::communication));
  p.idle = part(kKernelKinds);
  p.communication = Seconds{sweep.communication / over};
}

void CollectiveCounts::add(std::string_view name, Bytes size, Seconds time) {
  constexpr std::size_t kMost = 10'000;
  if (sums_.size() == kMost) return;
  Sum& sum = sums_[{std::string(name), size.v}];
  sum.calls += 1;
  sum.time += time;
}

std::vector<ProfiledCollective> CollectiveCounts::per_step(double steps) const {
  std::vector<ProfiledCollective> all;
  for (const auto& [key, sum] : sums_)
    all.push_back({key.first, Bytes{key.second}, sum.calls / steps, sum.time / sum.calls});
  std::ranges::stable_sort(all, std::ranges::greater{},
                           [](const ProfiledCollective& c) { return c.calls * c.time.count(); });
  return all;
}

}  // namespace reckon
