#include "executor/cuda/nccl_library.h"

#include <fmt/format.h>

#include "executor/cuda/device_memory.h"

#ifdef RECKON_WITH_NCCL
#include <dlfcn.h>

#include <array>

namespace reckon::cuda {
namespace {

struct Loaded {
  NcclLibrary entries;
  std::string problem;
};

/// The loader's own search, then where the build found it.
void* open_library(std::string& problem) {
  for (const char* name : std::array{"libnccl.so.2", RECKON_NCCL_FOUND_AT}) {
    if (void* library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
    if (problem.empty()) problem = ::dlerror();
  }
  return nullptr;
}

Loaded load() {
  Loaded out;
  void* library = open_library(out.problem);
  if (library == nullptr) return out;
  out.problem.clear();
  const auto find = [&](auto& entry, const char* name) {
    entry = reinterpret_cast<std::remove_reference_t<decltype(entry)>>(::dlsym(library, name));
    if (entry == nullptr && out.problem.empty())
      out.problem = fmt::format("libnccl.so.2 has no {}: it is older than 2.7", name);
  };
  find(out.entries.get_version, "ncclGetVersion");
  find(out.entries.get_error_string, "ncclGetErrorString");
  find(out.entries.get_unique_id, "ncclGetUniqueId");
  find(out.entries.comm_init_rank, "ncclCommInitRank");
  find(out.entries.comm_destroy, "ncclCommDestroy");
  find(out.entries.all_reduce, "ncclAllReduce");
  find(out.entries.all_gather, "ncclAllGather");
  find(out.entries.reduce_scatter, "ncclReduceScatter");
  find(out.entries.broadcast, "ncclBroadcast");
  find(out.entries.send, "ncclSend");
  find(out.entries.receive, "ncclRecv");
  find(out.entries.group_start, "ncclGroupStart");
  find(out.entries.group_end, "ncclGroupEnd");
  return out;
}

const Loaded& loaded() {
  static const Loaded once = load();
  return once;
}

}  // namespace

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
