#include "executor/comm/thread_communicator.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/comm/errors.h"
#include "executor/comm/rank_parts.h"

namespace reckon {

namespace {
/// What the threads share. Between two meetings every rank may read what the others have published.
class MeetingPlace {
 public:
  MeetingPlace(int ranks, Seconds timeout)
      : timeout_(timeout), published_(std::size_t(ranks)), present_(std::size_t(ranks)) {}

  int ranks() const { return int(published_.size()); }

  /// Publishes `mine`, then waits until all ranks have come. The others read it until the next
  /// meeting, which therefore is one without publishing.
  void meet(int rank, void* mine) {
    std::unique_lock lock(mutex_);
    published_[std::size_t(rank)] = mine;
    meet(rank, lock);
  }
  void meet(int rank) {
    std::unique_lock lock(mutex_);
    meet(rank, lock);
  }
  template <class T>
  T* published(int rank) const {  // read only between two meetings
    return static_cast<T*>(published_[std::size_t(rank)]);
  }

  void put(int from, int to, std::span<const std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    mail_[{from, to}].emplace_back(bytes.begin(), bytes.end());
    changed_.notify_all();
  }
  std::vector<std::byte> take(int from, int to) {
    std::unique_lock lock(mutex_);
    auto& box = mail_[{from, to}];
    const auto sender_gone = [&] { return std::ranges::count(gone_, from) > 0; };
    changed_.wait_for(lock, timeout_, [&] { return !box.empty() || sender_gone(); });
    if (box.empty()) throw lost({from});
    std::vector<std::byte> bytes = std::move(box.front());
    box.pop_front();
    return bytes;
  }
  void leave(int rank) {
    const std::lock_guard lock(mutex_);
    if (std::ranges::count(gone_, rank) == 0) gone_.push_back(rank);
    changed_.notify_all();
  }
  /// Where `ranks` of these meet, of the groups that are made by the `number`-th call.
  std::shared_ptr<MeetingPlace> group(int number, std::vector<int> ranks) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<MeetingPlace>& place = groups_[{number, ranks}];
    if (!place) place = std::make_shared<MeetingPlace>(int(ranks.size()), timeout_);
    return place;
  }

 private:
  void meet(int rank, std::unique_lock<std::mutex>& lock) {
    if (!gone_.empty()) give_up(rank, std::vector(gone_));
    present_[std::size_t(rank)] = true;
    if (std::ranges::count(present_, true) == ranks()) {
      present_.assign(present_.size(), false);
      ++meetings_;
      changed_.notify_all();
      return;
    }
    const std::int64_t before = meetings_;
    const auto over = [&] { return meetings_ != before || !gone_.empty(); };
    const bool in_time = changed_.wait_for(lock, timeout_, over);
    if (meetings_ != before) return;
    if (in_time) give_up(rank, std::vector(gone_));
    std::vector<int> absent;
    for (int r = 0; r < ranks(); ++r)
      if (!present_[std::size_t(r)]) absent.push_back(r);
    give_up(rank, absent);
  }

  /// Whoever throws takes back what it has published: nobody reads it any more. `because_of` is not
  /// gone_ itself, which grows here.
  [[noreturn]] void give_up(int rank, const std::vector<int>& because_of) {
    present_[std::size_t(rank)] = false;
    if (std::ranges::count(gone_, rank) == 0) gone_.push_back(rank);
    changed_.notify_all();
    throw lost(because_of);
  }
  static CommError lost(const std::vector<int>& ranks) {
    return CommError(fmt::format("lost or without an answer: rank {}", fmt::join(ranks, ", ")),
                     ranks);
  }

  const Seconds timeout_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<void*> published_;
  std::vector<bool> present_;  // at the meeting that is coming together
  std::vector<int> gone_;
  std::int64_t meetings_ = 0;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> mail_;
  std::map<std::pair<int, std::vector<int>>, std::shared_ptr<MeetingPlace>> groups_;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<MeetingPlace> place, int rank)
      : place_(std::move(place)), rank_(rank) {}
  ~ThreadCommunicator() override { place_->leave(rank_); }
  ThreadCommunicator(const ThreadCommunicator&) = delete;
  ThreadCommunicator& operator=(const ThreadCommunicator&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return place_->ranks(); }
  void all_reduce(std::span<float> values) override { sum(values); }
  void all_reduce(std::span<double> values) override { sum(values); }
  void all_reduce(std::span<std::int64_t> values) override { sum(values); }

  void all_gather(std::span<const float> mine, std::span<float> all) override {
    RECKON_CHECK(all.size() == mine.size() * std::size_t(size()));
    place_->meet(rank_, const_cast<float*>(mine.data()));
    for (int r = 0; r < size(); ++r)
      std::copy_n(place_->published<const float>(r), mine.size(),
                  all.begin() + std::ptrdiff_t(std::size_t(r) * mine.size()));
    barrier();
  }

  void reduce_scatter(std::span<const float> all, std::span<float> mine) override {
    RECKON_CHECK(all.size() == mine.size() * std::size_t(size()));
    place_->meet(rank_, const_cast<float*>(all.data()));
    const std::size_t first = std::size_t(rank_) * mine.size();
    std::copy_n(place_->published<const float>(0) + first, mine.size(), mine.begin());
    for (int r = 1; r < size(); ++r)
      add_to<float>(mine, {place_->published<const float>(r) + first, mine.size()});
    barrier();
  }

  void all_to_all(std::span<const float> send, std::span<float> receive) override {
    RECKON_CHECK(send.size() == receive.size());
    RECKON_CHECK(send.size() % std::size_t(size()) == 0);
    place_->meet(rank_, const_cast<float*>(send.data()));
    const std::size_t part = send.size() / std::size_t(size());
    for (int r = 0; r < size(); ++r)
      std::copy_n(place_->published<const float>(r) + std::size_t(rank_) * part, part,
                  receive.begin() + std::ptrdiff_t(std::size_t(r) * part));
    barrier();
  }

  void broadcast(std::span<std::byte> bytes, int root) override {
    place_->meet(rank_, bytes.data());
    if (rank_ != root)
      std::copy_n(place_->published<const std::byte>(root), bytes.size(), bytes.begin());
    barrier();
  }
  void send(std::span<const std::byte> bytes, int to) override {
    RECKON_CHECK(to >= 0 && to < size() && to != rank_);
    place_->put(rank_, to, bytes);
  }
  void receive(std::span<std::byte> bytes, int from) override {
    RECKON_CHECK(from >= 0 && from < size() && from != rank_);
    const auto got = place_->take(from, rank_);
    RECKON_CHECK(got.size() == bytes.size());
    std::ranges::copy(got, bytes.begin());
  }
  void barrier() override { place_->meet(rank_); }
  std::unique_ptr<Communicator> subgroup(std::span<const int> ranks) override {
    auto place = place_->group(groups_++, {ranks.begin(), ranks.end()});
    return std::make_unique<ThreadCommunicator>(std::move(place), rank_in(ranks, rank_));
  }

 private:
  /// Every rank adds up its part, and writes it to all: nobody else touches that part.
  template <class T>
  void sum(std::span<T> values) {
    place_->meet(rank_, values.data());
    const Part mine = part_of_rank(values.size(), size(), rank_);
    std::vector<T> total(mine.count);
    for (int r = 0; r < size(); ++r) {
      const std::span<const T> theirs{place_->published<const T>(r) + mine.first, mine.count};
      if (r == 0)
        std::ranges::copy(theirs, total.begin());
      else
        add_to<T>(total, theirs);
    }
    for (int r = 0; r < size(); ++r) std::ranges::copy(total, place_->published<T>(r) + mine.first);
    barrier();
  }

  std::shared_ptr<MeetingPlace> place_;
  int rank_;
  int groups_ = 0;  // that were made
};
}  // namespace

std::vector<std::unique_ptr<Communicator>> make_thread_communicators(int ranks, Seconds timeout) {
  RECKON_CHECK(ranks >= 1);
  const auto place = std::make_shared<MeetingPlace>(ranks, timeout);
  std::vector<std::unique_ptr<Communicator>> all;
  for (int r = 0; r < ranks; ++r) all.push_back(std::make_unique<ThreadCommunicator>(place, r));
  return all;
}

}  // namespace reckon
