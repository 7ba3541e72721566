#include "executor/cuda/libraries/nccl.h"

#include <fmt/format.h>

#include "executor/cuda/memory/buffers.h"

#ifdef RECKON_WITH_NCCL
namespace reckon::cuda {
namespace {

struct Loaded {
  NcclLibrary entries;
  std::string problem;
};

Loaded load_entries() {
  Loaded out;
  LoadedLibrary library = load_nccl();
  library.find(out.entries.get_version, "ncclGetVersion");
  library.find(out.entries.get_error_string, "ncclGetErrorString");
  library.find(out.entries.get_unique_id, "ncclGetUniqueId");
  library.find(out.entries.comm_init_rank_config, "ncclCommInitRankConfig");
  library.find(out.entries.get_async_error, "ncclCommGetAsyncError");
  library.find(out.entries.comm_finalize, "ncclCommFinalize");
  library.find(out.entries.comm_destroy, "ncclCommDestroy");
  library.find(out.entries.comm_abort, "ncclCommAbort");
  library.find(out.entries.all_reduce, "ncclAllReduce");
  library.find(out.entries.all_gather, "ncclAllGather");
  library.find(out.entries.reduce_scatter, "ncclReduceScatter");
  library.find(out.entries.broadcast, "ncclBroadcast");
  library.find(out.entries.send, "ncclSend");
  library.find(out.entries.receive, "ncclRecv");
  library.find(out.entries.group_start, "ncclGroupStart");
  library.find(out.entries.group_end, "ncclGroupEnd");
  out.problem = library.problem();
  return out;
}

const Loaded& loaded() {
  static const Loaded once = load_entries();
  return once;
}

}  // namespace

LoadedLibrary load_nccl() { return LoadedLibrary("libnccl.so.2", RECKON_NCCL_FOUND_AT); }

std::string why_no_nccl() { return loaded().problem; }

const NcclLibrary& nccl_library() {
  if (!loaded().problem.empty())
    throw DeviceError(
        fmt::format("several devices cannot train together without NCCL: {}", loaded().problem));
  return loaded().entries;
}

std::string nccl_version() {
  int version = 0;
  nccl_library().get_version(&version);
  // 22703 is 2.27.3; up to 2.8 it was 2708 [nccl.h, NCCL_VERSION].
  const int unit = version >= 10'000 ? 10'000 : 1'000;
  return fmt::format("{}.{}.{}", version / unit, version % unit / 100, version % 100);
}

}  // namespace reckon::cuda

#else

namespace reckon::cuda {
std::string why_no_nccl() { return "this build found no nccl.h"; }
std::string nccl_version() { throw DeviceError(why_no_nccl()); }
}  // namespace reckon::cuda

#endif
