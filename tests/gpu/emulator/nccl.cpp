#include "nccl.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "executor/cuda/libraries/nccl.h"

namespace {

std::mutex mutex;  // of all that follows

std::size_t size_of(ncclDataType_t type) {
  return type == ncclUint8 ? 1 : type == ncclFloat32 ? 4 : 8;
}

/// What one rank asks for in a collective, or in a message.
struct Asked {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclUint8;
};

using Make = std::function<void(const std::vector<Asked>& by_rank)>;

struct Collective {
  std::map<int, Asked> by_rank;
  bool done = false;
};

struct World {
  int ranks = 0;
  std::map<int, Collective> collectives;                    // by their number
  std::map<std::pair<int, int>, std::vector<Asked>> sends;  // by who sends to whom, in order
  std::map<std::pair<int, int>, std::vector<Asked>> receives;

  /// Messages that both sides have asked for.
  void deliver(std::pair<int, int> way) {
    auto &sent = sends[way], &wanted = receives[way];
    while (!sent.empty() && !wanted.empty()) {
      std::memcpy(wanted.front().to, sent.front().from,
                  sent.front().count * size_of(sent.front().type));
      sent.erase(sent.begin());
      wanted.erase(wanted.begin());
    }
  }
};

std::map<std::uint64_t, std::weak_ptr<World>> worlds;

template <class T>
void add(std::byte* to, const std::byte* from, std::size_t count) {
  for (std::size_t k = 0; k < count; ++k) {
    T sum, other;
    std::memcpy(&sum, to + k * sizeof(T), sizeof(T));
    std::memcpy(&other, from + k * sizeof(T), sizeof(T));
    sum += other;
    std::memcpy(to + k * sizeof(T), &sum, sizeof(T));
  }
}

std::vector<std::byte> sum_of(const std::vector<Asked>& ranks, std::size_t count) {
  const ncclDataType_t type = ranks.front().type;
  const std::size_t bytes = count * size_of(type);
  std::vector<std::byte> sum(ranks.front().from, ranks.front().from + bytes);
  for (std::size_t r = 1; r < ranks.size(); ++r)
    (type == ncclFloat32   ? add<float>
     : type == ncclFloat64 ? add<double>
                           : add<std::int64_t>)(sum.data(), ranks[r].from, count);
  return sum;
}

}  // namespace

struct ncclComm {
  std::shared_ptr<World> world;
  int rank = 0, next = 0;

  /// Joins the next collective, which the last rank to come makes.
  ncclResult_t join(Asked asked, const Make& make) {
    const std::lock_guard lock(mutex);
    Collective& c = world->collectives[next++];
    c.by_rank[rank] = asked;
    if (int(c.by_rank.size()) == world->ranks) {
      std::vector<Asked> all;
      for (const auto& [r, one] : c.by_rank) all.push_back(one);
      make(all);
      c.done = true;
    }
    return state();
  }
  ncclResult_t state() const {
    const auto last = world->collectives.find(next - 1);
    if (last != world->collectives.end() && !last->second.done) return ncclInProgress;
    const auto waits = [](const auto& messages) { return !messages.second.empty(); };
    const bool open = std::ranges::any_of(world->receives,
                                          [&](const auto& messages) {
                                            return messages.first.second == rank && waits(messages);
                                          }) ||
                      std::ranges::any_of(world->sends, [&](const auto& messages) {
                        return messages.first.first == rank && waits(messages);
                      });
    return open ? ncclInProgress : ncclSuccess;
  }
};

ncclResult_t ncclGetVersion(int* version) {
  *version = 22703;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess ? "no error" : "emulated";
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::uint64_t next = 1;
  const std::lock_guard lock(mutex);
  std::memset(id->internal, 0, sizeof id->internal);
  std::memcpy(id->internal, &next, sizeof next);
  ++next;
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (config->blocking != 0) return ncclInvalidArgument;  // it could not be aborted
  std::uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof number);
  {
    const std::lock_guard lock(mutex);
    auto world = worlds[number].lock();
    if (!world) worlds[number] = world = std::make_shared<World>();
    world->ranks = ranks;
    *comm = new ncclComm{.world = world, .rank = rank, .next = 0};
  }
  return (*comm)->join({}, [](const std::vector<Asked>&) {});
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* result) {
  const std::lock_guard lock(mutex);
  *result = comm->state();
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return comm->join({}, [](const std::vector<Asked>&) {});
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const std::lock_guard lock(mutex);
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) { return ncclCommDestroy(comm); }

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t, ncclComm_t comm, cudaStream_t) {
  return comm->join({static_cast<const std::byte*>(from), static_cast<std::byte*>(to), count, type},
                    [](const std::vector<Asked>& ranks) {
                      const auto sum = sum_of(ranks, ranks.front().count);
                      for (const Asked& r : ranks) std::ranges::copy(sum, r.to);
                    });
}
ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t) {
  return comm->join({static_cast<const std::byte*>(from), static_cast<std::byte*>(to), count, type},
                    [](const std::vector<Asked>& ranks) {
                      for (const Asked& r : ranks)
                        for (std::size_t k = 0; k < ranks.size(); ++k) {
                          const std::size_t bytes = r.count * size_of(r.type);
                          std::memcpy(r.to + k * bytes, ranks[k].from, bytes);
                        }
                    });
}
ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t, ncclComm_t comm, cudaStream_t) {
  return comm->join({static_cast<const std::byte*>(from), static_cast<std::byte*>(to), count, type},
                    [](const std::vector<Asked>& ranks) {
                      const auto sum = sum_of(ranks, ranks.front().count * ranks.size());
                      const std::size_t bytes = ranks.front().count * size_of(ranks.front().type);
                      for (std::size_t k = 0; k < ranks.size(); ++k)
                        std::memcpy(ranks[k].to, sum.data() + k * bytes, bytes);
                    });
}
ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t) {
  return comm->join({static_cast<const std::byte*>(from), static_cast<std::byte*>(to), count, type},
                    [root](const std::vector<Asked>& ranks) {
                      const Asked& source = ranks[std::size_t(root)];
                      for (const Asked& r : ranks)
                        std::memmove(r.to, source.from, r.count * size_of(r.type));
                    });
}
ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t) {
  const std::lock_guard lock(mutex);
  comm->world->sends[{comm->rank, peer}].push_back(
      {static_cast<const std::byte*>(from), nullptr, count, type});
  comm->world->deliver({comm->rank, peer});
  return comm->state();
}
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t) {
  const std::lock_guard lock(mutex);
  comm->world->receives[{peer, comm->rank}].push_back(
      {nullptr, static_cast<std::byte*>(to), count, type});
  comm->world->deliver({peer, comm->rank});
  return comm->state();
}

// Calls of a group begin one by one; whether all are done their communicator knows.
ncclResult_t ncclGroupStart() { return ncclSuccess; }
ncclResult_t ncclGroupEnd() { return ncclInProgress; }

namespace reckon::cuda {

std::string why_no_nccl() { return ""; }
std::string nccl_version() { return "2.27.3"; }
const NcclLibrary& nccl_library() {
  static const NcclLibrary library{.get_version = ncclGetVersion,
                                   .get_error_string = ncclGetErrorString,
                                   .get_unique_id = ncclGetUniqueId,
                                   .comm_init_rank_config = ncclCommInitRankConfig,
                                   .get_async_error = ncclCommGetAsyncError,
                                   .comm_finalize = ncclCommFinalize,
                                   .comm_destroy = ncclCommDestroy,
                                   .comm_abort = ncclCommAbort,
                                   .all_reduce = ncclAllReduce,
                                   .all_gather = ncclAllGather,
                                   .reduce_scatter = ncclReduceScatter,
                                   .broadcast = ncclBroadcast,
                                   .send = ncclSend,
                                   .receive = ncclRecv,
                                   .group_start = ncclGroupStart,
                                   .group_end = ncclGroupEnd};
  return library;
}

}  // namespace reckon::cuda
